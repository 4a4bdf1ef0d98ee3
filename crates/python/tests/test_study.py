"""Studies: built, read, sealed, planned."""

import copy
import datetime
import json
import math
import pickle
import re
import time
from pathlib import Path

import pyarrow
import pytest
from conftest import assert_untouched, command, draft

import potluck
from potluck import Categorical, Numeric, Study


def test_a_study_built_in_code_is_the_one_that_is_read_back(folder):
    built = draft()
    built.save("draft.toml")
    assert Study.load("draft.toml") == built
    assert Study.parse(built.to_toml()) == built
    assert not built.sealed and built.id is None
    assert (built.name, built.rows, built.epsilon, built.delta) == ("blood pressure", 400, 2.0, 1e-6)
    assert (built.method, built.id_kind, built.parties) == ("calibrated", "integer", ["north", "south"])
    age, smoker = built.columns["north"]
    assert age == Numeric("age", 18, 90, unit="years")
    assert smoker == Categorical("smoker", ["no", "yes"], description="smokes daily")
    assert repr(age) == 'Numeric("age", 18, 90, unit="years")'
    assert repr(smoker) == 'Categorical("smoker", ["no", "yes"], description="smokes daily")'


def test_columns_show_all_that_was_said_of_them():
    whole = Numeric("a", 0, 1, unit="m", description='"long"', missing="error")
    assert repr(whole) == 'Numeric("a", 0, 1, unit="m", description="\\"long\\"", missing="error")'
    level = Categorical("b", ["x", "other"], unknown="other", missing="error")
    assert repr(level) == 'Categorical("b", ["x", "other"], unknown="other", missing="error")'
    for column in (whole, level, Numeric("a", 0, 1), Categorical("b", ["x", "y"])):
        assert eval(repr(column)) == column
    for lo, hi in [(0, math.inf), (-math.inf, 0), (math.nan, 1)]:
        with pytest.raises(potluck.InputError, match='bounds of column "a" .* finite'):
            Numeric("a", lo, hi)


def test_bounds_may_be_dates():
    first, last = datetime.date(1990, 1, 31), datetime.date(2010, 12, 31)
    born = Numeric("born", first, last)
    days = [(day - datetime.date(1970, 1, 1)).days for day in (first, last)]
    assert [born.lo, born.hi] == days and born.unit == "days since 1970-01-01"
    assert born == Numeric("born", *days, unit="days since 1970-01-01")
    for wrong in [(first, 1.0, {}), (0, last, {}), (first, last, {"unit": "years"})]:
        with pytest.raises(potluck.InputError):
            Numeric("born", wrong[0], wrong[1], **wrong[2])


def test_columns_and_studies_can_be_pickled_copied_and_hashed(study):
    columns = [
        Numeric("a", -0.0, 1, unit="m", description="long", missing="error"),
        Categorical("b", ["x", "other"], unknown="other"),
    ]
    later = extension(study)
    for one in [*columns, draft(), study, later]:
        for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)):
            assert again == one and hash(again) == hash(one)
    assert hash(Numeric("a", 0.0, 1)) == hash(Numeric("a", -0.0, 1)) and Numeric("a", 0.0, 1) == Numeric("a", -0.0, 1)
    assert len({draft(), draft(), study, Study.parse(study.to_toml()), later}) == 3
    assert pickle.loads(pickle.dumps(later)).seal() == later.seal()


def of_different_people(**more):
    columns = {"north": [Numeric("age", 18, 90, typical=50)], "south": [Numeric("pressure", 90, 190, missing="never")]}
    return Study.new(name="cohorts", rows=5000, epsilon=4, delta=1e-6, parties=columns, id="text", **more)


def test_parties_may_hold_different_people():
    rules = ["trim", "lowercase", "strip-zeros"]
    study = of_different_people(
        party_rows={"north": 8000}, overlap=(0.5, 1), overlaps={("north", "south"): "all"}, id_rules=rules
    )
    text = study.to_toml()
    for said in ["format = 2", "rows = 8000", "overlap = [0.5, 1.0]", "share = [1.0, 1.0]", "typical = 50", '"never"']:
        assert said in text.replace("[\n    0.5,\n    1.0,\n]", "[0.5, 1.0]").replace("[\n    1.0,\n    1.0,\n]", "[1.0, 1.0]")
    assert Study.parse(text) == study
    age, pressure = study.columns["north"][0], study.columns["south"][0]
    assert (age.typical, age.missing, pressure.missing) == (50, None, "never")
    assert eval(repr(age)) == age and pickle.loads(pickle.dumps(age)) == age
    assert of_different_people(format=2).plan()["outlook"]["overlap"] == 1.0
    with pytest.raises(potluck.InputError, match="west"):
        of_different_people(party_rows={"west": 10})
    with pytest.raises(potluck.InputError, match="format 2|format = 2"):
        of_different_people(format=1, overlap="all")
    outlook = [of_different_people(format=2).plan(overlap=share)["outlook"] for share in (1.0, 0.5)]
    assert outlook[1]["coefficient_error"] > 1.5 * outlook[0]["coefficient_error"]
    with pytest.raises(potluck.InputError, match="from 0 to 1"):
        of_different_people(format=2).plan(overlap=2)


def test_a_steward_sees_what_rules_make_of_ids():
    study = of_different_people(id_rules=["trim", "lowercase", "strip-zeros"])
    table = {"id": [" P007", "p8", "P7"], "age": [20.0, 30.0, 40.0]}
    look = study.ids("north", pyarrow.table(table))
    assert (look["rows"], look["changed"], look["collisions"], look["repeated"]) == (3, 2, 1, 0)
    assert look["examples"][0] == {"row": 1, "written": [" P007"], "id": ["p7"]}
    assert [[one["row"] for one in rows] for rows in look["alike"]] == [[1, 3]]
    assert study.ids("north", pyarrow.table(table), show=0)["examples"] == []


def extension(base, **more):
    given = {"name": "later", "rows": base.rows, "epsilon": base.epsilon, "delta": base.delta, **more}
    return Study.new(**{"parties": {"east": [Numeric("steps", 0, 30_000)]}, **given}, base=base)


def test_a_study_can_be_extended(study):
    later = extension(study)
    assert not later.sealed and later.extends == study.id and later.parties == ["north", "south", "east"]
    later.save("later.toml")
    study.save("study.toml")
    assert Study.load("later.toml", base=study) == later == Study.parse(later.to_toml(), base=study)
    assert later.plan() == command("plan", "later.toml", "--base", "study.toml", "--json")
    assert "steps" in later._repr_html_()
    command("study", "seal", "later.toml", "--base", "study.toml", "--out", "sealed.toml")
    sealed = later.seal()
    assert sealed.sealed and sealed == Study.load("sealed.toml") and sealed.extends == study.id
    for call, kind, words in [
        (lambda: Study.load("later.toml"), potluck.InputError, f"extends {study.id}; pass .* with base=Study.load"),
        (lambda: Study.load("sealed.toml", base=study), potluck.UsageError, "leave base out"),
        (lambda: Study.parse(draft().to_toml(), base=study), potluck.InputError, "or leave base out"),
        (lambda: Study.load("later.toml", base=draft().seal()), potluck.InputError, "given as its base"),
        (lambda: extension(draft()), potluck.InputError, "not sealed"),
        (lambda: extension(study, rows=500), potluck.InputError, "set rows = 400"),
    ]:
        with pytest.raises(kind, match=words) as raised:
            call()
        assert "--" not in str(raised.value)


def test_the_parties_of_a_study_that_is_extended_do_not_release_again(study, north, ledger, folder):
    with pytest.raises(potluck.InputError, match="releases under the study that lists it"):
        potluck.release(extension(study).seal(), "north", north, ledger=ledger)
    assert_untouched(ledger, folder)


def test_sealing_draws_a_key_and_keeps_what_people_wrote():
    text = "# ours\n" + draft().to_toml()
    first, second = Study.parse(text).seal(), Study.parse(text).seal()
    assert first.sealed and first.id != second.id, "each has a key of its own"
    assert first.to_toml().startswith("# ours\n")
    first.save("study.toml")
    assert Study.load("study.toml") == first
    assert command("study", "check", "study.toml", "--json")["id"] == first.id
    with pytest.raises(potluck.InputError, match="sealed already"):
        first.seal()


def test_an_edited_study_is_refused():
    text = draft().seal().to_toml().replace("hi = 90", "hi = 91")
    with pytest.raises(potluck.IntegrityError, match="does not follow") as raised:
        Study.parse(text)
    assert raised.value.exit_code == 5


@pytest.mark.parametrize("sealed", [False, True])
def test_the_plan_is_that_of_the_command(sealed):
    study = draft().seal() if sealed else draft()
    study.save("study.toml")
    assert study.plan() == command("plan", "study.toml", "--json")


def test_a_simulation_is_that_of_the_command(folder):
    study = draft()
    study.save("study.toml")
    options = {"label": "age", "rows": 3000, "releases": 3, "signal": 0.6, "correlation": 0.2, "seed": 5}
    told = []
    preview = study.simulate(**options, progress=lambda *numbers: told.append(numbers))
    named = [text for name, value in options.items() for text in (f"--{name}", value)]
    theirs = command("simulate", "study.toml", *named, "--report", "theirs.html", "--json")
    assert preview.to_dict() == dict(preview) == json.loads(preview.to_json()) == theirs
    assert (preview.label, preview.rows, preview.releases) == ("age", 3000, 3)
    assert preview["coefficients"] == preview.coefficients and len(preview.coefficients) == 2
    assert told[-1] == (1, 3, 3)
    assert preview.report_html() == Path("theirs.html").read_text(encoding="utf-8")
    preview.report_html("ours.html")
    with pytest.raises(potluck.InputError, match="overwrite=True"):
        preview.report_html("ours.html")
    again = pickle.loads(pickle.dumps(preview))
    assert dict(again) == dict(preview) and again.report_html() == preview.report_html()
    assert study.simulate(**{**options, "seed": 6}).coefficients != preview.coefficients
    assert draft().seal().simulate(rows=3000, releases=2, threads=1).label == "pressure"


def test_a_simulation_can_be_interrupted_and_explains_mistakes():
    def stop(at, done, total):
        raise KeyboardInterrupt

    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        draft().simulate(rows=20_000, releases=10_000, progress=stop)
    assert time.perf_counter() - begin < 20
    for options, kind, words in [
        ({"signal": 1.0}, potluck.UsageError, "^signal must"),
        ({"correlation": -0.1}, potluck.UsageError, "^correlation must"),
        ({"releases": 1}, potluck.UsageError, "^releases must be 2 to 10000"),
        ({"rows": 200_000_000}, potluck.UsageError, "rows=…"),
        ({"label": "height"}, potluck.InputError, "age, smoker, pressure"),
    ]:
        with pytest.raises(kind, match=words):
            draft().simulate(**options)


def test_mistakes_are_explained():
    for change, words in [
        ({"rows": 1}, "rows"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"id": "name"}, 'study.id: is "name"; write "integer" or "text" or "row"'),
        ({"parties": {}}, "party"),
        ({"parties": {"north": [Numeric("age", 9, 3)]}}, '"age"'),
        ({"parties": {"north": [Categorical("smoker", ["yes"])]}}, '"smoker"'),
    ]:
        given = {"name": "x", "rows": 100, "epsilon": 1.0, "delta": 1e-6, **change}
        given.setdefault("parties", {"north": [Numeric("a", 0, 1), Numeric("b", 0, 1)]})
        with pytest.raises(potluck.InputError, match=words):
            Study.new(**given)
    with pytest.raises(potluck.InputError, match="clip_norm names 'nroth', which is no party"):
        Study.new(name="x", rows=100, epsilon=1, delta=1e-6, parties={"north": [Numeric("a", 0, 1)]}, clip_norm={"nroth": 1.2})
    with pytest.raises(TypeError, match="Numeric or a Categorical"):
        Study.new(name="x", rows=10, epsilon=1, delta=1e-6, parties={"north": ["age"]})
    with pytest.raises(potluck.InputError, match="cannot read"):
        Study.load("nowhere.toml")
    Path("table.parquet").write_bytes(b"PAR1\xff\xfe")
    with pytest.raises(potluck.InputError, match="not a potluck study: it is not text"):
        Study.load("table.parquet")
    with pytest.raises(potluck.InputError, match="Study.new"):
        Study.parse("format = \n")


def test_all_mistakes_are_listed():
    with pytest.raises(potluck.InputError) as parsed:
        Study.parse(draft().to_toml().replace("hi = 90", "high = 90") + "[studdy]\n")
    with pytest.raises(potluck.InputError) as built:
        Study.new(name="x", rows=1, epsilon=-1.0, delta=1e-6, id="name", parties={"no rth": [Numeric("a", 1, 0)]})
    for raised, words in [
        (parsed, [r"column \"age\": high: is not a key that belongs here; did you mean hi\?", "studdy: .* mean study"]),
        (built, ["study.rows: ", "study.id: ", "privacy.epsilon: ", 'party "no rth": name: ', 'column "a": hi: ']),
    ]:
        lines = str(raised.value).splitlines()
        assert lines[0] == f"{len(words)} things in the study are wrong:" and len(lines) == len(words) + 1
        for line, pattern in zip(lines[1:], words, strict=True):
            assert re.search(pattern, line), line


def test_every_method_of_the_paper_can_be_built():
    columns = {"north": [Numeric("a", 0, 1), Numeric("b", 0, 1)]}
    common = {"name": "x", "rows": 1000, "epsilon": 0.5, "delta": 1e-6, "parties": columns}
    dense = Study.new(**common, method="rmgm", mixing="bernoulli", k=50, clip_norm={"north": 1.2}).seal()
    assert dense.plan()["k"] == 50
    assert Study.new(**common, method="dgm", id="row").seal().plan()["k"] == 1000
    assert Study.new(**common, preset="paper").method == "rmgm"


def test_a_table_is_validated_without_being_released(study, north, ledger, folder):
    study.validate("north", north)
    draft().validate("north", north)
    with pytest.raises(potluck.InputError, match='column "id", row 2: the id is the same as in row 1'):
        study.validate("north", north.set_column(0, "id", [[1, 1, *range(2, 400)]]))
    with pytest.raises(potluck.InputError, match="fewer rows"):
        study.validate("north", north.slice(1))
    assert_untouched(ledger, folder)


def test_a_validation_counts_and_says_everything_at_once(study, north, ledger, folder):
    found = study.validate("north", north)
    assert found["rows"] == 400 and found["ids"]["duplicates"] == 0 and found["problems"] == []
    assert [column["column"] for column in found["columns"]] == ["age", "smoker"]
    bad = north.set_column(0, "id", [[1, 1, *range(2, 400)]]).slice(0, 399)
    levels = ["secretword", *north["smoker"].to_pylist()[1:399]]
    bad = bad.set_column(bad.schema.get_field_index("smoker"), "smoker", [levels])
    with pytest.raises(potluck.InputError) as raised:
        study.validate("north", bad)
    said = str(raised.value)
    assert "the id is the same as in row 1" in said and "fewer rows" in said and "--" not in said
    report = raised.value.report
    assert report["rows"] == 399 and report["columns"][1]["unknown"] == 1
    assert "secretword" not in said + str(report)
    with pytest.raises(potluck.InputError) as raised:
        study.validate("north", bad, show_values=True)
    assert raised.value.report["columns"][1]["unknown_levels"] == [{"level": "secretword", "values": 1}]
    assert_untouched(ledger, folder)
    assert ledger.show()["refusals"] == []


def test_what_to_ask_before_signing_is_there(study):
    assert study.warnings == study.plan()["warnings"]
    assert any("ε is large" in warning for warning in draft(epsilon=12.0).warnings)


def test_studies_show_themselves(study):
    assert "not sealed" in repr(draft()) and study.id[:12] in repr(study)
    html = study._repr_html_()
    assert study.id[:16] in html and "smokes daily" in html and "potluck-card" in html
    assert ":root" not in html, "a card leaves the page around it alone"
    assert "not sealed yet" in draft()._repr_html_()


def test_cards_escape_what_people_wrote():
    evil = "<script>alert(1)</script>"
    columns = [Numeric(evil, 0, 1, unit=evil, description=evil), Categorical("b", [evil, "y"])]
    card = Study.new(name=evil, rows=1000, epsilon=1, delta=1e-6, parties={"p": columns})._repr_html_()
    assert "<script" not in card and card.count("&lt;script&gt;") >= 3
