"""Published files open without potluck, in pandas, polars, pyarrow and DuckDB, and all see the same numbers."""

import decimal
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import duckdb
import pandas
import polars
import pyarrow.parquet
import pytest

POTLUCK = os.environ["POTLUCK"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    subprocess.run([POTLUCK, "demo", "--out", folder, "--rows", "2000", "--json"], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", ["public.parquet", "north.release.parquet"])
def test_every_reader_sees_the_same_numbers(demo, name):
    path = str(demo / name)
    reference = pyarrow.parquet.read_table(path)
    expected = {column: reference[column].to_pylist() for column in reference.column_names}
    assert len(expected) >= 2
    assert reference.num_rows > 0
    with_pandas = pandas.read_parquet(path)
    with_polars = polars.read_parquet(path)
    with_duckdb = duckdb.sql(f"SELECT * FROM read_parquet('{path}')").fetchnumpy()
    for column, values in expected.items():
        assert with_pandas[column].dtype == "float64"
        assert with_pandas[column].tolist() == values
        assert with_polars[column].to_list() == values
        assert with_duckdb[column].tolist() == values


def test_nobody_takes_columns_of_a_file_for_those_of_people(demo):
    for name in ("public.parquet", "north.release.parquet"):
        assert all(column.startswith("mixed.") for column in pyarrow.parquet.read_schema(demo / name).names)


@pytest.fixture(scope="module")
def snippets():
    """What the tutorial gives people who work elsewhere, by where that is."""
    page = (pathlib.Path(__file__).parents[2] / "docs/TUTORIAL.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (R|Python|SQL \(DuckDB\)) \| (.*) \|$", page, re.MULTILINE))
    return {place: re.findall(r"`([^`]+)`", code) for place, code in rows.items()}


def run(demo, *command):
    path = os.pathsep.join([os.path.dirname(os.path.abspath(POTLUCK)), os.environ["PATH"]])
    done = subprocess.run(command, cwd=demo, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def coefficients(demo):
    fit = json.loads(run(demo, POTLUCK, "fit", "public.parquet", "--label", "pressure", "--json"))
    return [one["value"]["estimate"] for one in fit["coefficients"]]


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="there is no R here")
def test_the_snippet_for_r_does_it_right(demo, snippets):
    (code,) = snippets["R"]
    said = run(demo, "Rscript", "-e", f"cat(format(({code})$value$estimate, digits = 17))")
    assert [float(one) for one in said.split()] == pytest.approx(coefficients(demo), rel=1e-12)


@pytest.mark.skipif(importlib.util.find_spec("potluck") is None, reason="the package is not installed here")
def test_the_snippet_for_python_does_it_right(demo, snippets):
    (code,) = snippets["Python"]
    said = run(demo, sys.executable, "-c", f"import potluck; print(*({code}).coef_.tolist())")
    assert [float(one) for one in said.split()] == coefficients(demo)


def test_the_snippet_for_sql_does_it_right(demo, snippets):
    command, query = snippets["SQL (DuckDB)"]
    # The demo has left a model of that name.
    run(demo, "sh", "-c", f"{command} --force")
    rows = duckdb.sql(query.replace("model.json", str(demo / "model.json"))).fetchall()
    assert [row["value"]["estimate"] for (row,) in rows] == pytest.approx(coefficients(demo), rel=1e-12)


def test_the_documented_hash_can_be_recomputed(demo):
    """docs/FORMAT.md: length and canonical JSON of the manifest, then the hash of each column."""
    table = pyarrow.parquet.read_table(demo / "north.release.parquet")
    stored = table.schema.metadata[b"potluck"]
    manifest = json.loads(stored)
    claimed = manifest.pop("content_hash")
    manifest.pop("signature", None)
    canonical = canonical_json(manifest).encode()
    digest = hashlib.sha256(struct.pack("<Q", len(canonical)) + canonical)
    for column in table.column_names:
        values = struct.pack(f"<{table.num_rows}d", *table[column].to_pylist())
        digest.update(hashlib.sha256(values).digest())
    assert digest.hexdigest() == claimed


def canonical_json(value):
    """RFC 8785 for what manifests hold."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{canonical_json(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical_json, value)) + "]"
    if isinstance(value, float):
        return canonical_number(value)
    return json.dumps(value, ensure_ascii=False)


def canonical_number(value):
    """The shortest digits that read back, written as JavaScript does."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    if abs(value) >= 1e-6:
        return format(decimal.Decimal(repr(value)), "f")
    digits, exponent = repr(value).split("e")
    return f"{digits}e{int(exponent)}"


def test_values_are_whole_numbers_of_the_published_unit(demo):
    table = pyarrow.parquet.read_table(demo / "south.release.parquet")
    manifest = json.loads(table.schema.metadata[b"potluck"])
    *earlier, mixed = manifest["stages"]
    assert [stage["name"] for stage in earlier] == ["standardise-1", "standardise-2", "moments"]
    for stage in earlier:
        assert len(stage["result"]["sums"]) == sum(run["sums"] for run in stage["noise"])
        assert all(str(int(text)) == text for text in stage["result"]["sums"])
    scale = mixed["result"]["columns"]["scale"]
    assert mixed["result"]["columns"]["rows"] == table.num_rows
    for column in table.column_names:
        for value in table[column].to_pylist():
            assert (value * scale).is_integer()


def test_the_moments_of_a_release_can_be_read_without_potluck(demo):
    """The published covariance of salt and exercise, from the manifest alone."""
    table = pyarrow.parquet.read_table(demo / "south.release.parquet")
    manifest = json.loads(table.schema.metadata[b"potluck"])
    moments = manifest["stages"][2]
    sums = [int(text) for text in moments["result"]["sums"]]
    n, q = manifest["study"]["study"]["rows"], 1 << 14
    means = [x / (n * q) for x in sums[:2]]
    covariance = sums[4] / (n * q * q) - means[0] * means[1]
    noise = moments["noise"][2]["sigma"] / (n * q * q)
    # Salt and exercise of made-up patients have nothing to do with each other.
    assert abs(covariance) < 6 * (noise + 1 / n**0.5)


def test_manifests_hold_nothing_private(demo):
    table = pyarrow.parquet.read_table(demo / "south.release.parquet")
    text = table.schema.metadata[b"potluck"].decode()
    assert set(json.loads(text)) == {
        "potluck", "format", "study_id", "study", "party", "columns", "stages", "statement", "software", "content_hash",
    }  # fmt: skip
    for word in ["seed", "missing_count", "clamped", "private", str(demo)]:
        assert word not in text
