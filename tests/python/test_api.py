"""The API against its own description: every operation reached with success, and then with everything Schemathesis thinks of."""

import collections
import hashlib

import hypothesis
import pytest
import schemathesis
from hub_process import Demo, Hub, acceptance, potluck, withdrawal
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]
EXAMPLES = 60


class Scene:
    """A hub with a finished study, and one that is just beginning."""

    def __init__(self, folder):
        self.hub = Hub(folder, "--requests-per-minute", "0")
        self.demo = Demo(folder / "demo", rows=2000)
        self.finished, self.finished_tokens = self.publish(self.demo.study())
        draft = self.demo.study().split("\n# Written by")[0]
        (folder / "second.toml").write_text(draft.replace('name = "', 'name = "second ', 1))
        potluck("study", "seal", folder / "second.toml")
        self.second = (folder / "second.toml").read_text()
        self.new, self.new_tokens = self.hub.create(self.second)
        self.hub.accept(self.new, "registry", self.new_tokens["registry"], self.demo.key("registry"))
        (folder / "third.toml").write_text(draft.replace('name = "', 'name = "third ', 1))
        potluck("study", "seal", folder / "third.toml")
        self.closed, _ = self.hub.create((folder / "third.toml").read_text())
        self.schema = schemathesis.openapi.from_url(self.hub.address + "/openapi.json")
        self.statuses = collections.defaultdict(set)

    def publish(self, text):
        study, tokens = self.hub.create(text)
        for party, token in tokens.items():
            self.hub.accept(study, party, token, self.demo.key(party))
            self.hub.upload(study, party, token, self.demo.release(party))
        return study, tokens

    def token(self, operation):
        """A token that is good for the operation."""
        schemes = [name for scheme in operation.definition.raw.get("security", []) for name in scheme]
        return {"coordinator": self.hub.token, "party": self.finished_tokens["north"]}.get((schemes or [None])[0])

    def check(self, case, **options):
        """Sends a request, holds the answer against the description, and remembers the status."""
        answer = case.call(base_url=self.hub.address, **options)
        case.validate_response(answer, checks=CHECKS)
        self.statuses[case.operation.label].add(answer.status_code)
        return answer


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    scene = Scene(tmp_path_factory.mktemp("api"))
    yield scene
    scene.hub.stop()


def valid_requests(scene):
    """For every operation, requests that must succeed."""
    study = {"study": scene.finished}
    north = {"study": scene.finished, "party": "north"}
    new_south = {"study": scene.new, "party": "south"}
    content = scene.demo.release("north").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    party = {"Authorization": f"Bearer {scene.finished_tokens['north']}"}
    new_party = {"Authorization": f"Bearer {scene.new_tokens['south']}"}
    coordinator = {"Authorization": f"Bearer {scene.hub.token}"}
    return {
        ("GET", "/healthz"): {},
        ("GET", "/metrics"): {},
        ("GET", "/api/v1/studies"): {"query": {"limit": 1}},
        ("POST", "/api/v1/studies"): {
            "body": {"study": scene.second, "early": False}, "media_type": "application/json", "headers": coordinator,
        },
        ("GET", "/api/v1/studies/{study}"): {"path_parameters": study},
        ("GET", "/api/v1/studies/{study}/study.toml"): {"path_parameters": study},
        ("GET", "/api/v1/studies/{study}/events"): {"path_parameters": study, "query": {"limit": 2, "after": 1}},
        ("GET", "/api/v1/studies/{study}/events.jsonl"): {"path_parameters": study},
        ("GET", "/api/v1/studies/{study}/dataset"): {"path_parameters": study},
        ("GET", "/api/v1/studies/{study}/fit"): {
            "path_parameters": study, "query": {"label": "pressure", "feature": ["age", "bmi"], "level": 0.9, "words": "true"},
        },
        ("GET", "/api/v1/studies/{study}/correlations"): {
            "path_parameters": study, "query": {"column": ["age", "pressure"], "given": ["bmi"], "together": "true"},
        },
        ("GET", "/api/v1/studies/{study}/invitation"): {"path_parameters": study, "headers": party},
        ("POST", "/api/v1/studies/{study}/parties/{party}/invitation"): {
            "path_parameters": {"study": scene.new, "party": "north"}, "headers": coordinator,
        },
        ("POST", "/api/v1/studies/{study}/parties/{party}/acceptance"): {
            "path_parameters": new_south, "headers": new_party, "media_type": "application/json",
            "body": acceptance(scene.new, "south", scene.demo.key("south")),
        },
        ("POST", "/api/v1/studies/{study}/parties/{party}/withdrawal"): {
            "path_parameters": {"study": scene.new, "party": "registry"}, "media_type": "application/json",
            "headers": {"Authorization": f"Bearer {scene.new_tokens['registry']}"},
            "body": withdrawal(scene.hub, scene.new, "registry", scene.demo.key("registry")),
        },
        ("POST", "/api/v1/studies/{study}/closing"): {
            "path_parameters": {"study": scene.closed}, "headers": coordinator, "media_type": "application/json",
            "body": {"reason": "a trial"},
        },
        ("GET", "/api/v1/studies/{study}/parties/{party}/upload"): {
            "path_parameters": north, "query": {"sha256": digest}, "headers": party,
        },
        ("GET", "/api/v1/studies/{study}/parties/{party}/release"): {"path_parameters": north},
        ("PUT", "/api/v1/studies/{study}/parties/{party}/release"): {
            "path_parameters": north, "query": {"sha256": digest}, "headers": party,
            "body": content, "media_type": "application/octet-stream",
        },
        ("POST", "/api/v1/plan"): {"body": scene.demo.study(), "media_type": "text/plain"},
    }  # fmt: skip


def test_every_operation_succeeds_and_answers_as_it_is_described(scene):
    requests = valid_requests(scene)
    described = set()
    for result in scene.schema.get_all_operations():
        operation = result.ok()
        key = (operation.method.upper(), operation.path)
        described.add(key)
        answer = scene.check(operation.Case(**requests[key]))
        assert 200 <= answer.status_code < 300, f"{key}: {answer.status_code} {answer.text}"
    assert described == set(requests), "every operation is described, and every description is tried"


def send_at_random(scene, operation, mode):
    """Requests from the description, of things that exist and of things that do not, with a good token."""
    token = scene.token(operation)
    known = {"study": scene.finished, "party": "north"}

    @hypothesis.settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
    )  # fmt: skip
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode), chance=hypothesis.strategies.integers(0, 3))
    def send(case, chance):
        for name in case.path_parameters or {}:
            if chance:
                case.path_parameters[name] = known[name]
        scene.check(case, headers={"Authorization": f"Bearer {token}"} if token else {})

    send()


def test_nothing_that_is_sent_breaks_the_hub(scene):
    spoilt = 0
    for result in scene.schema.get_all_operations():
        operation = result.ok()
        send_at_random(scene, operation, GenerationMode.POSITIVE)
        try:
            send_at_random(scene, operation, GenerationMode.NEGATIVE)
            spoilt += 1
        except hypothesis.errors.Unsatisfiable:
            pass  # Everything that can be said there is allowed by the description.
    assert spoilt >= 7, "most operations with parameters or a body are sent wrong ones"
    assert scene.hub.call("GET", "/studies")["studies"], "the hub still answers"
    problems = [line for line in (scene.hub.folder / "hub.log").read_text().splitlines() if '"ERROR"' in line]
    assert not problems, problems


def test_no_operation_can_be_used_without_its_token(scene):
    for result in scene.schema.get_all_operations():
        operation = result.ok()
        if not operation.definition.raw.get("security"):
            continue
        request = dict(valid_requests(scene)[operation.method.upper(), operation.path])
        for headers in [{}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic YTpi"}, {"Authorization": ""}]:
            answer = scene.check(operation.Case(**{**request, "headers": headers}))
            assert answer.status_code == 401, f"{operation.label} with {headers}: {answer.status_code}"
