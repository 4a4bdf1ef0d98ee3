"""Public datasets and regressions on them; the same as by the command."""

import json
from pathlib import Path

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from conftest import ROWS, command, people

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
    taken = duckdb.sql("SELECT sum(age) FROM dataset").fetchall()
    assert taken[0][0] == pytest.approx(expected["age"].to_numpy().sum())
    assert pyarrow.schema(dataset).names == dataset.columns


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


def test_predictions_are_those_of_the_command(dataset):
    regression = LinearRegression().fit(dataset, "pressure")
    regression.save("model.json")
    table = pyarrow.table({"age": [30.0, 200.0, None], "smoker": ["yes", "no", None]})
    pyarrow.parquet.write_table(table, "new.parquet")
    theirs = command("predict", "model.json", "--data", "new.parquet").split()
    expected = numpy.array([float(value) for value in theirs[1:]])
    loaded = LinearRegression.load("model.json")
    for data in (table, table.to_pandas(), polars.DataFrame(table), "new.parquet", duckdb.sql("FROM 'new.parquet'")):
        assert (regression.predict(data) == expected).all()
        assert (loaded.predict(data) == expected).all()
    with pytest.raises(potluck.InputError, match='column "smoker": is missing'):
        regression.predict(pyarrow.table({"age": [1.0]}))
    with pytest.raises(potluck.InputError, match="model's levels"):
        regression.predict(pyarrow.table({"age": [1.0], "smoker": ["sometimes"]}))


def test_attributes_follow_the_conventions_of_scikit_learn(dataset):
    from sklearn.base import clone

    regression = LinearRegression(level=0.9)
    assert regression.fit(dataset, "pressure") is regression
    assert regression.feature_names_in_.tolist() == ["age", "smoker=yes"] and regression.n_features_in_ == 2
    assert regression.coef_.shape == (2,) and isinstance(regression.intercept_, float)
    assert regression.conf_int().shape == (2, 2)
    assert (regression.conf_int()[:, 0] < regression.coef_).all()
    numpy.testing.assert_allclose(regression.conf_int(0.9), regression.conf_int(), rtol=1e-9)
    assert (regression.conf_int(0.99)[:, 1] > regression.conf_int()[:, 1]).all()
    numpy.testing.assert_allclose(regression.bse_**2, numpy.diag(regression.model_.covariance)[1:])
    copy = clone(regression)
    assert copy.get_params() == {"learner": "posterior", "ridge": 1e-4, "level": 0.9} and not hasattr(copy, "coef_")
    assert copy.set_params(learner="ols").learner == "ols"
    assert repr(copy) == "LinearRegression(learner='ols', ridge=0.0001, level=0.9)"
    with pytest.raises(potluck.UsageError, match="no parameter"):
        copy.set_params(depth=3)
    with pytest.raises(potluck.UsageError, match="not fitted"):
        copy.predict("new.csv")


def test_a_regression_reads_like_one_of_statsmodels(dataset):
    regression = LinearRegression().fit(dataset, "pressure")
    text = regression.summary()
    for words in ["Dep. Variable:", "pressure", "R-squared:", "coef", "std err", "P>|t|", "[0.025", "0.975]", "smoker=yes"]:
        assert words in text, words
    assert all(len(line) <= 78 for line in text.split("Notes:")[0].splitlines())
    assert "joint guarantee" in text
    plain = LinearRegression(learner="ols").fit(dataset, "pressure").summary()
    assert "Careful" in plain or "coefficients" in plain


def test_p_values_belong_to_the_intervals(dataset):
    model = LinearRegression().fit(dataset, "pressure").model_
    for at, p_value in enumerate(model.p_values()):
        if 1e-9 < p_value < 1 - 1e-9:
            low, high = model.intervals(1 - p_value)[at]
            assert min(abs(low), abs(high)) < 1e-6 * (high - low)


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
    page = regression.report_html("report.html")
    assert Path("report.html").read_text(encoding="utf-8") == page and page.startswith("<!DOCTYPE html>")
    with pytest.raises(FileExistsError):
        regression.report_html("report.html")
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
    assert [label.get_text() for label in axes.get_yticklabels()] == ["age", "smoker=yes"]


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
    assert ROWS < rows
