"""Every way to hand over a table gives the same exact sums as the command's reader of files, stage by stage."""

import datetime
import decimal
import gzip
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from conftest import ROWS, command

import potluck
from potluck import Categorical, Numeric, Study

STAGES = [1, 2, 3, 4]


def of_pandas(table):
    return table.to_pandas()


def of_polars(table):
    return polars.DataFrame(table)


def of_duckdb(table):
    # A table of DuckDB's own, so that it chooses the types.
    connection = duckdb.connect()
    connection.register("given", table)
    connection.execute("CREATE TABLE own AS SELECT * FROM given")
    return connection.table("own")


def of_reader(table):
    return pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=37))


def of_one_batch(table):
    return table.combine_chunks().to_batches()[0]


def of_shuffled_columns(table):
    return table.select(list(reversed(table.column_names)))


def of_parquet(table):
    pyarrow.parquet.write_table(table, "given.parquet", row_group_size=100)
    return "given.parquet"


def of_csv(table):
    pyarrow.csv.write_csv(table, "given.csv")
    return Path("given.csv")


def of_gzip(table):
    pyarrow.csv.write_csv(table, "plain.csv")
    with gzip.open("given.csv.gz", "wb") as file:
        file.write(Path("plain.csv").read_bytes())
    return "given.csv.gz"


def of_feather(table):
    pyarrow.feather.write_feather(table, "given.arrow", compression="uncompressed")
    return "given.arrow"


@pytest.fixture
def released(study, north, ledger):
    """Stages after the first are encoded with what the earlier ones published."""
    pyarrow.parquet.write_table(north, "north.parquet")
    study.save("study.toml")
    return potluck.release(study, "north", north, ledger=ledger, accept_low_accuracy=True)


def sums_by_command(stage):
    arguments = ["--release", "north.release.parquet", "--stage", stage, "--json"]
    shown = command(
        "sums", "study.toml", "--party", "north", "--data", "north.parquet", "--state", f"command-{stage}", *arguments
    )
    return Path(shown["sums"]).read_bytes()


@pytest.mark.parametrize(
    "hand_over",
    [of_pandas, of_polars, of_duckdb, of_reader, of_one_batch, of_shuffled_columns, of_parquet, of_csv, of_gzip, of_feather],
)
def test_sums_are_those_of_the_command(study, north, released, hand_over):
    for stage in STAGES:
        given = hand_over(north)
        ours = potluck.sums(study, "north", given, state=f"ours-{stage}", release=released, stage=stage, threads=2)
        assert Path(ours).read_bytes() == sums_by_command(stage), stage
        assert Path(ours).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("rows", [3, 4096, 10_000])
def test_batches_of_any_length_give_the_same_sums(rows):
    count = 9000
    study = Study.new(
        name="x", rows=count, epsilon=1, delta=1e-6, parties={"p": [Numeric("a", 0, 1), Numeric("b", 0, 1)]}
    ).seal()
    rng = numpy.random.default_rng(1)
    table = pyarrow.table({"id": rng.permutation(count), "a": rng.random(count), "b": rng.random(count)})
    pyarrow.parquet.write_table(table, "p.parquet")
    expected = Path(potluck.sums(study, "p", "p.parquet", state="file")).read_bytes()
    reader = pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=rows))
    for threads in (1, 3):
        given = reader if threads == 1 else table
        ours = potluck.sums(study, "p", given, state=f"ours-{threads}", threads=threads)
        assert Path(ours).read_bytes() == expected


# One study over all types; the plain table is what the command reads from Parquet.

TYPES = Study.new(
    name="types",
    rows=ROWS,
    epsilon=1.0,
    delta=1e-6,
    id="text",
    parties={
        "p": [
            Numeric("number", -5, 5),
            Numeric("count", 0, 200),
            Numeric("amount", 0, 100),
            Numeric("day", 0, 20_000),
            Numeric("flag", 0, 1),
            Categorical("level", ["no", "yes", "other"], unknown="other"),
            Categorical("member", ["false", "true"]),
        ]
    },
).seal()


def plain():
    rng = numpy.random.default_rng(3)
    gaps = rng.random(ROWS) < 0.1
    special = [float("nan"), float("inf"), float("-inf"), -0.0, 1e300, None]
    number = [special[at] if at < len(special) else value for at, value in enumerate(rng.normal(0, 4, ROWS).tolist())]
    count = [None if gap else value for gap, value in zip(gaps, rng.integers(0, 250, ROWS).tolist(), strict=True)]
    amount = [decimal.Decimal(value) / 100 for value in rng.integers(0, 12_000, ROWS).tolist()]
    day = [datetime.date(1970, 1, 1) + datetime.timedelta(days=value) for value in rng.integers(0, 25_000, ROWS).tolist()]
    flag = (rng.random(ROWS) < 0.5).tolist()
    level = [[None, "no", "yes", "Über"][value] for value in rng.integers(0, 4, ROWS)]
    return pyarrow.table(
        {
            "id": [f"ß-{value:04}" for value in rng.permutation(ROWS)],
            "number": pyarrow.array(number, pyarrow.float64()),
            "count": pyarrow.array(count, pyarrow.int64()),
            "amount": pyarrow.array(amount, pyarrow.decimal128(12, 2)),
            "day": pyarrow.array(day, pyarrow.date32()),
            "flag": pyarrow.array(flag, pyarrow.bool_()),
            "level": pyarrow.array(level, pyarrow.string()),
            "member": pyarrow.array(flag, pyarrow.bool_()),
        }
    )


def recast(table, **types):
    for name, kind in types.items():
        at = table.column_names.index(name)
        table = table.set_column(at, name, table[name].cast(kind))
    return table


def as_dictionaries(table):
    for name in ("id", "level"):
        at = table.column_names.index(name)
        table = table.set_column(at, name, table[name].dictionary_encode())
    return table


def of_nullable_pandas(table):
    frame = table.to_pandas(types_mapper={pyarrow.int64(): pandas.Int64Dtype(), pyarrow.bool_(): pandas.BooleanDtype()}.get)
    frame["level"] = frame["level"].astype("category")
    frame["id"] = frame["id"].astype("string")
    return frame.sample(frac=1, random_state=1)


def of_polars_kinds(table):
    return polars.DataFrame(table).with_columns(
        polars.col("level").cast(polars.Categorical),
        polars.col("member").cast(polars.String).cast(polars.Enum(["false", "true"])),
        polars.col("count").cast(polars.UInt8),
    )


def of_duckdb_kinds(table):
    connection = duckdb.connect()
    connection.register("given", table)
    connection.execute("CREATE TYPE answer AS ENUM ('no', 'yes', 'Über')")
    connection.execute("CREATE TABLE own AS SELECT * REPLACE (level::answer AS level, count::SMALLINT AS count) FROM given")
    return connection.table("own")


@pytest.mark.parametrize(
    "hand_over",
    [
        lambda table: table,
        lambda table: recast(table, id=pyarrow.large_string(), level=pyarrow.large_string()),
        lambda table: recast(table, id=pyarrow.string_view(), level=pyarrow.string_view()),
        lambda table: recast(table, count=pyarrow.uint8(), amount=pyarrow.float64(), flag=pyarrow.int8()),
        lambda table: recast(table, count=pyarrow.float32(), day=pyarrow.date64()),
        as_dictionaries,
        of_nullable_pandas,
        of_polars,
        of_polars_kinds,
        of_duckdb,
        of_duckdb_kinds,
    ],
)
def test_every_type_means_what_it_means_in_a_file(hand_over, ledger):
    TYPES.save("study.toml")
    pyarrow.parquet.write_table(plain(), "p.parquet")
    released = potluck.release(TYPES, "p", "p.parquet", ledger=ledger, accept_low_accuracy=True)
    # The last stage mixes by ids.
    for stage in (1, 4):
        arguments = ["--release", released.path, "--stage", stage, "--state", f"command-{stage}", "--json"]
        shown = command("sums", "study.toml", "--party", "p", "--data", "p.parquet", *arguments)
        ours = potluck.sums(TYPES, "p", hand_over(plain()), state=f"ours-{stage}", release=released, stage=stage)
        assert Path(ours).read_bytes() == Path(shown["sums"]).read_bytes(), stage


def test_an_index_of_pandas_is_not_a_column(study, north):
    frame = north.to_pandas().sample(frac=1, random_state=1)
    study.validate("north", frame)


def test_slices_are_read_from_where_they_begin(study, north):
    longer = pyarrow.concat_tables([north.slice(0, 3), north, north.slice(0, 3)]).combine_chunks()
    study.validate("north", longer.slice(3, ROWS))
    study.validate("north", polars.DataFrame(longer)[3 : 3 + ROWS])


def test_a_stream_can_be_kept_on_disk(study, north, ledger):
    at = north.column_names.index("smoker")
    encoded = north.set_column(at, "smoker", north["smoker"].dictionary_encode())
    one = potluck.release(
        study, "north", of_reader(encoded), ledger=ledger, spool=True, accept_low_accuracy=True, tmp_dir="."
    )
    assert not one.repeated
    assert sorted(path.name for path in Path(".").iterdir()) == ["ledger.sqlite", "north.release.parquet"]


def replaced(table, name, array):
    return table.set_column(table.column_names.index(name), name, array)


def unsound():
    """Columns that break what Arrow takes for granted, by what is broken."""
    ok, bad = b"yes", b"\xff\xfe\xfd"
    binary = pyarrow.array([bad, *[ok] * (ROWS - 1)], pyarrow.binary())
    # Every byte is UTF-8, but a value begins within a character.
    halves = pyarrow.array([b"\xc3", b"\xbc", *[ok] * (ROWS - 2)], pyarrow.binary())
    offsets = numpy.zeros(ROWS + 1, numpy.int32)
    offsets[1], offsets[2] = 3, 1
    backwards = pyarrow.Array.from_buffers(pyarrow.string(), ROWS, [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(b"yes")])
    keys = pyarrow.Array.from_buffers(pyarrow.int32(), ROWS, [None, pyarrow.py_buffer(numpy.full(ROWS, 9, numpy.int32))])
    values = pyarrow.array([bad, ok], pyarrow.binary()).view(pyarrow.string())
    zeros = pyarrow.array(numpy.zeros(ROWS, numpy.int32))
    return {
        "text": binary.view(pyarrow.string()),
        "large text": binary.cast(pyarrow.large_binary()).view(pyarrow.large_string()),
        "half characters": halves.view(pyarrow.string()),
        "offsets": backwards,
        "keys": pyarrow.DictionaryArray.from_arrays(keys, pyarrow.array(["no", "yes"]), safe=False),
        "dictionary": pyarrow.DictionaryArray.from_arrays(zeros, values, safe=False),
        "views": binary.cast(pyarrow.binary_view()).view(pyarrow.string_view()),
    }


@pytest.mark.parametrize("what", unsound())
def test_unsound_columns_are_refused(study, north, what):
    table = replaced(north, "smoker", unsound()[what])
    with pytest.raises(potluck.InputError, match='column "smoker": is not sound'):
        study.validate("north", table)
    # What is not read may be anything.
    study.validate("north", north.append_column("other", table["smoker"]), ignore_extra=True)


def test_parts_of_a_longer_text_are_looked_at_alone(study, north):
    bad = pyarrow.array([b"\xff", *[b"yes"] * ROWS], pyarrow.binary()).view(pyarrow.string())
    study.validate("north", replaced(north, "smoker", bad.slice(1)))
    with pytest.raises(potluck.InputError, match="is not sound"):
        study.validate("north", replaced(north, "smoker", bad.slice(0, ROWS)))


class Stream:
    """Any stream of structs."""

    def __init__(self, array):
        self.array = array

    def __arrow_c_stream__(self, requested_schema=None):
        return pyarrow.chunked_array([self.array]).__arrow_c_stream__(requested_schema)


def test_rows_that_are_null_as_a_whole_are_refused(study, north):
    rows = north.to_struct_array().combine_chunks()
    study.validate("north", Stream(rows))
    gone = pyarrow.StructArray.from_arrays(
        rows.flatten(), names=north.column_names, mask=pyarrow.array([True, *[False] * (ROWS - 1)])
    )
    with pytest.raises(potluck.InputError, match="null as a whole"):
        study.validate("north", Stream(gone))
    with pytest.raises(potluck.InputError, match="could not be handed over"):
        study.validate("north", Stream(pyarrow.array([1, 2])))


def test_an_error_without_a_message_is_an_error(study):
    """A stream written in C that fails and does not say why."""
    program = """
import ctypes, pyarrow, potluck, sys
class Stream(ctypes.Structure):
    pass
Next = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.c_void_p)
Last = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(Stream))
Release = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
Stream._fields_ = [("schema", Next), ("next", Next), ("last", Last), ("release", Release), ("data", ctypes.c_void_p)]
table = pyarrow.schema([("id", pyarrow.int64()), ("age", pyarrow.float64()), ("smoker", pyarrow.string())])
def schema(stream, out):
    table._export_to_c(out)
    return 0
def release(stream):
    stream.contents.release = Release()
callbacks = Next(schema), Next(lambda stream, out: 5), Last(lambda stream: None), Release(release)
stream = Stream(*callbacks, None)
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
class Table:
    def __arrow_c_stream__(self, requested_schema=None):
        return new(ctypes.addressof(stream), b"arrow_array_stream", None)
try:
    potluck.Study.load("study.toml").validate("north", Table())
except potluck.InputError as error:
    print(error)
"""
    study.save("study.toml")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "stopped giving rows" in done.stdout, done.stderr


def test_pandas_without_pyarrow_says_what_to_install(study, north):
    north.to_pandas().to_csv("north.csv", index=False)
    study.save("study.toml")
    program = """
import sys
sys.modules["pyarrow"] = None
import pandas, potluck
try:
    potluck.Study.load("study.toml").validate("north", pandas.read_csv("north.csv"))
except potluck.InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install potluck[pandas]" in done.stdout and "pyarrow" in done.stdout, done.stderr


def test_columns_of_one_name_are_named_as_such(study, north):
    frame = north.to_pandas()
    twice = pandas.concat([frame, frame[["age"]]], axis=1)
    with pytest.raises(potluck.InputError, match="several columns of the same name"):
        study.validate("north", twice)
    with pytest.raises(potluck.InputError, match="rename or remove one$"):
        study.validate("north", north.append_column("age", north["age"]))
    # Those that nobody asks for may be called as they like.
    study.validate("north", north.append_column("x", north["age"]).append_column("x", north["age"]), ignore_extra=True)


@pytest.mark.parametrize("kind", ["stream", "file"])
def test_damaged_arrow_files_raise_our_errors_and_nothing_is_printed(study, north, kind, capfd):
    secret = "SECRET-SENTINEL"
    table = north.append_column("note", pyarrow.array([secret] * ROWS))
    sink = pyarrow.BufferOutputStream()
    with (pyarrow.ipc.new_stream if kind == "stream" else pyarrow.ipc.new_file)(sink, table.schema) as writer:
        writer.write_table(table)
    good = sink.getvalue().to_pybytes()
    Path("good.arrow").write_bytes(good)
    study.validate("north", "good.arrow", ignore_extra=True)
    refused = 0
    places = [*range(8, 800, 8), *range(len(good) - 800, len(good) - 8, 8)]
    for place in places:
        for length in [b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff\xff\xff\xff\x7f"]:
            Path("bad.arrow").write_bytes(good[:place] + length + good[place + len(length) :])
            try:
                study.validate("north", "bad.arrow", ignore_extra=True)
            except (potluck.InputError, potluck.IntegrityError) as error:
                refused += 1
                assert secret not in str(error)
    assert refused > len(places) / 4
    assert capfd.readouterr().err == ""
