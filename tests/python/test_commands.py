"""What pages and the command print to be copied, run as it is printed: from the invitation to a fit of the public dataset."""

import html
import os
import pathlib
import pty
import re
import subprocess
import threading
import urllib.request

import duckdb
import pytest
from hub_process import PARTIES, POTLUCK, Demo, Hub, potluck

TIME = 300


class Place:
    """Where somebody works: a folder that is home and holds all that the program keeps, and a terminal."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def run(self, commands, program="sh"):
        """Runs what somebody pasted, at a terminal where every question is answered with yes."""
        terminal, end = pty.openpty()
        commands = [program, "-e" if program == "Rscript" else "-ec", commands]
        path = f"{pathlib.Path(POTLUCK).resolve().parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        process = subprocess.Popen(
            commands, cwd=self.folder, env=environment, stdin=end, stdout=subprocess.PIPE, stderr=end, text=True
        )
        os.close(end)
        said = []
        listener = threading.Thread(target=self.answer, args=(terminal, said))
        listener.start()
        out, _ = process.communicate(timeout=TIME)
        listener.join(TIME)
        os.close(terminal)
        assert process.returncode == 0, f"{commands}\n{out}\n{''.join(said)}"
        return out

    @staticmethod
    def answer(terminal, said):
        while True:
            try:
                text = os.read(terminal, 4096).decode(errors="replace")
            except OSError:
                return  # The program has ended, and with it the other end of the terminal.
            if not text:
                return
            said.append(text)
            if "[y/N]" in text:
                os.write(terminal, b"y\n")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    hub = Hub(folder, "--requests-per-minute", "0")
    demo = Demo(folder / "demo", rows=100_000)
    yield folder, hub, demo
    hub.stop()


def copied(address):
    """What a page offers to copy, by what it calls it."""
    with urllib.request.urlopen(address) as answer:
        page = answer.read().decode()
    buttons = re.findall(r'<button[^>]* data-copy="([^"]*)"[^>]*>Copy<span class="unseen"> ([^<]*)</span>', page)
    return {html.unescape(what): html.unescape(text) for text, what in buttons}


def test_everybody_gets_from_the_invitation_to_a_fit_with_what_pages_print(world):
    folder, hub, demo = world
    study, invitations = hub.create(demo.study())
    page = f"{hub.address}/studies/{study}"
    assert copied(page)["Commands to verify"].startswith("curl")
    for party in PARTIES:
        home = Place(folder / "homes" / party)
        (home.folder / f"{party}.invitation").write_text(invitations[party] + "\n")
        (home.folder / f"{party}.csv").symlink_to(demo.folder / f"private/{party}.csv")
        commands = {what: text for what, text in copied(page).items() if what.startswith(f"Commands for {party}")}
        assert list(commands) == [f"Commands for {party}, {what}" for what in ("to accept", "for a budget", "to release")]
        said = [home.run(text) for text in commands.values()]
        assert said[-1].startswith("published"), said

    analyst = Place(folder / "homes" / "analyst")
    snippets = copied(page)
    assert "public.parquet: good" in analyst.run(snippets["Commands to verify"])
    command, _, query = snippets["Command line, and DuckDB"].rpartition("\n")
    analyst.run(command)
    sql = re.fullmatch(r'duckdb -c "(.*)"', query)[1]
    rows = duckdb.sql(sql.replace("model.json", str(analyst.folder / "model.json"))).fetchall()
    assert len(rows) == 5
    assert "smoker" in analyst.run(snippets["R"] + "\nprint(jsonlite::fromJSON(fit)$coefficients)", "Rscript")
    compile(snippets["Python"], "snippet", "exec")

    explorer = copied(f"{page}/explore?label=pressure&feature=age&feature=smoker")
    other = Place(folder / "homes" / "other")
    assert "age" in other.run(explorer["Commands"])
    (other.folder / "fit.py").write_text(explorer["Python"])
    assert "estimate" in other.run("python3 fit.py")
    compile(explorer["potluck in Python"], "snippet", "exec")


def test_what_the_command_prints_for_parties_works_as_printed(world):
    folder, hub, demo = world
    sealed = folder / "again.toml"
    draft = demo.study().split("\n# Written by")[0]
    sealed.write_text(draft.replace('name = "', 'name = "again ', 1))
    potluck("study", "seal", sealed)
    (folder / "ada.token").write_text(hub.token)
    printed = potluck(
        "hub", "study", "create", sealed, "--hub", hub.address, "--token-file", folder / "ada.token",
        "--out", folder / "invitations",
    )  # fmt: skip
    blocks = re.findall(r"^(\w+) \(.*\):\n((?:  .*\n)+)", printed, re.MULTILINE)
    assert [party for party, _ in blocks] == PARTIES, printed
    for party, commands in blocks:
        home = Place(folder / "others" / party)
        invitation = (folder / "invitations" / f"{party}.invitation").read_text()
        (home.folder / f"{party}.invitation").write_text(invitation)
        (home.folder / f"{party}.csv").symlink_to(demo.folder / f"private/{party}.csv")
        assert "published" in home.run(commands)
