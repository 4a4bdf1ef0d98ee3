"""A real hub in a process of its own, and everything that parties do with it, for tests and screenshots."""

import base64
import hashlib
import json
import os
import subprocess
import urllib.error
import urllib.request

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

POTLUCK = os.environ["POTLUCK"]
PARTIES = ["north", "south", "registry"]


def potluck(*arguments, **options):
    """Runs the command and returns what it printed."""
    command = [POTLUCK, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def private_key(path):
    """Reads what `potluck key new` writes: PKCS#8 with the public key (RFC 5958), which some libraries do not take."""
    body = "".join(line for line in path.read_text().splitlines() if not line.startswith("-----"))
    seed = base64.b64decode(body).partition(b"\x04\x22\x04\x20")[2][:32]
    return ed25519.Ed25519PrivateKey.from_private_bytes(seed)


def signed(said, purpose, key):
    """A party's signed word, as docs/FORMAT.md says."""
    # Keys are sorted and values are plain ASCII, so this is the canonical form.
    canonical = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
    message = purpose.encode() + b"\0" + hashlib.sha256(canonical).digest()
    return {**said, "signature": private_key(key).sign(message).hex()}


def acceptance(study, party, key):
    """A party's signed word that it accepts the study."""
    private = private_key(key)
    public = private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw).hex()
    return signed({"key": public, "party": party, "study_id": study}, "potluck acceptance", key)


def withdrawal(hub, study, party, key):
    """A party's signed word that it takes back its latest acceptance."""
    events = hub.call("GET", f"/studies/{study}/events")["events"]
    accepted = [event for event in events if event["change"] == "accepted" and event["acceptance"]["party"] == party]
    said = {"acceptance": accepted[-1]["hash"], "party": party, "study_id": study}
    return signed(said, "potluck withdrawal", key)


class Hub:
    """A hub on a free port, with one coordinator."""

    def __init__(self, folder, *arguments):
        self.folder = folder
        self.data = folder / "data"
        self.token = potluck("hub", "coordinator", "add", "Ada", "--data", self.data).strip()
        self.log = open(folder / "hub.log", "w")
        command = [POTLUCK, "hub", "serve", "--data", self.data, "--listen", "127.0.0.1:0", "--json"]
        self.process = subprocess.Popen(
            [*map(str, command), *arguments], stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        text = ""
        while True:
            line = self.process.stdout.readline()
            assert line, (folder / "hub.log").read_text()
            text += line
            try:
                self.address = json.loads(text)["listening"]
                break
            except ValueError:
                continue

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()
        self.log.close()

    def call(self, method, path, body=None, token=None, kind="application/json"):
        """Sends a request to the API and returns what it answered."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}/api/v1{path}", data=body, method=method)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        if body is not None:
            request.add_header("Content-Type", kind)
        try:
            with urllib.request.urlopen(request) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from error

    def create(self, text, early=False):
        """Creates a sealed study; returns its id and the invitations by party."""
        created = self.call("POST", "/studies", {"study": text, "early": early}, self.token)
        return created["id"], {one["party"]: one["token"] for one in created["invitations"]}

    def accept(self, study, party, token, key):
        """Accepts in the name of a party."""
        self.call("POST", f"/studies/{study}/parties/{party}/acceptance", acceptance(study, party, key), token)

    def upload(self, study, party, token, path):
        """Uploads a release."""
        content = path.read_bytes()
        address = f"/studies/{study}/parties/{party}/release?sha256={hashlib.sha256(content).hexdigest()}"
        self.call("PUT", address, content, token, "application/octet-stream")


class Demo:
    """The made-up clinics of `potluck demo`, with signed releases."""

    def __init__(self, folder, rows=500_000):
        self.folder = folder
        self.rows = rows
        potluck("demo", "--out", folder, "--rows", rows)
        ledger = folder / "budget.sqlite"
        potluck("ledger", "init", "--ledger", ledger, "--budget", "all", "--epsilon", 50, "--delta", 1e-5)
        for party in PARTIES:
            potluck("key", "new", "--out", self.key(party))
            potluck(
                "release", folder / "study.toml", "--party", party, "--data", folder / f"private/{party}.csv",
                "--ledger", ledger, "--budget", "all", "--signing-key", self.key(party), "--yes",
                "--accept-low-accuracy", "--out", self.release(party),
            )  # fmt: skip

    def key(self, party):
        return self.folder / f"{party}.key"

    def release(self, party):
        return self.folder / f"{party}.signed.parquet"

    def study(self):
        return (self.folder / "study.toml").read_text()

    def publish(self, hub, released=PARTIES, accepted=PARTIES, early=False):
        """Takes the study at a hub as far as it is told; returns its id."""
        study, invitations = hub.create(self.study(), early)
        for party in accepted:
            hub.accept(study, party, invitations[party], self.key(party))
        for party in released:
            hub.upload(study, party, invitations[party], self.release(party))
        return study
