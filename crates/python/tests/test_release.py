"""Releases: charged once, published once, refused clearly; the same as by the command."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from conftest import ROWS, assert_untouched, command, draft, people, spent

import potluck
from potluck import Categorical, Numeric, Study


def release(study, data, ledger, **more):
    return potluck.release(study, "north", data, ledger=ledger, **{"accept_low_accuracy": True, **more})


def test_a_release_is_charged_once_and_comes_out_the_same_again(study, north, ledger):
    first = release(study, north, ledger)
    assert not first.repeated and first.path == "north.release.parquet" and first.party == "north"
    assert first.study_id == study.id and first.signed_by is None and first.epsilon_left == 0.0 and first.budget_epsilon == 2.0
    charged = spent(ledger)
    again = release(study, north, ledger, out="again.parquet")
    assert again.repeated and again.content_hash == first.content_hash
    assert Path("again.parquet").read_bytes() == Path(first).read_bytes()
    assert spent(ledger) == charged
    assert [session["state"] for session in ledger.show()["sessions"]] == ["published"]


def test_python_and_the_command_publish_the_same_bytes(study, north, ledger):
    study.save("study.toml")
    pyarrow.parquet.write_table(north, "north.parquet")
    given = ["study.toml", "--party", "north", "--data", "north.parquet", "--ledger", "ledger.sqlite", "--yes", "--json"]
    ours = release(study, north, ledger)
    theirs = command("release", *given, "--out", "theirs.parquet")
    assert theirs["repeated"] and theirs["content_hash"] == ours.content_hash
    assert Path("theirs.parquet").read_bytes() == Path(ours).read_bytes()
    assert command("ledger", "show", "--ledger", "ledger.sqlite", "--json") == ledger.show()
    # And the other way round, signed.
    other = draft().seal()
    other.save("other.toml")
    command("ledger", "init", "--ledger", "other.ledger", "--budget", "people", "--epsilon", "2", "--delta", "1e-6")
    public = potluck.new_signing_key("north.key")
    given = ["other.toml", "--party", "north", "--data", "north.parquet", "--ledger", "other.ledger", "--yes", "--json"]
    theirs = command("release", *given, "--out", "b.parquet", "--signing-key", "north.key", "--accept-low-accuracy")
    ours = release(other, north, "other.ledger", out="a.parquet", signing_key="north.key")
    assert ours.repeated and ours.signed_by == public == theirs["signed_by"]
    assert Path("a.parquet").read_bytes() == Path("b.parquet").read_bytes()
    command("verify", "a.parquet", "--key", "north=north.key.pub")


def columns(**change):
    table = people()[0]
    return {name: change.get(name, values) for name, values in table.items()}


BAD = {
    "a text where numbers are due": (columns(age=["ancient"] * ROWS), 'column "age": holds text'),
    "ids that are no whole numbers": (columns(id=numpy.arange(ROWS) + 0.5), 'column "id": holds ids of type'),
    "an id twice": (columns(id=[7, *range(ROWS - 1)]), 'column "id", row 9: the id is the same as in row 1'),
    "a missing id": (columns(id=[None, *range(1, ROWS)]), 'column "id", row 1: the id is missing'),
    "a missing column": ({"id": range(ROWS), "age": [1.0] * ROWS}, 'column "smoker": is missing'),
    "a column too many": ({**columns(), "salary": [1.0] * ROWS}, "ignore_extra=True"),
    "a row too few": ({name: list(values)[1:] for name, values in columns().items()}, "fewer rows"),
    "a row too many": ({name: [*list(values), list(values)[0]] for name, values in columns().items()}, "more rows"),
}


@pytest.mark.parametrize("kind", [pyarrow.table, pandas.DataFrame, polars.DataFrame])
@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_and_cost_nothing(study, ledger, folder, kind, case):
    table, words = BAD[case]
    data = kind({name: list(values) for name, values in table.items()})
    with pytest.raises(potluck.InputError) as raised:
        release(study, data, ledger)
    assert words in str(raised.value)
    assert raised.value.exit_code == 3 and isinstance(raised.value, ValueError)
    for private in ("sometimes", "ancient", "--"):
        assert private not in str(raised.value)
    assert_untouched(ledger, folder)


def test_unknown_levels_are_refused_only_where_the_study_says_so(ledger, folder):
    unknown = pyarrow.table(columns(smoker=["sometimes", *["no"] * (ROWS - 1)]))
    strict = draft(smoker={"unknown": "error"}).seal()
    asked = []
    for refusals in (1, 2):
        with pytest.raises(potluck.InputError, match='column "smoker", row 1: is not one') as raised:
            release(strict, unknown, ledger, confirm=lambda question: not asked.append(question))
        assert "sometimes" not in str(raised.value) and "--" not in str(raised.value)
        assert "Careful: this study makes north refuse its table" in asked[-1]
        assert ("The table was refused 1 time under this study" in asked[-1]) == (refusals == 2)
        assert_untouched(ledger, folder)
        assert [(r["reason"], r["study_id"]) for r in ledger.show()["refusals"]] == [("value", strict.id)] * refusals
    assert "north refuse its table" in strict.plan()["warnings"][0]
    plain = draft().seal()
    assert plain.columns["north"][1].unknown == "missing"
    assert not any("refuse its table" in warning for warning in plain.plan()["warnings"])
    plain.validate("north", unknown)
    release(plain, unknown, ledger)
    assert len(ledger.show()["refusals"]) == 2


def test_one_release_is_not_drawn_under_two_budgets(study, north, ledger):
    release(study, north, ledger)
    ledger.init("clients", 2.0, 1e-6)
    before = ledger.show()
    with pytest.raises(potluck.BudgetError, match='Go on with budget="people"') as raised:
        release(study, north, ledger, budget="clients", out="second.parquet")
    assert "--" not in str(raised.value) and ledger.show() == before
    assert not Path("second.parquet").exists()


FORK = """
import os, sys, potluck

study = potluck.Study.load("study.toml")

def release(name):
    ledger = potluck.Ledger(name + ".ledger")
    ledger.init("people", 2.0, 1e-6)
    out = name + ".parquet"
    potluck.release(study, "north", "north.parquet", ledger=ledger, out=out, accept_low_accuracy=True)

release("parent-before")
children = []
for name in ("first-child", "second-child"):
    child = os.fork()
    if child == 0:
        release(name)
        os._exit(0)
    children.append(child)
release("parent-after")
sys.exit(max(os.waitpid(child, 0)[1] for child in children))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_a_fork_draws_other_noise(study, north):
    """All four come from one process that has drawn noise before; none may go on with what another has."""
    study.save("study.toml")
    pyarrow.parquet.write_table(north, "north.parquet")
    subprocess.run([sys.executable, "-c", FORK], check=True)
    drawn = []
    for name in ("parent-before", "first-child", "second-child", "parent-after"):
        table = pyarrow.parquet.read_table(f"{name}.parquet")
        manifest = json.loads(table.schema.metadata[b"potluck"])
        sums = [stage["result"].get("sums") for stage in manifest["stages"]]
        drawn.append([tuple(stage) for stage in sums[:-1]] + [tuple(table["mixed.age"].to_pylist())])
    for stage in zip(*drawn):
        assert len(set(stage)) == 4


def test_what_other_software_says_of_values_is_not_passed_on(study, ledger, folder):
    mixed = pandas.DataFrame(people()[0]).astype({"age": object})
    mixed.loc[3, "age"] = "secret-17"
    with pytest.raises(potluck.InputError, match="could not be handed over as an Arrow table") as raised:
        release(study, mixed, ledger)
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None and raised.value.__context__ is None

    def batches():
        yield pyarrow.table(people()[0]).to_batches()[0].slice(0, 100)
        raise RuntimeError("row of secret-17")

    broken = pyarrow.RecordBatchReader.from_batches(pyarrow.table(people()[0]).schema, batches())
    with pytest.raises(potluck.InputError, match="stopped giving rows") as raised:
        release(study, broken, ledger)
    assert "secret" not in str(raised.value)
    assert_untouched(ledger, folder)


def test_wrong_calls_are_refused_and_cost_nothing(study, north, ledger, folder):
    for change, kind, words in [
        ({"data": 7}, TypeError, "Arrow PyCapsule interface"),
        ({"data": "nowhere.csv"}, potluck.InputError, "cannot read nowhere.csv"),
        ({"study": draft()}, potluck.InputError, "not sealed; seal it with .seal()"),
        ({"party": "west"}, potluck.InputError, "its parties are north, south"),
        ({"id": "age"}, potluck.InputError, "both the id and a column"),
        ({"id": "person"}, potluck.InputError, "id=…"),
        ({"budget": "others"}, potluck.BudgetError, 'no budget "others"; set it with potluck.Ledger(…).init'),
        ({"ledger": "nowhere.ledger"}, potluck.BudgetError, "make one with potluck.Ledger"),
        ({"signing_key": "nowhere.key"}, potluck.InputError, "cannot read"),
        ({"out": "no/such/folder.parquet"}, potluck.InputError, "folder does not exist"),
        ({"out": "ledger.sqlite", "overwrite": True}, potluck.UsageError, "would be overwritten"),
        ({"study": draft(epsilon=0.01).seal(), "accept_low_accuracy": False}, potluck.UsageError, "accept_low_accuracy=True"),
        ({"confirm": lambda question: False}, potluck.UsageError, "not agreed"),
        ({"threads": 0}, ValueError, "zero"),
        ({"data": "."}, potluck.InputError, "give one CSV, Parquet or Arrow file, or a table in memory"),
    ]:
        given = {"study": study, "party": "north", "data": north, "ledger": ledger, "accept_low_accuracy": True, **change}
        with pytest.raises(kind) as raised:
            potluck.release(**given)
        assert words in str(raised.value), change
        assert "--" not in str(raised.value) and "`" not in str(raised.value)
        assert_untouched(ledger, folder)


def test_remedies_leave_what_people_named_alone(study, north, ledger, folder):
    """Even if it reads like an option of the command."""
    odd = Path("name the column that holds the ids with --id; with --force.csv")
    odd.write_text("age,smoker\n1,no\n", encoding="utf-8")
    with pytest.raises(potluck.InputError) as raised:
        release(study, odd, ledger)
    assert str(raised.value) == f'{odd}, column "id": is missing; name the column that holds the ids with id=…'
    with pytest.raises(potluck.InputError) as raised:
        release(study, north, ledger, out=odd)
    assert str(raised.value) == f"{odd} exists already; choose another name, or replace it with overwrite=True"
    ledger.init("with --budget x", 1.0, 1e-6)
    with pytest.raises(potluck.BudgetError) as raised:
        release(study, north, ledger)
    assert str(raised.value) == (
        "the ledger has the budgets people, with --budget x; say with budget=… which one this release is charged to"
    )
    assert not release(study, north, ledger, budget="people").repeated


class Reader:
    """A stream that can be read once, and says whether it was."""

    def __init__(self, table):
        self.table = table
        self.schema = table.schema
        self.reads = 0

    def __arrow_c_stream__(self, requested_schema=None):
        self.reads += 1
        batches = self.table.to_batches(max_chunksize=100)
        return pyarrow.RecordBatchReader.from_batches(self.schema, batches).__arrow_c_stream__(requested_schema)


def one_shot(table):
    return pyarrow.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=100)))


def test_a_stream_is_not_touched_before_all_is_checked_and_agreed(study, north, ledger, folder):
    Path("mine.parquet").write_text("mine")
    poor = potluck.Ledger("poor.ledger")
    poor.init("people", 0.1, 1e-6)
    narrow = north.drop_columns(["smoker"])
    refused = [
        ({"confirm": lambda question: False}, potluck.UsageError, "not agreed; no row was read"),
        ({"study": draft(epsilon=0.01).seal(), "accept_low_accuracy": False}, potluck.UsageError, "accept_low_accuracy=True"),
        ({"out": "mine.parquet"}, potluck.InputError, "exists already"),
        ({"ledger": poor}, potluck.BudgetError, "does not allow"),
        ({"budget": "others"}, potluck.BudgetError, "no budget"),
        ({"ignore_extra": False, "id": "person"}, potluck.InputError, "is missing"),
    ]
    reader, watched = one_shot(north), Reader(north)
    for change, kind, words in refused:
        for data in (reader, watched):
            with pytest.raises(kind, match=words):
                potluck.release(**{"study": study, "party": "north", "data": data, "ledger": ledger, "accept_low_accuracy": True, **change})
        assert watched.reads == 0
    with pytest.raises(potluck.InputError, match='column "smoker": is missing'):
        release(study, watched_narrow := Reader(narrow), ledger)
    assert watched_narrow.reads == 0
    assert_untouched(ledger, folder)
    first = release(study, reader, ledger)
    assert not first.repeated, "it could still be read"
    # What was published before comes out again without its table.
    assert release(study, watched, ledger, out="again.parquet").repeated and watched.reads == 0
    assert release(study, reader, ledger, out="third.parquet").content_hash == first.content_hash


def test_nobody_is_kept_from_the_ledger_while_a_person_thinks(study, north, ledger):
    class Slow(Reader):
        def __arrow_c_stream__(self, requested_schema=None):
            looked.append(ledger.show())
            return super().__arrow_c_stream__(requested_schema)

    looked = []
    release(study, Slow(north), ledger, confirm=lambda question: not looked.append(ledger.show()))
    assert [one["sessions"] for one in looked] == [[], []]


def test_paths_need_not_be_text(study, north, folder):
    odd = os.fsdecode(b"\xff\xfe")
    ledger = potluck.Ledger(f"{odd}.ledger")
    ledger.init("people", 2.0, 1e-6)
    assert os.fspath(ledger) == ledger.path == f"{odd}.ledger"
    published = release(study, north, ledger, out=f"{odd}.parquet")
    assert os.path.exists(published) and published.path == f"{odd}.parquet" and repr(published)
    sums = potluck.sums(study, "north", north, state=odd)
    assert os.path.exists(sums)


def test_what_is_left_of_a_budget_is_shown(study, north, ledger):
    published = release(study, north, ledger)
    assert "nothing of the budget is left" in repr(published) and published.budget_delta > 0
    empty = potluck.Published._of("p", "c", "s", "north", None, False, 0.0, 1.0, 1e-6)
    assert repr(empty) == "<Published p: release of north, nothing of the budget is left>"


def test_a_public_dataset_is_no_table_of_a_party(dataset, study, ledger, folder):
    from potluck import LinearRegression

    regression = LinearRegression().fit(dataset, "pressure")
    for call in (
        lambda: release(study, dataset, ledger),
        lambda: study.validate("north", dataset),
        lambda: potluck.sums(study, "north", dataset, state="state"),
        lambda: regression.predict(dataset),
        lambda: regression.score(dataset),
    ):
        with pytest.raises(potluck.UsageError, match="PublicDataset, whose rows are mixed"):
            call()


def test_a_budget_is_not_overspent(study, north, ledger):
    release(study, north, ledger)
    with pytest.raises(potluck.BudgetError, match="does not allow this release") as raised:
        release(draft().seal(), north, ledger, out="second.parquet")
    assert raised.value.exit_code == 4 and not Path("second.parquet").exists()
    with pytest.raises(potluck.BudgetError, match="set once"):
        ledger.init("people", 9.0, 1e-6)


def test_files_are_not_replaced_unasked(study, north, ledger, folder):
    Path("mine.parquet").write_text("mine")
    with pytest.raises(potluck.InputError, match="overwrite=True"):
        release(study, north, ledger, out="mine.parquet")
    assert_untouched(ledger, folder)
    release(study, north, ledger, out="mine.parquet", overwrite=True)


def test_the_question_says_what_is_promised(study, north, ledger, monkeypatch):
    asked = []
    release(study, north, ledger, confirm=lambda question: not asked.append(question))
    assert "charge 100.0% of budget" in asked[0] and "joint guarantee" in asked[0]
    monkeypatch.setattr("builtins.input", lambda _: pytest.fail("asked again for what was charged before"))
    assert release(study, north, ledger, confirm=True).repeated


def test_columns_that_the_study_does_not_name_can_be_left_alone(study, north, ledger):
    wide = north.append_column("salary", pyarrow.array([1.0] * ROWS)).append_column("smoker2", north["smoker"])
    release(study, wide, ledger, ignore_extra=True)


LONG = 2_000_000
"""Rows of a release that takes long enough to be interrupted."""


@pytest.fixture(scope="module")
def long():
    rng = numpy.random.default_rng(5)
    study = Study.new(
        name="long",
        rows=LONG,
        epsilon=1.0,
        delta=1e-7,
        parties={"north": [Numeric("a", 0, 1), Numeric("b", 0, 1), Categorical("c", ["0", "1"])]},
    ).seal()
    columns = {"id": rng.permutation(LONG), "a": rng.random(LONG), "b": rng.random(LONG), "c": rng.integers(0, 2, LONG)}
    return study, pyarrow.table(columns)


def interrupt_in(first_pass):
    """A report of progress that interrupts in this pass or a later one."""

    def report(at, done, rows):
        assert 0 <= done <= rows == LONG
        if at >= first_pass:
            raise KeyboardInterrupt

    return report


def test_an_interrupt_before_the_first_noise_costs_nothing(long, ledger, folder):
    study, table = long
    with pytest.raises(KeyboardInterrupt):
        release(study, table, ledger, threads=1, progress=interrupt_in(1))
    assert_untouched(ledger, folder)
    assert not release(study, table, ledger).repeated


def test_an_interrupt_between_stages_is_taken_up_at_no_further_charge(long, ledger, folder):
    study, table = long
    with pytest.raises(KeyboardInterrupt) as raised:
        release(study, table, ledger, threads=1, progress=interrupt_in(2))
    if sys.version_info >= (3, 11):
        assert "the charge stands" in raised.value.__notes__[0]
    charged = spent(ledger)
    assert charged > 0 and not list(folder.glob("*.release.parquet"))
    first = release(study, table, ledger)
    assert spent(ledger) == charged and not first.repeated
    assert release(study, table, ledger, out="again.parquet").content_hash == first.content_hash


def test_signals_are_handled_in_long_calls(long, ledger, folder):
    study, table = long

    def alarm(number, frame):
        raise TimeoutError("time is up")

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        with pytest.raises(TimeoutError, match="time is up"):
            release(study, table, ledger, threads=1, progress=False)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not list(folder.glob("*.release.parquet"))


def test_other_threads_run_meanwhile(long, ledger):
    study, table = long
    turns, done = [], threading.Event()

    def count():
        while not done.wait(0.002):
            turns.append(time.perf_counter())

    counter = threading.Thread(target=count)
    counter.start()
    begin = time.perf_counter()
    release(study, table, ledger)
    end = time.perf_counter()
    done.set()
    counter.join()
    assert sum(begin < turn < end for turn in turns) > 10


def test_a_bar_is_shown_where_it_is_asked_for(long, ledger, capfd):
    study, table = long
    release(study, table, ledger, threads=1, progress=True)
    out, shown = capfd.readouterr()
    assert "pass 1 of 4" in shown and "rows" in shown and out == ""
    release(study, table, ledger, out="again.parquet")
    assert capfd.readouterr() == ("", ""), "nobody is there to see it"


def test_progress_ends_with_all_rows(study, north, ledger):
    told = []

    def report(*numbers):
        told.append(numbers)

    release(study, north, ledger, progress=report)
    assert told[-1] == (4, ROWS, ROWS)
    study.validate("north", north, progress=report)
    assert told[-1] == (1, ROWS, ROWS)
    potluck.sums(study, "north", north, state="state", progress=report)
    assert told[-1] == (1, ROWS, ROWS)
    told.clear()
    study.validate("north", north, progress=False)
    assert not told


def test_a_bar_in_a_notebook_needs_no_widgets(study, north):
    program = """
import sys, time, types, warnings
warnings.simplefilter("error")
sys.modules["ipywidgets"] = None
IPython = types.ModuleType("IPython")
IPython.get_ipython = lambda: types.SimpleNamespace(kernel=True)
sys.modules["IPython"] = IPython
from potluck._progress import reporting
with reporting(None, 10, 4) as tell:
    tell(1, 5)
    time.sleep(0.6)
    tell(2, 5)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "pass 2 of 4" in done.stderr and "pass 1" not in done.stderr, "not for what is over at once"


def test_tables_that_are_checked_can_be_kept_on_disk(study, north):
    study.validate("north", one_shot(north), spool=True)
    kept = potluck.sums(study, "north", one_shot(north), state="disk", spool=True)
    held = potluck.sums(study, "north", north, state="memory")
    assert Path(kept).read_bytes() == Path(held).read_bytes()
    with pytest.raises(potluck.InputError, match="temporary file.*tmp_dir="):
        study.validate("north", one_shot(north), spool=True, tmp_dir="no-such-folder")


def test_most_values_lost_is_refused_before_the_charge(study, north, ledger, folder):
    wrong = north.set_column(north.schema.get_field_index("age"), "age", [[5000.0] * 400])
    with pytest.raises(potluck.InputError, match="more than half.*accept_lost_values=True") as raised:
        release(study, wrong, ledger)
    assert "--" not in str(raised.value)
    assert_untouched(ledger, folder)
    assert [refused["reason"] for refused in ledger.show()["refusals"]] == ["lost-values"]
    release(study, wrong, ledger, accept_lost_values=True)


def test_a_budget_is_raised_after_asking(study, north, ledger):
    release(study, north, ledger)
    budget = ledger.show()["budgets"][0]
    assert budget["epsilon_left"] == 0.0 and abs(budget["epsilon_spent"] - 2.0) < 1e-6
    asked = []
    with pytest.raises(potluck.UsageError, match="nothing was changed"):
        ledger.raise_budget("people", 3.0, 1e-6, confirm=lambda question: asked.append(question))
    assert "ε = 3" in asked[0] and "out already included" in asked[0]
    assert ledger.show()["raises"] == []
    raised = ledger.raise_budget("people", 3.0, 1e-6, confirm=False)
    assert raised["epsilon"] == 3.0 and raised["epsilon_left"] > 0
    assert ledger.show()["raises"][0]["old_epsilon"] == 2.0
    with pytest.raises(potluck.BudgetError, match="never lowered"):
        ledger.raise_budget("people", 2.5, 1e-6, confirm=False)
