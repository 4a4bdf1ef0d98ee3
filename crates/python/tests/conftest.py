"""People of two parties, a study of them, and a folder with ledgers. POTLUCK names the command's binary."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pyarrow
import pytest

import potluck
from potluck import Categorical, Numeric, Study

# A hub and engines to run beside, shared with the tests of the command.
sys.path.append(str(Path(__file__).parents[3] / "tests" / "python"))

ROWS = 400


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every test works in a folder of its own, and no ledger of the user is touched."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("POTLUCK_LEDGER", raising=False)
    return tmp_path


def command(*arguments):
    """Runs the command; its JSON or its text."""
    done = subprocess.run([os.environ["POTLUCK"], *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--json" in arguments else done.stdout


def people(rows=ROWS):
    """Plain columns of both parties, as NumPy arrays and lists."""
    rng = numpy.random.default_rng(7)
    age = rng.uniform(15, 95, rows)
    smoker = rng.random(rows) < 0.3
    north = {
        "id": numpy.arange(rows),
        "age": age,
        "smoker": numpy.where(smoker, "yes", "no").tolist(),
    }
    order = rng.permutation(rows)
    pressure = 95 + 0.5 * age + 8 * smoker + rng.normal(0, 9, rows)
    south = {"id": order, "pressure": pressure[order]}
    return north, south


def draft(rows=ROWS, epsilon=2.0, smoker=None, **more):
    return Study.new(
        name="blood pressure",
        rows=rows,
        epsilon=epsilon,
        delta=1e-6,
        parties={
            "north": [
                Numeric("age", 18, 90, unit="years"),
                Categorical("smoker", ["no", "yes"], description="smokes daily", **(smoker or {})),
            ],
            "south": [Numeric("pressure", 80, 200, unit="mmHg")],
        },
        **more,
    )


@pytest.fixture
def study():
    return draft().seal()


@pytest.fixture
def north():
    return pyarrow.table(people()[0])


@pytest.fixture
def south():
    return pyarrow.table(people()[1])


@pytest.fixture
def ledger():
    ledger = potluck.Ledger("ledger.sqlite")
    ledger.init("people", 2.0, 1e-6)
    return ledger


def spent(ledger):
    """μ² spent, in exact units."""
    return int(ledger.show()["budgets"][0]["spent"])


def assert_untouched(ledger, folder):
    """Nothing was published and nothing was charged."""
    assert spent(ledger) == 0
    assert not list(folder.glob("*.release.parquet")), "a release was written"
    assert not list(folder.glob(".*partial*")), "a temporary file stayed"


@pytest.fixture
def dataset(study, north, south):
    """Both parties released, each with a ledger of its own."""
    releases = []
    for party, table in {"north": north, "south": south}.items():
        own = potluck.Ledger(f"{party}.ledger")
        own.init("people", 2.0, 1e-6)
        releases.append(potluck.release(study, party, table, ledger=own, accept_low_accuracy=True))
    return potluck.join(study, releases)
