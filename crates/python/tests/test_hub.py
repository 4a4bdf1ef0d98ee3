"""Datasets from a real hub, verified; what is wrong with a hub is said clearly."""

import html
import http.server
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import warnings
from pathlib import Path

import pytest
from hub_process import PARTIES, Demo, Hub

import potluck


class World:
    """A hub with one study whose dataset is public, and one that waits for its parties."""

    def __init__(self, folder, hub):
        demo = Demo(folder, rows=60_000)
        self.hub = hub
        self.url = hub.address
        self.study = demo.publish(self.hub)
        columns = [potluck.Numeric("age", 0, 100), potluck.Numeric("height", 0, 250)]
        other = potluck.Study.new(name="waiting", rows=1000, epsilon=1, delta=1e-5, parties={"north": columns}).seal()
        self.waiting, _ = self.hub.create(other.to_toml())
        self.demo = demo


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    hub = Hub(folder)
    # Also if the world cannot be made: no hub outlives its test.
    try:
        yield World(folder, hub)
    finally:
        hub.stop()


def test_a_dataset_comes_from_a_hub_verified(world, folder):
    study = potluck.connect(world.url).study(world.study)
    dataset = study.dataset()
    assert dataset.parties == PARTIES and dataset.study.id == world.study == study.id
    joined = potluck.join(potluck.Study.parse(world.demo.study()), [world.demo.release(party) for party in PARTIES])
    assert dataset.content_hash == joined.content_hash
    assert study.contract() == dataset.study and study.contract().to_toml() == world.demo.study()
    details = study.details()
    assert details["id"] == world.study and details["released"] == 3 and details["dataset"] is True
    assert study.heads == {world.study: study.events()[-1]["hash"]}
    events = study.events()
    assert len(events) >= 1 + 3 + 3 + 1
    told = []
    study.dataset(progress=lambda *numbers: told.append(numbers))
    assert told[-1][0] == 1 and told[-1][1] == told[-1][2] > 10_000
    assert not list(folder.iterdir()), "nothing is left behind"
    assert repr(study) == f"<HubStudy {world.url}/studies/{world.study}>" and study.url.endswith(world.study)


def test_the_address_of_a_page_will_do(world):
    page = f"{world.url}/studies/{world.study}"
    for study in [
        potluck.connect(page).study(),
        potluck.connect(world.url + "/").study(page),
        potluck.connect(page).study(world.study),
    ]:
        assert study.url == page
    assert potluck.connect(page).study().contract().id == world.study
    assert {one["id"] for one in potluck.connect(world.url).studies()} == {world.study, world.waiting}
    with pytest.raises(potluck.UsageError, match="name the study"):
        potluck.connect(world.url).study()
    with pytest.raises(potluck.UsageError, match="64 hexadecimal"):
        potluck.connect(world.url).study("abc")
    with pytest.raises(potluck.UsageError, match="another hub"):
        potluck.connect(world.url).study(f"https://hub.example.org/studies/{world.study}")
    with pytest.raises(potluck.UsageError, match="form"):
        potluck.connect("hub.example.org")
    with pytest.raises(potluck.UsageError, match="insecure_http=True"):
        potluck.connect("http://hub.example.org")
    with pytest.raises(potluck.UsageError, match="retry_for"):
        potluck.connect(world.url, retry_for=-1)
    with pytest.raises(potluck.InputError, match="cannot use"):
        potluck.connect(world.url, ca_certificate="missing.pem")


def test_what_a_hub_refuses_or_fails_at_is_a_remote_error(world):
    hub = potluck.connect(world.url, retry_for=0)
    with pytest.raises(potluck.RemoteError) as raised:
        hub.study(world.waiting).dataset()
    assert raised.value.exit_code == 6
    with pytest.raises(potluck.RemoteError):
        hub.study("0" * 64).contract()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(potluck.RemoteError, match="cannot reach"):
        potluck.connect(address, retry_for=0).studies()


def test_a_hub_that_lies_is_found_out(world):
    """A proxy that hands a study on, with one digit changed."""
    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            with urllib.request.urlopen(world.url + self.path) as answer:
                body = answer.read()
            if self.path.endswith("/study.toml"):
                body = body.replace(b"epsilon = 1", b"epsilon = 2")
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        lying = potluck.connect(f"http://127.0.0.1:{server.server_address[1]}", retry_for=0)
        with pytest.raises(potluck.IntegrityError):
            lying.study(world.study).dataset()
        server.shutdown()


class Memory(http.server.BaseHTTPRequestHandler):
    """A proxy that goes on giving what it once gave, where it is told to."""

    origin, frozen, known = "", (), {}

    def do_GET(self):
        if not (self.path.endswith(self.frozen) and self.path in self.known):
            with urllib.request.urlopen(self.origin + self.path) as answer:
                self.known[self.path] = answer.read()
        body = self.known[self.path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def test_a_hub_that_is_behind_or_goes_back_is_noticed(world, tmp_path_factory):
    hub = Hub(tmp_path_factory.mktemp("late"))
    try:
        demo = world.demo
        study, invitations = hub.create(demo.study(), early=True)
        for party in PARTIES:
            hub.accept(study, party, invitations[party], demo.key(party))
        first, last = PARTIES[:2], PARTIES[2]
        for party in first:
            hub.upload(study, party, invitations[party], demo.release(party))
        Memory.origin = hub.address
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Memory) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            connection = potluck.connect(f"http://127.0.0.1:{server.server_address[1]}", retry_for=0)
            seen = connection.study(study)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert seen.dataset().parties == first
            before = seen.heads
            early = dict(Memory.known)
            hub.upload(study, last, invitations[last], demo.release(last))
            paths = sorted(early)
            dataset, log = (next(path for path in paths if word in path) for word in ("dataset", "events"))
            Memory.frozen = (dataset,)
            with pytest.warns(potluck.StaleDatasetWarning, match="not the latest"):
                assert seen.dataset().parties == first
            assert seen.heads != before and before[study] in {event["hash"] for event in seen.events()}
            # Now the log goes back too: alone it would verify, but not to somebody who has seen more.
            Memory.known.update(early)
            Memory.frozen = (dataset, log)
            assert connection.study(study).dataset().parties == first
            with pytest.raises(potluck.IntegrityError, match="does not go on from where it was seen"):
                seen.dataset()
            with pytest.raises(potluck.IntegrityError, match="does not go on"):
                seen.events()
            server.shutdown()
    finally:
        hub.stop()


def test_other_threads_run_and_an_interrupt_ends_a_call_that_waits():
    """A server that accepts and says nothing."""
    program = """
import potluck, sys, threading, time
beats = []
def beat():
    while True:
        beats.append(time.monotonic())
        time.sleep(0.01)
threading.Thread(target=beat, daemon=True).start()
print("asking", flush=True)
try:
    potluck.connect(sys.argv[1]).studies()
except KeyboardInterrupt:
    print("interrupted", len(beats), flush=True)
"""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen([sys.executable, "-c", program, address], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "asking\n"
        silent.accept()
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        word, beats = process.stdout.readline().split()
        assert word == "interrupted" and int(beats) > 20
        assert process.wait(10) == 0
        process.stdout.close()


def test_the_snippet_of_the_explorer_works_as_printed(world, folder):
    query = "label=pressure&feature=age&feature=smoker&learner=ols&level=0.9"
    for query in ["label=pressure", query]:
        with urllib.request.urlopen(f"{world.url}/studies/{world.study}/explore?{query}") as page:
            text = page.read().decode()
        snippet = html.unescape(re.search(r'aria-label="potluck in Python"><code>(.*?)</code>', text, re.S).group(1))
        assert snippet.startswith("import potluck\n")
        Path("snippet.py").write_text(snippet, encoding="utf-8")
        done = subprocess.run([sys.executable, "snippet.py"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "Dep. Variable:" in done.stdout and "age" in done.stdout
    model = json.loads(urllib.request.urlopen(f"{world.url}/studies/{world.study}/model.json?{query}").read())
    fitted = potluck.LinearRegression(learner="ols", level=0.9).fit(
        potluck.connect(world.url).study(world.study).dataset(), label="pressure", features=["age", "smoker"]
    )
    ours = json.loads(fitted.to_json())
    assert ours["coefficients"] == model["coefficients"] and ours["dataset"] == model["dataset"]
