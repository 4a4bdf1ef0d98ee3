"""What documents show works as printed; what the package says of its types is true."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).parents[3]


def blocks(document, language):
    """The code blocks of a document in one language."""
    found, inside = [], None
    for line in (ROOT / document).read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = [] if inside is None and line == f"```{language}" else None
            if inside is not None:
                found.append(inside)
        elif inside is not None:
            inside.append(line)
    return ["\n".join(block) for block in found]


@pytest.mark.parametrize("document", ["README.md", "docs/PYTHON.md", "crates/python/README.md"])
def test_examples_run_as_printed(document, folder):
    code = blocks(document, "python")
    assert code, f"{document} has no example"
    Path("example.py").write_text("\n".join(code), encoding="utf-8")
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run([sys.executable, "example.py"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Dep. Variable:" in done.stdout


NOTEBOOK = ROOT / "docs/notebooks/blood_pressure.ipynb"


def test_the_notebook_holds_what_it_shows():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "it was run from top to bottom"
    assert all(cell.outputs for cell in code)
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert len(text) < 400_000
    for path in ("/tmp/", "/root/", "/home/", "/Users/", "ipykernel"):
        assert path not in text, "a path of somebody's machine"


def test_the_notebook_runs(folder):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
    client.execute()
    assert not list(folder.iterdir()), "it works in a folder of its own"
    check_outputs(notebook)
    # Again in the same folder.
    client.execute()
    check_outputs(notebook)


def check_outputs(notebook):
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    data = [output.data for output in outputs if "data" in output]
    assert any("image/png" in one for one in data), "a plot"
    assert sum("potluck-card" in one.get("text/html", "") for one in data) >= 3, "a study, a dataset and a regression"
    assert not any(output.output_type == "error" for output in outputs)


COMMAND = re.compile(r"(?<![-\w])--[a-z]|`potluck|`-`")
"""What only the command has."""


def test_no_message_tells_people_to_use_the_command():
    """The crates have remedies as values, and what they say of the command in one file; this package has its own words
    (src/errors.rs), and for every remedy, or it would not compile."""
    own = (ROOT / "crates/python/src/errors.rs").read_text(encoding="utf-8")
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', own.partition("impl Voice for Package")[2])
    assert len(words) > 10
    for text in words:
        assert not COMMAND.search(text), f"{text!r} speaks of the command"
    found = 0
    for crate in ("party", "release", "simulation", "client"):
        for path in sorted((ROOT / f"crates/{crate}/src").rglob("*.rs")):
            if path.name == "remedy.rs":
                continue
            source = path.read_text(encoding="utf-8").partition("#[cfg(test)]\nmod tests")[0]
            source = "\n".join(line for line in source.splitlines() if not line.lstrip().startswith("//"))
            # Variants of errors are formatted anew, one by one.
            for text, variant in re.findall(r"#\[error\((.*?)\)\]\s*(\w+)", source, re.S):
                if COMMAND.search(text):
                    found += 1
                    assert re.search(rf"(E|NoBudget)::{variant}\b", own), f"{path}: {variant} speaks of the command"
            source = re.sub(r"#\[error\((.*?)\)\]\s*(\w+)", "", source, flags=re.S)
            for text in re.findall(r'"((?:[^"\\]|\\.)*)"', source):
                # A seal says in the file who wrote it, and a published file what to do with it, whoever reads it.
                in_files = text.startswith(("{}\\n# Written by", "Do not regress on these rows."))
                if COMMAND.search(text) and not in_files:
                    raise AssertionError(f"{path}: {text!r} speaks of the command")
    assert found > 10


def run(*arguments):
    done = subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed(folder):
    run("mypy", "--strict", "--python-version", "3.10", "--cache-dir", str(folder), "-p", "potluck")


def test_the_stubs_say_what_the_native_code_does():
    run("mypy.stubtest", "potluck", "--concise")


def test_callers_are_checked(folder):
    Path("caller.py").write_text(
        """
import pandas
import polars
import potluck

def publish(study: potluck.Study, frame: pandas.DataFrame, other: polars.DataFrame) -> list[potluck.Published]:
    potluck.Ledger().init("people", 1, 1e-6)
    return [
        potluck.release(study, "north", frame, confirm=True, progress=lambda at, done, rows: print(done)),
        potluck.release(study, "south", other, confirm=lambda question: "ε" in question, progress=False),
        potluck.release(study, "east", "east.csv"),
    ]

def learn(dataset: potluck.PublicDataset) -> float:
    return float(potluck.LinearRegression().fit(dataset, "pressure").coef_[0])
""",
        encoding="utf-8",
    )
    run("mypy", "--strict", "--cache-dir", str(folder), "caller.py")
    Path("wrong.py").write_text("import potluck\npotluck.release('study', 'north', 7)\n", encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "wrong.py"], capture_output=True, text=True)
    assert done.stdout.count("error: Argument") == 2, done.stdout
