"""The sums of PostgreSQL, DuckDB and Spark are those of the built-in reader, to the last bit, in every stage of a
release; and a release goes all the way through each of them. An engine that is not there fails; nothing is skipped."""

import csv
import datetime
import decimal
import glob
import json
import os
import pwd
import subprocess
import time

import duckdb
import numpy
import psycopg
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest

POTLUCK = os.path.abspath(os.environ["POTLUCK"])
# The whole figure is 1,000,000: POTLUCK_SQL_ROWS=1000000.
ROWS = int(os.environ.get("POTLUCK_SQL_ROWS", "100000"))
# A name that no quoting by hand survives.
ODD = 'odd "name"; DROP TABLE `people` -- \\é%s:x?'
ODD_LEVEL = "it's \\x41 \"so\"; --é日本%"
STAGES = ["standardise-1", "standardise-2", "moments", "mixed"]
ENGINES = ["postgres", "duckdb", "spark"]

# Every column with what the study says of it.
COLUMNS = {
    "plain": {"lo": -3.7, "hi": 4.1},
    "single": {"lo": -1, "hi": 1},
    "tiny": {"lo": -100, "hi": 90},
    "whole": {"lo": 0, "hi": 1e9},
    "big": {"lo": -9e18, "hi": 9e18},
    "money": {"lo": 0, "hi": 1000},
    "fine": {"lo": -0.5, "hi": 0.5},
    "near": {"lo": -16384, "hi": 16384},
    "flag": {"lo": 0, "hi": 1},
    "born": {"lo": -20000, "hi": 20000},
    ODD: {"lo": 0, "hi": 1, "missing": "error"},
    "smoker": {"levels": ["no", "yes"]},
    "region": {"levels": ["north", ODD_LEVEL, "other"], "unknown": "other"},
    "member": {"levels": ["false", "true"], "missing": "error"},
    "grade": {"levels": ["-1", "0", "1", "2"]},
}


def potluck(*arguments, folder, code=0):
    """Runs the command; returns stdout, or stderr if it was to fail."""
    done = subprocess.run([POTLUCK, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stderr if code else done.stdout


def toml(value):
    """A value in TOML."""
    return json.dumps(value, ensure_ascii=True)


def write_study(folder, rows, kind, columns=None, extra="", name="study.toml"):
    """A sealed study with one party that has the columns, and one more."""
    text = f'format = 1\n[study]\nname = "engines"\nrows = {rows}\nid = "{kind}"\n{extra}\n'
    text += "[privacy]\nepsilon = 2.0\ndelta = 1e-6\n[[party]]\nname = \"north\"\n"
    for column, facts in (columns or COLUMNS).items():
        text += f"[[party.column]]\nname = {toml(column)}\n"
        text += "".join(f"{key} = {toml(value)}\n" for key, value in facts.items())
    text += '[[party]]\nname = "south"\n[[party.column]]\nname = "other column"\nlo = 0\nhi = 1\n'
    (folder / name).write_text(text)
    potluck("study", "seal", name, folder=folder)


def people(rows, kind):
    """A table with every type of column and every value that an engine could trip over."""
    random = numpy.random.default_rng(7)

    def missing(values, share=0.05):
        return pyarrow.array(values, mask=random.random(rows) < share)

    plain = random.normal(0, 2, rows)
    special = [
        *[float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 5e-324, -5e-324, 2.5e-308, 1e308, -1e308, 1e-320],
        *[0.2, 0.2 + 5e-324, 4.1, -3.7, 1.7976931348623157e308, 3.4e38, 1e-101, -1e-99, 4.1 + 1e-15],
    ]
    plain[: len(special)] = special
    single = random.normal(0, 1, rows).astype("float32")
    single[:6] = [float("nan"), float("inf"), -0.0, 1e-45, 0.1, -3e38]
    # Halves of a step, and their neighbours: where rounding is decided.
    steps = random.integers(-17000, 17000, rows) + random.choice([0.5, 0.25, 0.0], rows)
    near = numpy.nextafter(steps, random.choice([-1e9, 0, 1e9], rows))
    near = numpy.where(random.random(rows) < 0.5, steps, near)
    big = random.integers(-(2**63), 2**63 - 1, rows, dtype="int64", endpoint=True)
    big[:4] = [2**63 - 1, -(2**63), 2**53 + 1, -1]
    digits = random.integers(-(10**18), 10**18, rows)
    context = decimal.Context(prec=38)
    fine = [context.create_decimal(int(d)).scaleb(-18, context) + decimal.Decimal("1e-19") for d in digits]
    words = numpy.array(["north", ODD_LEVEL, "other", "elsewhere", "North", "north ", "", "ＮＯＲＴＨ"])
    table = {
        "plain": missing(plain),
        "single": missing(single),
        "tiny": missing(random.integers(-200, 200, rows).astype("int16")),
        "whole": missing(random.integers(-(2**31), 2**31, rows).astype("int32")),
        "big": missing(big),
        "money": missing(random.integers(-5000, 150000, rows)).cast(pyarrow.decimal128(19, 0)),
        "fine": pyarrow.array(fine, pyarrow.decimal128(38, 19), mask=random.random(rows) < 0.05),
        "near": missing(near),
        "flag": missing(random.random(rows) < 0.3),
        "born": missing(random.integers(-30000, 30000, rows).astype("int32")).cast(pyarrow.date32()),
        ODD: pyarrow.array(random.random(rows)),
        "smoker": missing(random.choice(["no", "yes"], rows)),
        "region": missing(words[random.integers(0, len(words), rows)]),
        "member": pyarrow.array(random.random(rows) < 0.7),
        "grade": missing(random.integers(-1, 3, rows).astype("int64")),
    }
    # Two digits after the point, exactly.
    cents = table["money"].cast(pyarrow.decimal128(21, 2))
    table["money"] = pyarrow.compute.divide(cents, pyarrow.scalar(decimal.Decimal(100))).cast(
        pyarrow.decimal128(12, 2), safe=False
    )
    order = random.permutation(rows)
    if kind == "text":
        odd = ["é", "e\u0301", " padded ", "007", "7", "日本", "'", "\\", "%", "😀", "a" * 200, "A", "a", "ß", "İ"]
        table["id"] = [odd[i] if i < len(odd) else f"pé-{i}" for i in order]
    elif kind == "row":
        table["id"] = order.astype("int64")
    else:
        ids = order.astype("int64") * 7_919 - 1_000
        ids[:2] = [2**63 - 1, -(2**63)]
        table["id"] = ids
    return pyarrow.table(table)


class Postgres:
    """A server of our own, started for the tests."""

    def __init__(self, folder):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        assert programs, "PostgreSQL is not installed: apt-get install postgresql"
        self.programs, self.folder = programs[-1], folder
        # The server refuses to run as root.
        self.prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self.prefix:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
        self.run("initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_wal_size=4GB -c work_mem=64MB"
        self.run("pg_ctl", "-D", folder / "data", "-o", options, "-l", folder / "log", "-w", "start")
        self.connection = psycopg.connect(host=str(folder), user="postgres", autocommit=True)

    def run(self, program, *arguments):
        command = [*self.prefix, os.path.join(self.programs, program), *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def stop(self):
        self.connection.close()
        self.run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "stop")

    def load(self, table, name, path):
        del path
        kinds = {"float": "real", "double": "double precision", "int16": "smallint", "int32": "integer"}
        kinds |= {"int64": "bigint", "bool": "boolean", "date32[day]": "date", "string": "text"}

        def kind(field):
            text = str(field.type)
            return text.replace("decimal128", "numeric") if text.startswith("decimal") else kinds[text]

        with self.connection.cursor() as cursor:
            quoted = [f'{quote(field.name)} {kind(field)}' for field in table.schema]
            cursor.execute("CREATE SCHEMA IF NOT EXISTS clinic")
            cursor.execute(f"DROP TABLE IF EXISTS clinic.{quote(name)}")
            cursor.execute(f"CREATE TABLE clinic.{quote(name)} ({', '.join(quoted)})")
            sink = pyarrow.BufferOutputStream()
            pyarrow.csv.write_csv(table, sink)
            with cursor.copy(f"COPY clinic.{quote(name)} FROM STDIN CSV HEADER") as copy:
                copy.write(sink.getvalue().to_pybytes())
            cursor.execute(f"ANALYZE clinic.{quote(name)}")
        return f'clinic.{quote(name)}'

    def query(self, text):
        with self.connection.cursor() as cursor:
            return cursor.execute(text).fetchall()


class DuckDb:
    def __init__(self):
        self.connection = duckdb.connect()
        self.connection.execute("CREATE SCHEMA clinic")

    def load(self, table, name, path):
        del table
        self.connection.execute(
            f"CREATE OR REPLACE TABLE clinic.{quote(name)} AS SELECT * FROM read_parquet('{path}')"
        )
        return f"clinic.{quote(name)}"

    def query(self, text):
        return self.connection.execute(text).fetchall()


class Spark:
    def __init__(self, folder):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "4")
        builder = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        builder = builder.config("spark.local.dir", str(folder / "local")).config("spark.executor.memory", "1g")
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")

    def load(self, table, name, path):
        del table
        self.session.read.parquet(str(path)).createOrReplaceTempView(f"`{name}`")
        return quote(name)

    def query(self, text, ansi=True):
        self.session.conf.set("spark.sql.ansi.enabled", "true" if ansi else "false")
        return [tuple(row) for row in self.session.sql(text).collect()]


def quote(name):
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture(scope="session")
def engines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engines")
    # The server's socket has a short name, and its user must get there.
    import shutil
    import tempfile

    home = tempfile.mkdtemp(prefix="pl-", dir="/tmp")
    os.chmod(home, 0o755)
    postgres = None
    try:
        from pathlib import Path

        postgres = Postgres(Path(home))
        spark = Spark(folder)
        yield {"postgres": postgres, "duckdb": DuckDb(), "spark": spark}
        spark.session.stop()
    finally:
        if postgres is not None:
            postgres.stop()
        shutil.rmtree(home, ignore_errors=True)


def budget(folder, name="ledger"):
    potluck("ledger", "init", "--ledger", name, "--table", "t", "--epsilon", "2", "--delta", "1e-6", folder=folder)


def spent(folder, name="ledger"):
    return json.loads(potluck("ledger", "show", "--ledger", name, "--json", folder=folder))["budgets"][0]["spent"]


def sql(folder, dialect, table, *more, code=0, study="study.toml", ledger="ledger"):
    """Prints the query of the next stage."""
    return potluck(
        *["sql", study, "--party", "north", "--table", table, "--dialect", dialect, "--state", f"state-{dialect}"],
        *["--ledger", ledger, *more],
        folder=folder,
        code=code,
    )


def hand_in(folder, dialect, path, code=0, study="study.toml", ledger="ledger", out="north.release.parquet"):
    """Hands the result of a query in."""
    return potluck(
        *["release", study, "--party", "north", "--sums", path, "--state", f"state-{dialect}", "--ledger", ledger],
        *["--out", out, "--yes", "--accept-low-accuracy"],
        folder=folder,
        code=code,
    )


def save(rows, path):
    """A result as a file, CSV or Parquet by its name."""
    if path.suffix == ".parquet":
        part, number, value = zip(*rows)
        columns = {"part": list(part), "number": list(number), "value": list(value)}
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    else:
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([("part", "number", "value"), *rows])


def sums_of(rows, columns):
    """The sums of a result, by row of the mixing."""
    return {number: value.split(" ")[1 + columns :] for part, number, value in rows if part == "sums"}


def audited(folder, stage, id_column="id", study="study.toml"):
    """The sums of the built-in reader, by row of the mixing."""
    potluck(
        *["sums", study, "--party", "north", "--data", "people.parquet", "--state", "audit", "--force"],
        *["--release", "north.release.parquet", "--stage", STAGES.index(stage) + 1, "--id", id_column],
        folder=folder,
    )
    sums = {}
    with open(folder / "audit" / f"north.{stage}.sums.csv", newline="") as file:
        for line in csv.DictReader(file):
            row = int(line["row"]) if stage == "mixed" else 0
            sums.setdefault(row, []).append(line["sum"])
    # Rows of the mixing that nobody is mixed to do not come back from an engine.
    return {row: values for row, values in sums.items() if stage != "mixed" or set(values) != {"0"}}


@pytest.mark.parametrize("kind", ["text", "integer"])
def test_every_engine_gives_the_sums_of_the_built_in_reader(engines, tmp_path, kind):
    table = people(ROWS, kind)
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet", row_group_size=ROWS // 7)
    write_study(tmp_path, ROWS, kind)
    budget(tmp_path)
    names = {name: engine.load(table, 'my "people"', tmp_path / "people.parquet") for name, engine in engines.items()}
    results, times = {}, {}
    for stage, turn in zip(STAGES, ["postgres", "duckdb", "spark", "postgres"]):
        for name, engine in engines.items():
            query = sql(tmp_path, name, names[name], "--boolean", "flag", "--date", "born").rstrip().rstrip(";")
            start = time.monotonic()
            results[name, stage] = engine.query(query)
            times[name, stage] = time.monotonic() - start
            if name == "spark":
                assert sorted(engine.query(query, ansi=False)) == sorted(results[name, stage])
        path = tmp_path / f"{stage}.{'csv' if turn == 'postgres' else 'parquet'}"
        save(results[turn, stage], path)
        before = spent(tmp_path)
        answer = hand_in(tmp_path, turn, path)
        assert ("published" in answer) == (stage == "mixed")
        assert (before == "0") == (stage == "standardise-1"), "one charge"
    for (name, stage), seconds in times.items():
        print(f"{ROWS} rows, {stage}, {name}: {seconds:.1f} s")
    for stage in STAGES:
        expected = audited(tmp_path, stage)
        for name in ENGINES:
            found = sums_of(results[name, stage], len(COLUMNS))
            found = {row: values for row, values in found.items() if stage != "mixed" or set(values) != {"0"}}
            assert found == expected, f"{name}, {stage}"
    assert "north.release.parquet" in potluck("verify", "north.release.parquet", folder=tmp_path)
