"""How long a release takes as its table grows: the built-in reader, and PostgreSQL, DuckDB and Spark in every way, on the same
table and machine. Prints the tables of docs/RESULTS.md (what was measured) and docs/SCALE.md (what it means for large tables). Needs
the Python package:

    target/venv-package/bin/python tests/python/scale.py 1000000 5000000 20000000
"""

import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy
import potluck
import pyarrow
import pyarrow.parquet
from engines import started
from potluck import Numeric, Study

COLUMNS = 10
# Runs of each engine on each table, in turn; medians count.
RUNS = 3
READER, SPARK, NATIVE = "built-in reader, Parquet", "Spark, by SQL", "Spark, native"
# Tables of this size and larger are what Spark is for.
LARGE = [10**9, 10**10]
# Cores of a cluster that the estimate is made for.
CLUSTER = 256


def study_of(rows):
    """Ten numeric columns at one party, and one more column elsewhere."""
    parties = {"north": [Numeric(f"c{i}", -3, 3) for i in range(COLUMNS)], "south": [Numeric("other", 0, 1)]}
    return Study.new(name="scale", rows=rows, epsilon=1, delta=1e-9, parties=parties).seal()


def write_people(rows, path):
    """A table with ids and ten columns, in row groups of a million."""
    random = numpy.random.default_rng(11)
    schema = pyarrow.schema([("id", pyarrow.int64()), *[(f"c{i}", pyarrow.float64()) for i in range(COLUMNS)]])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 1_000_000):
            ids = numpy.arange(start, min(start + 1_000_000, rows))
            columns = {f"c{i}": random.normal(size=len(ids)).round(3) for i in range(COLUMNS)}
            writer.write_table(pyarrow.table({"id": ids, **columns}, schema=schema))


def releases(engines, path, rows):
    """By name, what releases the table."""
    study = study_of(rows)
    name = f"people {rows}"
    table = pyarrow.parquet.read_table(path)
    places = {dialect: engines[dialect].load(table, name, path) for dialect in ["postgres", "duckdb"]}
    del table
    frame = engines["spark"].session.read.parquet(str(path))

    def given(folder):
        ledger = potluck.Ledger(os.path.join(folder, "ledger"))
        ledger.init("people", 1, 1e-9)
        out = os.path.join(folder, "north.release.parquet")
        return {"ledger": ledger, "out": out, "accept_low_accuracy": True, "progress": False}

    def from_database(dialect, read):
        connection = engines[dialect].connection
        more = {"read": read}
        return lambda folder: potluck.sql.release(study, "north", connection, places[dialect], **more, **given(folder))

    def from_spark(engine):
        return lambda folder: potluck.spark.release(study, "north", frame, engine=engine, **given(folder))

    return {
        READER: lambda folder: potluck.release(study, "north", path, **given(folder)),
        "DuckDB, rows streamed": from_database("duckdb", "stream"),
        "PostgreSQL, rows streamed": from_database("postgres", "stream"),
        "DuckDB, sums": from_database("duckdb", "sums"),
        "PostgreSQL, sums": from_database("postgres", "sums"),
        NATIVE: from_spark("native"),
        SPARK: from_spark("sql"),
    }


def measure(engines, sizes, folder, runs=RUNS):
    """Seconds of a whole release, by engine and rows."""
    seconds = {}
    for rows in sizes:
        path = pathlib.Path(folder) / f"people-{rows}.parquet"
        write_people(rows, path)
        contestants = releases(engines, path, rows)
        taken = {name: [] for name in contestants}
        for run in range(runs):
            for name, release in contestants.items():
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    start = time.monotonic()
                    release(place)
                    taken[name].append(time.monotonic() - start)
                print(f"{rows} rows, run {run + 1}, {name}: {taken[name][-1]:.1f} s", file=sys.stderr)
        for name, times in taken.items():
            seconds.setdefault(name, {})[rows] = statistics.median(times)
        path.unlink()
    return seconds


def growth(times):
    """Seconds at the start and seconds a row, from the smallest and the largest table."""
    (few, short), (many, long) = min(times.items()), max(times.items())
    a_row = max(long - short, 0.0) / (many - few)
    return max(short - a_row * few, 0.0), a_row


def span(seconds):
    for unit, size in [("days", 86400), ("hours", 3600), ("minutes", 60)]:
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def lines(head, rows):
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def measured(seconds, cores):
    """What docs/RESULTS.md shows."""
    sizes = sorted(seconds[READER])
    rows = []
    for name, times in seconds.items():
        _, a_row = growth(times)
        ratio = times[sizes[-1]] / seconds[READER][sizes[-1]]
        rows.append([name, *[f"{times[size]:.1f} s" for size in sizes], f"{1e9 * a_row:.0f}", f"{ratio:.1f} × the time"])
    head = [f"whole release, {cores} cores", *[f"{size:,} rows" for size in sizes], "ns a row", "beside the reader"]
    return lines(head, rows)


def estimated(seconds, cores):
    """What docs/SCALE.md shows."""
    rows = []
    for name, times in seconds.items():
        start, a_row = growth(times)
        rows.append([f"{name}, {cores} cores", *[span(start + a_row * large) for large in LARGE]])
    for name in [NATIVE, SPARK]:
        start, a_row = growth(seconds[name])
        far = [span(start + a_row * large * cores / CLUSTER) for large in LARGE]
        rows.append([f"{name}, {CLUSTER} such cores", *far])
    return lines(["whole release, estimated", *[f"{large:,} rows" for large in LARGE]], rows)


def main():
    sizes = sorted({int(rows) for rows in sys.argv[1:]} or {1_000_000, 5_000_000, 20_000_000})
    if len(sizes) < 2:
        sys.exit("give at least two numbers of rows: growth is what is measured")
    with tempfile.TemporaryDirectory() as folder, started(pathlib.Path(folder)) as engines:
        seconds = measure(engines, sizes, folder)
    for table in [measured, estimated]:
        print(table(seconds, os.cpu_count()), end="\n\n")


if __name__ == "__main__":
    main()
