"""Published files open without potluck, in pandas, polars, pyarrow and DuckDB, and all see the same numbers."""

import hashlib
import json
import os
import struct
import subprocess

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


def test_the_documented_hash_can_be_recomputed(demo):
    """docs/FORMAT.md: length and canonical JSON of the manifest, then the columns as little-endian float64."""
    table = pyarrow.parquet.read_table(demo / "north.release.parquet")
    stored = table.schema.metadata[b"potluck"]
    manifest = json.loads(stored)
    claimed = manifest.pop("content_hash")
    manifest.pop("signature", None)
    # The stored manifest is canonical already; taking two keys out leaves the order of the others alone.
    text = json.dumps(manifest, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    canonical = "".join(canonical_numbers(text)).encode()
    digest = hashlib.sha256(struct.pack("<Q", len(canonical)) + canonical)
    for column in table.column_names:
        digest.update(struct.pack(f"<{table.num_rows}d", *table[column].to_pylist()))
    assert digest.hexdigest() == claimed


def canonical_numbers(text):
    """Python writes 1e-06 where RFC 8785 writes 0.000001; nothing else differs for the numbers in a manifest."""
    yield text.replace("1e-06", "0.000001").replace(".0,", ",").replace(".0}", "}")


def test_values_are_whole_numbers_of_the_published_unit(demo):
    table = pyarrow.parquet.read_table(demo / "south.release.parquet")
    manifest = json.loads(table.schema.metadata[b"potluck"])
    (stage,) = manifest["stages"]
    for column in table.column_names:
        for value in table[column].to_pylist():
            assert (value * stage["scale"]).is_integer()


def test_manifests_hold_nothing_private(demo):
    table = pyarrow.parquet.read_table(demo / "south.release.parquet")
    text = table.schema.metadata[b"potluck"].decode()
    assert set(json.loads(text)) == {
        "potluck", "format", "study_id", "study", "party", "columns", "stages", "statement", "software", "content_hash",
    }  # fmt: skip
    for word in ["seed", "missing_count", "clamped", "private", str(demo)]:
        assert word not in text
