"""Public datasets and regressions on them; the same as by the command."""

import copy
import html
import json
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from conftest import command, draft, people

import potluck
from potluck import LinearRegression, PublicDataset


def test_a_dataset_is_the_same_by_the_command(dataset):
    dataset.study.save("study.toml")
    dataset.save("public.parquet")
    files = ["north.release.parquet", "south.release.parquet"]
    theirs = command("join", "study.toml", *files, "--out", "theirs.parquet", "--json")
    assert theirs["content_hash"] == dataset.content_hash
    assert Path("theirs.parquet").read_bytes() == Path("public.parquet").read_bytes()
    assert (theirs["columns"], theirs["parties"], theirs["rows"]) == (dataset.columns, dataset.parties, len(dataset))
    shown = command("inspect", "public.parquet", "--json")
    assert shown["summary"] == dataset.moments()
    assert PublicDataset.load("public.parquet").content_hash == dataset.content_hash
    with pytest.raises(potluck.InputError, match="exists already"):
        dataset.save("public.parquet")


def test_a_changed_file_is_noticed(dataset, study):
    table = pyarrow.parquet.read_table("north.release.parquet")
    changed = table.set_column(0, table.column_names[0], pyarrow.array([0.0] * table.num_rows))
    pyarrow.parquet.write_table(changed, "north.release.parquet")
    with pytest.raises(potluck.IntegrityError) as raised:
        potluck.join(study, ["north.release.parquet", "south.release.parquet"])
    assert raised.value.exit_code == 5


def test_missing_parties_are_named(dataset, study):
    with pytest.raises(potluck.InputError, match="partial=True"):
        potluck.join(study, ["north.release.parquet"])
    assert potluck.join(study, ["north.release.parquet"], partial=True).parties == ["north"]


def test_every_reader_sees_the_same_numbers(dataset):
    dataset.save("public.parquet")
    expected = pyarrow.parquet.read_table("public.parquet")
    assert dataset.to_arrow().equals(expected.replace_schema_metadata(None), check_metadata=False)
    pandas.testing.assert_frame_equal(dataset.to_pandas(), expected.to_pandas())
    assert dataset.to_polars().equals(polars.read_parquet("public.parquet"))
    taken = duckdb.sql('SELECT sum("mixed.age") FROM dataset').fetchall()
    assert taken[0][0] == pytest.approx(expected["mixed.age"].to_numpy().sum())
    assert pyarrow.schema(dataset).names == [f"mixed.{name}" for name in dataset.columns]


def test_the_columns_are_handed_over_without_a_copy_each_time(dataset):
    def addresses():
        return [column.chunk(0).buffers()[1].address for column in pyarrow.table(dataset).columns]

    first = pyarrow.table(dataset)
    assert addresses() == [column.chunk(0).buffers()[1].address for column in first.columns]


def test_pandas_needs_no_pyarrow(dataset):
    dataset.save("public.parquet")
    program = """
import sys
sys.modules["pyarrow"] = None
import potluck
frame = potluck.PublicDataset.load("public.parquet").to_pandas()
print(len(frame), *frame.columns)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == [str(len(dataset)), *(f"mixed.{name}" for name in dataset.columns)], done.stderr


def test_promises_are_said_in_words_and_numbers(dataset):
    words = dataset.privacy_statement()
    assert "table of north" in words and "table of south" in words and "joint guarantee" in words
    numbers = dataset.guarantee()
    assert numbers["per_party"]["epsilon"] == 2.0 < numbers["joint"]["epsilon"]
    assert numbers["joint"] == dataset.study.plan()["joint"]
    assert dataset.signed_by == {"north": None, "south": None}


@pytest.mark.parametrize("options", [{}, {"learner": "ols", "ridge": 0.01}, {"learner": "debiased", "level": 0.8}])
def test_a_fit_is_that_of_the_command(dataset, options):
    dataset.save("public.parquet")
    regression = LinearRegression(**options).fit(dataset, "pressure", ["age", "smoker"])
    arguments = [f"--{name}={value}" for name, value in options.items()]
    theirs = command("fit", "public.parquet", "--label", "pressure", "--features", "age,smoker", *arguments, "--json")
    assert json.loads(regression.to_json()) == theirs
    assert regression.to_json() == command_text("public.parquet", arguments)


def command_text(path, arguments):
    command("fit", path, "--label", "pressure", "--features", "age,smoker", *arguments, "--out", "model.json")
    return Path("model.json").read_text(encoding="utf-8")


def strict(regression):
    """The regression as of a study that refuses values that are no level."""
    model = json.loads(regression.to_json())
    for term in [model["label"], *(one["term"] for one in model["coefficients"])]:
        if "level" in term:
            term["level"]["unknown"] = "error"
    Path("strict.json").write_text(json.dumps(model), encoding="utf-8")
    return LinearRegression.load("strict.json")


def test_predictions_are_those_of_the_command(dataset):
    regression = LinearRegression().fit(dataset, "pressure")
    regression.save("model.json")
    table = pyarrow.table({"age": [30.0, 200.0, None], "smoker": ["yes", "no", None]})
    pyarrow.parquet.write_table(table, "new.parquet")
    theirs = command("predict", "model.json", "--data", "new.parquet", "--json")["predictions"]
    expected = numpy.array([one["prediction"] for one in theirs])
    rounded = [float(value) for value in command("predict", "model.json", "--data", "new.parquet").split()[1:]]
    numpy.testing.assert_allclose(rounded, expected, atol=0.5 * regression.model_.prediction_error / 100)
    loaded = LinearRegression.load("model.json")
    for data in (table, table.to_pandas(), polars.DataFrame(table), "new.parquet", duckdb.sql("FROM 'new.parquet'")):
        assert (regression.predict(data) == expected).all()
        assert (loaded.predict(data) == expected).all()
    with pytest.raises(potluck.InputError, match='column "smoker": is missing'):
        regression.predict(pyarrow.table({"age": [1.0]}))
    with pytest.raises(potluck.InputError, match="model's levels"):
        strict(regression).predict(pyarrow.table({"age": [1.0], "smoker": ["sometimes"]}))


def test_intervals_of_predictions_hold_the_labels_of_new_people(folder):
    rows = 20_000
    study = draft(rows).seal()
    tables = dict(zip(("north", "south"), map(pyarrow.table, people(rows)), strict=True))
    releases = []
    for party, table in tables.items():
        own = potluck.Ledger(f"{party}.ledger")
        own.init("people", 2.0, 1e-6)
        releases.append(potluck.release(study, party, table, ledger=own, accept_low_accuracy=True))
    dataset = potluck.join(study, releases)
    regression = LinearRegression().fit(dataset, "pressure")
    both = pandas.DataFrame(people(rows)[0]).merge(pandas.DataFrame(people(rows)[1]), on="id")
    predicted, low, high = regression.predict(both[["age", "smoker"]], interval=0.9)
    held = ((low <= both["pressure"]) & (both["pressure"] <= high)).mean()
    assert held > 0.85, held
    assert (regression.predict(both) == predicted).all() and (low >= 80).all() and (high <= 200).all()
    regression.save("model.json")
    both[["age", "smoker"]].head(3).to_csv("new.csv", index=False)
    theirs = command("predict", "model.json", "--data", "new.csv", "--interval", "0.9", "--json")["predictions"]
    assert [[one["prediction"], one["low"], one["high"]] for one in theirs] == [
        list(row) for row in zip(predicted[:3], low[:3], high[:3], strict=True)
    ]
    with pytest.raises(potluck.InputError, match="are shares already"):
        LinearRegression().fit(dataset, "smoker").predict(both, interval=0.9)


def test_summaries_say_what_to_take_home_and_what_levels_are_compared_with(dataset):
    summary = LinearRegression().fit(dataset, "pressure").summary()
    assert " at the 95% level" in summary.split("\n\n")[0]
    assert "smoker=yes (rather than no)" in summary


def test_attributes_follow_the_conventions_of_scikit_learn(dataset):
    from sklearn.base import clone

    regression = LinearRegression(level=0.9)
    assert regression.fit(dataset, "pressure") is regression
    assert regression.coef_names_.tolist() == ["age", "smoker=yes"] and regression.dataset_ is dataset
    assert regression.feature_names_in_.tolist() == ["age", "smoker"] and regression.n_features_in_ == 2
    frame = pandas.DataFrame(people()[0])
    assert (regression.predict(frame[regression.feature_names_in_]) == regression.predict(frame)).all()
    assert regression.coef_.shape == (2,) and isinstance(regression.intercept_, float)
    assert regression.conf_int().shape == (2, 2)
    assert (regression.conf_int()[:, 0] < regression.coef_).all()
    assert (regression.conf_int(level=0.9) == regression.conf_int()).all()
    assert (regression.conf_int(level=0.99)[:, 1] > regression.conf_int()[:, 1]).all()
    with pytest.raises(TypeError):
        regression.conf_int(0.05)  # By position it would be alpha in statsmodels.
    numpy.testing.assert_allclose(regression.bse_**2, numpy.diag(regression.model_.covariance)[1:])
    copy = clone(regression)
    assert copy.get_params() == {"learner": "posterior", "ridge": 1e-4, "level": 0.9} and not hasattr(copy, "coef_")
    assert copy.set_params(learner="ols").learner == "ols"
    assert repr(copy) == "LinearRegression(learner='ols', ridge=0.0001, level=0.9)"
    with pytest.raises(potluck.UsageError, match="no parameter"):
        copy.set_params(depth=3)
    with pytest.raises(potluck.UsageError, match="not fitted") as raised:
        copy.predict("new.csv")
    for kind in (potluck.NotFittedError, ValueError, AttributeError):
        assert isinstance(raised.value, kind)


def test_scikit_learn_sees_whether_it_is_fitted(dataset):
    from sklearn.base import is_regressor
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    regression = LinearRegression()
    with pytest.raises(NotFittedError):
        check_is_fitted(regression)
    check_is_fitted(regression.fit(dataset, "pressure"))
    assert is_regressor(regression)


def test_a_score_is_that_of_scikit_learn(dataset):
    from sklearn.metrics import r2_score

    north, south = people()
    table = pandas.DataFrame(north).merge(pandas.DataFrame(south), on="id")
    regression = LinearRegression().fit(dataset, "pressure")
    expected = r2_score(table["pressure"], regression.predict(table))
    assert regression.score(table) == pytest.approx(expected, rel=1e-12)
    table.to_csv("table.csv", index=False)
    assert regression.score("table.csv") == pytest.approx(expected, rel=1e-12)
    gaps = table.assign(pressure=table["pressure"].where(table.index % 3 > 0))
    kept = table[table.index % 3 > 0]
    assert regression.score(gaps) == pytest.approx(r2_score(kept["pressure"], regression.predict(kept)), rel=1e-12)
    for label in ("smoker", "smoker=yes"):
        levels = LinearRegression().fit(dataset, label)
        is_yes = (table["smoker"] == "yes").astype(float)
        if levels.label_ == "smoker=no":
            is_yes = 1 - is_yes
        assert levels.score(table) == pytest.approx(r2_score(is_yes, levels.predict(table)), rel=1e-12)
    with pytest.raises(potluck.InputError, match='column "pressure": is missing'):
        regression.score(pandas.DataFrame(north))
    with pytest.raises(potluck.InputError, match="no row of the table has a label"):
        regression.score(table.assign(pressure=float("nan")))
    with pytest.raises(potluck.InputError, match="model's levels"):
        strict(LinearRegression().fit(dataset, "smoker")).score(table.assign(smoker="sometimes"))


def test_what_is_public_can_be_pickled_and_copied(dataset):
    import joblib

    regression = LinearRegression(level=0.9).fit(dataset, "pressure")
    table = pandas.DataFrame(people()[0])
    joblib.dump(regression, "regression.joblib")
    for again in (pickle.loads(pickle.dumps(regression)), copy.deepcopy(regression), joblib.load("regression.joblib")):
        assert again.summary() == regression.summary() and again.get_params() == regression.get_params()
        assert (again.predict(table) == regression.predict(table)).all()
        assert again.report_html() == regression.report_html()
        assert again.dataset_.content_hash == dataset.content_hash
    stored = pickle.dumps(dataset)
    with pytest.raises(potluck.Error):
        pickle.loads(stored.replace(b"PAR1", b"PARX"))
    published = potluck.Ledger("north.ledger"), potluck.release(
        dataset.study, "north", "nothing.csv", ledger="north.ledger", out="again.parquet"
    )
    ledger, release = pickle.loads(pickle.dumps(published))
    assert ledger.path == "north.ledger" and ledger.show() == published[0].show()
    assert repr(release) == repr(published[1]) and release.content_hash == published[1].content_hash
    assert potluck.join(dataset.study, [release, "south.release.parquet"]).content_hash == dataset.content_hash


def test_predictions_report_progress_and_can_be_interrupted(dataset):
    regression = LinearRegression().fit(dataset, "pressure")
    rows = 4_000_000
    table = pyarrow.table({"age": numpy.full(rows, 40.0), "smoker": pyarrow.array(["yes"] * rows)})
    told = []

    def stop(at, done, total):
        told.append((at, done, total))
        raise KeyboardInterrupt

    begin = time.perf_counter()
    regression.predict(table, progress=False)
    whole = time.perf_counter() - begin
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        regression.predict(table, progress=stop)
    assert len(told) == 1 and told[0][2] == rows and told[0][1] < rows
    assert time.perf_counter() - begin < whole
    Path("new.csv").write_text("age,smoker\n40,yes\n50,no\n", encoding="utf-8")
    told.clear()
    regression.predict("new.csv", progress=lambda *numbers: told.append(numbers))
    assert told[-1] == (1, 2, 2)


def test_a_regression_reads_like_one_of_statsmodels(dataset):
    regression = LinearRegression().fit(dataset, "pressure")
    text = regression.summary()
    for words in ["Dep. Variable:", "pressure", "R-squared:", "coef", "std err", "p-value", "[0.025", "0.975]", "smoker=yes"]:
        assert words in text, words
    # Marks stand at the end of their lines.
    marks = max(len(mark or "") for mark in regression.model_.marks)
    assert all(len(line) <= 78 + marks for line in text.splitlines())
    assert "joint guarantee" in text
    plain = LinearRegression(learner="ols").fit(dataset, "pressure")
    assert f"These are {plain.model_.estimand}." in " ".join(plain.summary().split())
    assert ("Careful" in plain.summary()) == (plain.model_.fault is not None)


def test_a_summary_of_any_numbers_and_names_can_be_read(dataset):
    """Columns do not run into each other, and no name is cut."""
    model = json.loads(LinearRegression().fit(dataset, "pressure").to_json())
    names = [f"a rather long name of a column that goes on and on, number {at}" for at in (1, 2)]
    magnitudes = [1.234e-150, 9.876e250]
    for coefficient, name, size in zip(model["coefficients"], names, magnitudes, strict=True):
        coefficient["findings"] = []
        next(iter(coefficient["term"].values()))["column"] = name
        coefficient["value"] = {"estimate": -size, "standard_error": 1e-30 * size, "low": -2 * size, "high": -size / 2}
    Path("odd.json").write_text(json.dumps(model), encoding="utf-8")
    text = LinearRegression.load("odd.json").summary()
    table = text[text.index("Linear regression") :].split("Notes:")[0].splitlines()
    for name, size in zip(names, magnitudes, strict=True):
        line = next(line for line in table if line.startswith(name))
        cells = line.removeprefix(name).removeprefix("=yes (rather than no)").split()
        assert len(cells) == 5 and len(line) < 170, line
        assert [float(cells[0]), float(cells[3]), float(cells[4])] == pytest.approx([-size, -2 * size, -size / 2], rel=1e-3)
    widths = {len(line) for line in table if line and set(line) <= {"=", "-"}}
    assert len(widths) == 1 and max(map(len, table)) == widths.pop()


def test_texts_are_shown_as_they_are_printed(dataset):
    for text in (LinearRegression().fit(dataset, "pressure").summary(), dataset.privacy_statement()):
        assert isinstance(text, str) and repr(text) == str(text) and "\n" in repr(text)
        html = text._repr_html_()
        assert html.startswith("<pre ") and html.endswith("</pre>")
    from potluck._text import Text

    assert Text("a<b & c")._repr_html_().endswith(">a&lt;b &amp; c</pre>")
    assert pickle.loads(pickle.dumps(Text("a"))) == "a"


def test_p_values_belong_to_the_intervals(dataset):
    model = LinearRegression().fit(dataset, "pressure").model_
    for at, p_value in enumerate(model.p_values()):
        if 1e-9 < p_value < 1 - 1e-9:
            low, high = model.intervals(1 - p_value)[at]
            assert min(abs(low), abs(high)) < 1e-6 * (high - low)


def test_a_dataset_says_who_is_where(tmp_path):
    """Parties that write ids differently are told first; those that share everybody are not."""
    rng = numpy.random.default_rng(3)
    rows = 4000
    age = rng.uniform(20, 80, rows)
    for rules, matches in [([], False), (["strip-zeros"], True)]:
        study = potluck.Study.new(
            name="cohorts",
            rows=rows,
            epsilon=20,
            delta=1e-6,
            id="text",
            id_rules=rules or None,
            format=2,
            parties={
                "north": [potluck.Numeric("age", 18, 90), potluck.Numeric("height", 100, 220)],
                "south": [potluck.Numeric("pressure", 60, 160)],
            },
        ).seal()
        tables = {
            "north": {
                "id": [f"P{at:06}" for at in range(rows)],
                "age": numpy.where(rng.random(rows) < 0.3, numpy.nan, age),
                "height": rng.normal(170, 10, rows),
            },
            "south": {"id": [f"P{at}" for at in range(rows)], "pressure": 80 + 0.5 * age + rng.normal(0, 5, rows)},
        }
        published = []
        for party, columns in tables.items():
            ledger, out = tmp_path / f"{party}{matches}.ledger", tmp_path / f"{party}{matches}.parquet"
            potluck.Ledger(ledger).init("people", epsilon=20, delta=1e-6)
            table = pyarrow.table(columns)
            published.append(potluck.release(study, party, table, ledger=ledger, out=out, accept_low_accuracy=True))
        dataset = potluck.join(study, published)
        people = dataset.people()
        (overlap,) = people["overlaps"]
        north = dataset.moments()[0]
        assert abs(north["people"]["value"] - rows) < 0.1 * rows
        column, _ = north["columns"]
        assert abs(column["missing"]["value"] - 0.3) < 0.1
        quantiles = [one["value"] for one in column["distribution"]["quantiles"]]
        assert quantiles == sorted(quantiles) and abs(quantiles[2] - 50) < 6
        regression = LinearRegression().fit(dataset, "pressure")
        assert regression.parts_[0]["people"] > 0
        if matches:
            assert people["alarms"] == [] and overlap["interval"][1] == 1
            assert abs(regression.coef_[0] - 0.5) < 5 * regression.bse_[0]
        else:
            assert overlap["finding"] == "nobody-in-common" and "do their ids match?" in people["alarms"][0]
            assert regression.summary().startswith("Careful: The parties that hold pressure and age")
            assert regression.findings_[0][0].kind == "nobody-in-common"


KINDS = ["label-tails", "feature-tails", "label-unresolved", "feature-unresolved", "confounders", "feature-missing"]


def with_findings(regression, kinds):
    """The regression with these findings and no others: of the label on every coefficient, others on the last one."""
    model = json.loads(regression.to_json())
    found = [{"kind": kind} | ({"columns": ["salt"]} if kind == "confounders" else {}) for kind in kinds]
    of_label = [one for one in found if one["kind"].startswith("label")]
    for coefficient in model["coefficients"]:
        coefficient["findings"] = list(of_label)
    model["coefficients"][-1]["findings"] = found
    model["diagnostics"]["r_squared_findings"] = of_label
    Path("found.json").write_text(json.dumps(model), encoding="utf-8")
    return LinearRegression.load("found.json")


@pytest.mark.parametrize("kind", KINDS)
def test_a_finding_stands_first_and_is_marked(dataset, kind):
    regression = with_findings(LinearRegression().fit(dataset, "pressure"), [kind])
    finding = regression.findings_[-1][0]
    assert isinstance(finding, potluck.Finding) and finding.kind == kind
    assert finding.columns == (("salt",) if kind == "confounders" else ())
    assert [len(one) for one in regression.findings_] == [kind.startswith("label"), 1]
    summary = " ".join(regression.summary().split())
    assert f" Before you rely on these numbers: - {finding.text} Linear regression" in summary
    assert summary.startswith("None of the 2 coefficients") or "at the 95% level" in summary.split(" Before ")[0]
    line = next(line for line in regression.summary().splitlines() if line.startswith("smoker=yes"))
    assert line.endswith(regression.model_.marks[-1])
    card = re.sub("<style>.*?</style>", "", regression._repr_html_(), flags=re.S)
    text = html.unescape(re.sub("<[^>]*>", "", card))
    assert text.index("Before you rely on these numbers") < text.index(finding.text) < text.index("95%")
    assert "R-squared (!): " in regression.summary() or not kind.startswith("label")


def test_a_regression_without_findings_is_not_marked(dataset):
    regression = with_findings(LinearRegression().fit(dataset, "pressure"), [])
    assert regression.findings_ == [[], []]
    summary = regression.summary()
    assert "at the 95% level" in summary.split("\n\n")[0]
    assert summary.partition("\n\n")[2].lstrip().startswith("Linear regression on a public dataset")
    assert "findings" not in summary and "(!)" not in summary
    ols = LinearRegression(learner="ols").fit(dataset, "pressure")
    assert ols.findings_ == [[], []]


def test_findings_are_drawn_and_kept(dataset):
    import matplotlib

    matplotlib.use("agg")
    regression = with_findings(LinearRegression().fit(dataset, "pressure"), ["confounders"])
    axes = regression.plot()
    drawn = [(line.get_linestyle(), line.get_marker()) for line in axes.lines if line.get_ydata()[0] == 1]
    assert ("--", "None") in drawn and ("None", "D") in drawn
    plain = [(line.get_linestyle(), line.get_marker()) for line in axes.lines if line.get_ydata()[0] == 0]
    assert ("-", "None") in plain and ("None", "o") in plain and "diamonds" in axes.get_title()
    assert pickle.loads(pickle.dumps(regression)).findings_ == regression.findings_


def test_intervals_at_another_level_are_those_of_a_fit_at_that_level(dataset):
    for learner in ("posterior", "ols", "debiased"):
        regression = LinearRegression(learner=learner).fit(dataset, "pressure")
        for level in (0.5, 0.8, 0.99):
            expected = LinearRegression(learner=learner, level=level).fit(dataset, "pressure").conf_int()
            numpy.testing.assert_allclose(regression.conf_int(level=level), expected, rtol=1e-9)


def test_intervals_of_a_loaded_regression_are_stretched_and_say_so(dataset, recwarn):
    regression = with_findings(LinearRegression().fit(dataset, "pressure"), [])
    model = json.loads(regression.to_json())
    model["coefficients"][0]["value"] |= {"estimate": 1.0, "low": 0.5, "high": 3.0}
    Path("found.json").write_text(json.dumps(model), encoding="utf-8")
    regression = LinearRegression.load("found.json")
    assert regression.conf_int()[0].tolist() == [0.5, 3.0] and not recwarn
    with pytest.warns(UserWarning, match="stretched from those at 0.95"):
        low, high = regression.conf_int(level=0.99)[0]
    assert low < 0.5 and high > 3.0 and (high - 1.0) / (1.0 - low) == pytest.approx(4.0)
    assert regression.model_.p_values()[1] < 0.05, "the interval excludes 0"


def test_a_p_value_agrees_with_an_interval_that_is_not_symmetric(dataset):
    model = json.loads(LinearRegression().fit(dataset, "pressure").to_json())
    for low, high in [(0.01, 5.0), (-0.01, 1.5), (-5.0, 1.01)]:
        model["coefficients"][0]["value"] |= {"estimate": 1.0, "standard_error": 0.3, "low": low, "high": high}
        model["coefficients"][1]["value"] |= {"estimate": -1.0, "standard_error": 0.3, "low": -high, "high": -low}
        p_values = potluck.Model.parse(json.dumps(model)).p_values()
        assert ((p_values[1:] < 0.05) == (low > 0)).all()


def test_wrong_regressions_are_explained(dataset):
    for label, features, options, words in [
        ("weight", None, {}, "its columns are age, smoker, pressure"),
        ("age", ["age"], {}, "both the label and a feature"),
        ("age", [], {}, "no feature"),
        ("age", "smoker", {}, r"\['smoker'\]"),
        ("age", None, {"learner": "forest"}, "choose one of posterior, debiased, ols"),
        ("age", None, {"level": 1.5}, "level"),
    ]:
        with pytest.raises(potluck.Error, match=words):
            LinearRegression(**options).fit(dataset, label, features)


def test_reports_and_cards_stand_alone(dataset):
    regression = LinearRegression().fit(dataset, "pressure")
    page = regression.report_html()
    assert regression.report_html("report.html") is None
    assert Path("report.html").read_text(encoding="utf-8") == page and page.startswith("<!DOCTYPE html>")
    with pytest.raises(potluck.InputError, match="exists already.*overwrite=True"):
        regression.report_html("report.html")
    regression.report_html("report.html", overwrite=True)
    assert not list(Path(".").glob(".*partial*"))
    for card in (regression._repr_html_(), dataset._repr_html_()):
        assert "potluck-card" in card and "<script" not in card and ":root" not in card
    assert "<svg" in regression._repr_html_() and "smoker=yes" in dataset._repr_html_()
    assert LinearRegression()._repr_html_() is None


def test_coefficients_can_be_plotted(dataset):
    import matplotlib

    matplotlib.use("agg")
    axes = LinearRegression().fit(dataset, "pressure").plot()
    axes.figure.savefig("plot.png")
    assert Path("plot.png").stat().st_size > 5000
    age, smoker = (label.get_text() for label in axes.get_yticklabels())
    assert age.startswith("age\n+") and age.endswith(" years") and smoker == "smoker=yes"


def test_people_are_found_again(study):
    """With many people the regression finds what made them."""
    rows = 200_000
    north, south = people(rows)
    many = potluck.Study.new(
        name="many", rows=rows, epsilon=2.0, delta=1e-7, parties=study.columns
    ).seal()
    releases = []
    for party, table in {"north": pandas.DataFrame(north), "south": polars.DataFrame(south)}.items():
        ledger = potluck.Ledger(f"{party}.ledger")
        ledger.init("people", 2.0, 1e-7)
        releases.append(potluck.release(many, party, table, ledger=ledger))
    regression = LinearRegression(level=0.999).fit(potluck.join(many, releases), "pressure")
    low, high = regression.conf_int().T
    assert ((low < [0.5, 8.0]) & (high > [0.5, 8.0])).all(), regression.summary()
    assert (high - low < [1.0, 16.0]).all(), "the intervals say something"


def test_cards_of_data_escape_what_people_wrote():
    evil = "<script>alert(1)</script>"
    columns = [potluck.Numeric(evil, 0, 1, unit=evil), potluck.Numeric("b", 0, 1, description=evil)]
    study = potluck.Study.new(name=evil, rows=1000, epsilon=2, delta=1e-6, parties={"p": columns}).seal()
    potluck.Ledger("p.ledger").init("people", 2.0, 1e-6)
    rng = numpy.random.default_rng(1)
    table = pyarrow.table({"id": numpy.arange(1000), evil: rng.random(1000), "b": rng.random(1000)})
    release = potluck.release(study, "p", table, ledger="p.ledger", accept_low_accuracy=True)
    dataset = potluck.join(study, [release])
    regression = LinearRegression().fit(dataset, "b")
    for card in (dataset._repr_html_(), regression._repr_html_(), regression.summary()._repr_html_()):
        assert "<script" not in card and "&lt;script&gt;" in card


def test_p_values_and_covariances_are_there_and_agree_with_the_rest(dataset):
    regression = potluck.LinearRegression().fit(dataset, "pressure")
    assert regression.pvalues_.shape == regression.coef_.shape and (regression.pvalues_ <= 1).all()
    clear = (regression.conf_int() > 0).all(axis=1) | (regression.conf_int() < 0).all(axis=1)
    assert ((regression.pvalues_ < 0.05) == clear).all()
    assert regression.cov_.shape == (len(regression.coef_),) * 2
    assert numpy.allclose(numpy.sqrt(numpy.diag(regression.cov_)), regression.bse_)


def test_a_table_in_place_of_a_dataset_is_explained(dataset):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0, 2.0], "pressure": [3.0, 4.0]})
    for given, words in [
        (frame, "is a DataFrame; fit.dataset, label.*PublicDataset.load.*not people.*Cross-validation"),
        (frame.to_numpy(), "is a ndarray.*PublicDataset"),
        ("public.parquet", "is a path; fit.dataset, label"),
        (None, "is a NoneType; fit.dataset, label"),
    ]:
        with pytest.raises(potluck.UsageError, match=words):
            potluck.LinearRegression().fit(given, "pressure")


def test_a_summary_stays_aligned_wherever_a_notebook_is_shown(dataset):
    shown = potluck.LinearRegression().fit(dataset, "pressure").summary()._repr_html_()
    assert "monospace" in shown
