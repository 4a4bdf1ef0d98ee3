"""The sums of PostgreSQL, DuckDB and Spark are those of the built-in reader, to the last bit, in every stage of a
release; and a release goes all the way through each of them. An engine that is not there fails; nothing is skipped."""

import csv
import decimal
import json
import os
import pathlib
import subprocess
import time

import numpy
import psycopg
import pyarrow
import pyarrow.compute
import pyarrow.parquet
import pytest
from engines import started

POTLUCK = os.path.abspath(os.environ["POTLUCK"])
# Ids of text, which are the harder ones, get the large table.
ROWS = {"text": 1_000_000, "integer": 100_000}
# A name that no quoting by hand survives.
ODD = 'odd "name"; DROP TABLE `people` -- \\é%s:x?'
ODD_LEVEL = "it's \\x41 \"so\"; --é日本%"
STAGES = {
    1: ["standardise-1", "standardise-2", "moments", "mixed"],
    2: ["shapes", "standardise", "moments", "mixed"],
}
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
# Columns that a study of format 2 declares never to be missing, though they are.
NEVER = ["single", "near", "region"]


def potluck(*arguments, folder, code=0):
    """Runs the command; returns stdout, or stderr if it was to fail."""
    done = subprocess.run([POTLUCK, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stderr if code else done.stdout


def toml(value):
    """A value in TOML."""
    return json.dumps(value, ensure_ascii=True)


def write_study(folder, rows, kind, columns=None, extra="", name="study.toml", version=1):
    """A sealed study with one party that has the columns, and one more."""
    text = f'format = {version}\n[study]\nname = "engines"\nrows = {rows}\nid = "{kind}"\n{extra}\n'
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
        "smoker": missing(random.choice(["no", "yes", "sometimes", "No", ""], rows)),
        "region": missing(words[random.integers(0, len(words), rows)]),
        "member": pyarrow.array(random.random(rows) < 0.7),
        "grade": missing(random.integers(-3, 5, rows).astype("int64")),
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


@pytest.fixture(scope="session")
def engines(tmp_path_factory):
    with started(tmp_path_factory.mktemp("engines")) as engines:
        yield engines


def budget(folder, name="ledger"):
    potluck("ledger", "init", "--ledger", name, "--budget", "t", "--epsilon", "2", "--delta", "1e-6", folder=folder)


def spent(folder, name="ledger"):
    return json.loads(potluck("ledger", "show", "--ledger", name, "--json", folder=folder))["budgets"][0]["spent"]


def sql(folder, dialect, table, *more, code=0, study="study.toml", ledger="ledger"):
    """Prints the query of the next stage."""
    return potluck(
        *["sql", study, "--party", "north", "--table", table, "--dialect", dialect, "--state", f"state-{dialect}"],
        *["--ledger", ledger, *more],
        folder=folder,
        code=code,
    ).removesuffix(";\n")


def hand_in(folder, dialect, path, *more, code=0, study="study.toml", ledger="ledger", out="north.release.parquet"):
    """Hands the result of a query in."""
    return potluck(
        *["release", study, "--party", "north", "--sums", path, "--state", f"state-{dialect}", "--ledger", ledger],
        *["--out", out, "--yes", "--accept-low-accuracy", *more],
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
    """The sums of a result, by row of the mixing. Rows, two check sums and refused values of each column precede them.
    Beside them the cells of histograms that hold values, by place of the column and cell."""
    sums = {number: value.split(" ")[3 + columns :] for part, number, value in rows if part == "sums"}
    cells = {divmod(number, 1024): value.split(" ")[0] for part, number, value in rows if part == "cells"}
    found = {(place, at - 1): count for (place, at), count in cells.items() if at > 0}
    return sums | ({"cells": found} if found else {})


def audited(folder, stage, *more):
    """The sums of the built-in reader, by row of the mixing."""
    potluck(
        *["sums", "study.toml", "--party", "north", "--data", "people.parquet", "--state", "audit", "--force", *more],
        folder=folder,
    )
    sums, cells, places = {}, {}, []
    with open(folder / "audit" / f"north.{stage}.sums.csv", newline="") as file:
        for line in csv.DictReader(file):
            if line["row"].startswith("cell "):
                places += [line["column"]] if line["column"] not in places else []
                if line["sum"] != "0":
                    cells[places.index(line["column"]), int(line["row"].removeprefix("cell "))] = line["sum"]
                continue
            row = int(line["row"]) if stage == "mixed" else 0
            sums.setdefault(row, []).append(line["sum"])
    return without_zeros(sums) | ({"cells": cells} if cells else {})


def without_zeros(sums):
    """Rows of the mixing that nobody is mixed to do not come back from an engine."""
    return {row: values for row, values in sums.items() if row == "cells" or set(values) != {"0"}}


@pytest.mark.parametrize(("kind", "version"), [("text", 1), ("integer", 1), ("integer", 2)])
def test_every_engine_gives_the_sums_of_the_built_in_reader(engines, tmp_path, kind, version):
    count = ROWS[kind]
    table = people(count, kind)
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet", row_group_size=count // 7)
    # In format 2 the number of rows need not be right, and some columns may be declared never to be missing.
    columns = COLUMNS if version == 1 else COLUMNS | {name: COLUMNS[name] | {"missing": "never"} for name in NEVER}
    write_study(tmp_path, count if version == 1 else count // 2, kind, columns, version=version)
    budget(tmp_path)
    stages = STAGES[version]
    names = {name: engine.load(table, 'my "people"', tmp_path / "people.parquet") for name, engine in engines.items()}
    results, times = {}, {}
    for stage, turn in zip(stages, ["postgres", "duckdb", "spark", "postgres"]):
        for name, engine in engines.items():
            query = sql(tmp_path, name, names[name], "--boolean", "flag", "--date", "born")
            start = time.monotonic()
            results[name, stage] = engine.query(query)
            times[name, stage] = time.monotonic() - start
            if name == "spark" and kind == "integer":
                assert sorted(engine.query(query, ansi=False)) == sorted(results[name, stage])
        path = tmp_path / f"{stage}.{'csv' if turn == 'postgres' else 'parquet'}"
        save(results[turn, stage], path)
        before = spent(tmp_path)
        # Some columns hold values that are mostly out of range, on purpose.
        answer = hand_in(tmp_path, turn, path, "--accept-lost-values")
        assert ("published" in answer) == (stage == "mixed")
        assert (before == "0") == (stage == stages[0]), "one charge"
    for (name, stage), seconds in times.items():
        print(f"{count} rows, {stage}, {name}: {seconds:.1f} s")
    for number, stage in enumerate(stages):
        expected = audited(tmp_path, stage, "--release", "north.release.parquet", "--stage", number + 1)
        assert sum(map(len, expected.values())) > len(COLUMNS)
        for name in ENGINES:
            found = without_zeros(sums_of(results[name, stage], len(COLUMNS)))
            assert found == expected, f"{name}, {stage}"
    assert "north.release.parquet" in potluck("verify", "north.release.parquet", folder=tmp_path)


def address(engines):
    """Where our own server is."""
    return f"postgresql:///postgres?host={engines['postgres'].folder}&user=postgres"


@pytest.mark.parametrize(("kind", "version"), [("text", 1), ("integer", 2)])
def test_rows_of_postgres_that_come_here_are_those_of_the_file(engines, tmp_path, kind, version):
    count = 100_000
    table = people(count, kind)
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet", row_group_size=count // 7)
    write_study(tmp_path, count, kind, version=version)
    budget(tmp_path)
    name = engines["postgres"].load(table, 'my "people"', tmp_path / "people.parquet")
    place = ["--data", address(engines), "--table", name]
    common = ["study.toml", "--party", "north"]
    for memory in ["1GB", "0"]:
        potluck(
            *["release", *common, *place, "--ledger", "ledger", "--out", "north.release.parquet", "--yes"],
            *["--accept-lost-values", "--force", "--memory", memory, "--tmp-dir", tmp_path],
            folder=tmp_path,
        )
    for position, stage in enumerate(STAGES[version], 1):
        which = ["--release", "north.release.parquet", "--stage", position]
        expected = audited(tmp_path, stage, *which)
        potluck("sums", *common, *place, "--state", "pulled", "--force", *which, folder=tmp_path)
        pulled = (tmp_path / "pulled" / f"north.{stage}.sums.csv").read_bytes()
        assert pulled == (tmp_path / "audit" / f"north.{stage}.sums.csv").read_bytes()
        assert expected
    asked = ["validate", *common, "--json"]
    found, known = (
        json.loads(subprocess.run([POTLUCK, *asked, *of], cwd=tmp_path, capture_output=True, check=False).stdout)
        for of in (place, ["--data", "people.parquet"])
    )
    assert found["columns"] == known["columns"] and found["ids"] == known["ids"]


def test_rules_for_ids_hold_for_rows_that_come_here(engines, tmp_path):
    extra = 'id_columns = ["born", "surname"]\nid_rules = ["trim", "lowercase", "date"]'
    write_study(tmp_path, 300, "text", {"amount": {"lo": 0, "hi": 1}}, extra=extra, version=2)
    born = pyarrow.array(range(300), pyarrow.int32()).cast(pyarrow.date32())
    table = {"amount": few()["amount"], "born": born, "surname": [f" Wu{i}" for i in range(300)]}
    name = load(engines["postgres"], tmp_path, table)
    expected = audited(tmp_path, "shapes")
    common = ["study.toml", "--party", "north", "--data", address(engines), "--table", name]
    potluck("sums", *common, "--state", "pulled", folder=tmp_path)
    assert (tmp_path / "pulled/north.shapes.sums.csv").read_bytes() == (
        tmp_path / "audit/north.shapes.sums.csv"
    ).read_bytes()
    assert expected


def test_what_goes_wrong_with_a_database_is_said_and_costs_nothing(engines, tmp_path):
    write_study(tmp_path, 300, "text", FEW)
    budget(tmp_path)
    table = load(engines["postgres"], tmp_path, few())
    here = address(engines)

    def failing(data, *more, code):
        common = ["release", "study.toml", "--party", "north", "--data", data, *more]
        message = potluck(*common, "--ledger", "ledger", "--out", "o.parquet", "--yes", folder=tmp_path, code=code)
        assert spent(tmp_path) == "0" and not (tmp_path / "o.parquet").exists()
        return message

    secret = failing("postgresql://me:hunter2@nowhere/clinic", "--table", table, code=2)
    assert "PGPASSWORD" in secret and "hunter2" not in secret
    assert "--table" in failing(here, code=2)
    assert "leave --table out" in failing("people.parquet", "--table", table, code=2)
    assert "does not exist" in failing(here, "--table", "clinic.nobody", code=6)
    assert "did not answer" in failing("postgresql:///postgres?host=/nowhere", "--table", table, code=6)
    connection = engines["postgres"].connection
    connection.execute("ALTER TABLE clinic.people ALTER COLUMN id TYPE char(10)")
    assert "has type character" in failing(here, "--table", table, code=3)
    connection.execute("CREATE OR REPLACE VIEW clinic.odd AS SELECT rtrim(id) AS id, grade, amount / (amount - 0.5) "
                       "AS amount FROM clinic.people")
    message = failing(here, "--table", "clinic.odd", code=6)
    assert "stopped before all rows had come" in message and "zero" not in message
    positions = tmp_path / "positions"
    positions.mkdir()
    write_study(positions, 300, "row", FEW)
    budget(positions)
    common = ["release", "study.toml", "--party", "north", "--data", here, "--table", table, "--ledger", "ledger"]
    assert "positions" in potluck(*common, "--out", "o.parquet", "--yes", folder=positions, code=3)


@pytest.mark.parametrize("kind", ["text", "integer"])
def test_every_engine_counts_what_a_validation_of_the_file_counts(engines, tmp_path, kind):
    count = 20_000
    table = people(count, kind)
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet", row_group_size=count // 7)
    write_study(tmp_path, count, kind)
    asked = ["validate", "study.toml", "--party", "north", "--json"]

    def shown(*more):
        # Half of the money is out of range, so a release would refuse the table.
        done = subprocess.run([POTLUCK, *asked, *more], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 3, done.stderr
        return json.loads(done.stdout)

    expected = shown("--data", "people.parquet")
    assert sum(column.get("below", 0) for column in expected["columns"]) > 1000
    for name, engine in engines.items():
        loaded = engine.load(table, 'my "people"', tmp_path / "people.parquet")
        of_table = ["--table", loaded, "--dialect", name, "--boolean", "flag", "--date", "born"]
        query = json.loads(potluck(*asked, *of_table, folder=tmp_path))["query"]
        save(engine.query(query), tmp_path / "counts.csv")
        found = shown(*of_table, "--counts", "counts.csv")
        assert found["columns"] == expected["columns"], name
        alike = ["rows", "duplicates", "leading_zeros", "blanks"]
        assert [found["ids"][key] for key in alike] == [expected["ids"][key] for key in alike], name
        assert len(found["problems"]) == len(expected["problems"]), name


@pytest.mark.parametrize("name", ENGINES)
def test_a_table_in_which_most_values_are_lost_is_refused_before_its_charge(engines, tmp_path, name):
    columns = {"amount": {"lo": 0, "hi": 1}, "grade": {"levels": ["a", "b", "c"]}}
    write_study(tmp_path, 300, "text", columns)
    budget(tmp_path)
    table = load(engines[name], tmp_path, {**few(), "amount": [5000.0] * 300})
    save(engines[name].query(sql(tmp_path, name, table)), tmp_path / "sums.csv")
    assert "more than half of its values" in hand_in(tmp_path, name, "sums.csv", code=3)
    assert spent(tmp_path) == "0"
    refusals = json.loads(potluck("ledger", "show", "--ledger", "ledger", "--json", folder=tmp_path))["refusals"]
    assert [refused["reason"] for refused in refusals] == ["lost-values"]
    hand_in(tmp_path, name, "sums.csv", "--accept-lost-values")
    assert spent(tmp_path) != "0"


FEW = {"amount": {"lo": 0, "hi": 1, "missing": "error"}, "grade": {"levels": ["a", "b", "c"], "unknown": "error"}}


def few(rows=300):
    """A small table for the columns above."""
    amounts = [i / rows for i in range(rows)]
    grades = ["abc"[i % 3] if i % 5 else None for i in range(rows)]
    return {"id": [f"é{i}" for i in range(rows)], "amount": amounts, "grade": grades}


def load(engine, folder, columns, name="people"):
    table = pyarrow.table(columns)
    path = folder / "people.parquet"
    pyarrow.parquet.write_table(table, path)
    return engine.load(table, name, path)


@pytest.mark.parametrize("name", ENGINES)
def test_what_is_wrong_with_a_table_is_found_by_the_engine_and_costs_nothing(engines, tmp_path, name):
    write_study(tmp_path, 300, "text", FEW)
    budget(tmp_path)
    people = few()

    def changed(column, position, value):
        return {**people, column: [*people[column][:position], value, *people[column][position + 1 :]]}

    def first(rows):
        return {column: values[:rows] for column, values in people.items()}

    wrong = {
        "the same id stands in several rows": changed("id", 7, "é200"),
        "ids are missing": changed("id", 7, None),
        "ids are missing ": changed("id", 7, ""),
        "fewer rows than the 300": first(299),
        "fewer rows than the 300 ": pyarrow.table(people).slice(0, 0),
        "more rows than the 300": {column: [*values, values[0]] for column, values in people.items()}
        | {"id": [*people["id"], "somebody else"]},
        '"amount": has values that are missing': changed("amount", 299, None),
        '"amount": has values that are missing ': changed("amount", 299, float("nan")),
        '"grade": has values that are missing or not among its levels': changed("grade", 3, "A"),
        '"amount": holds text': {**people, "amount": [str(x) for x in people["amount"]]},
        '"grade": has type ': {**people, "grade": people["amount"]},
        '"id": holds ids of type ': {**people, "id": list(range(300))},
    }
    for problem, columns in wrong.items():
        table = load(engines[name], tmp_path, columns)
        rows = engines[name].query(sql(tmp_path, name, table))
        save(rows, tmp_path / "sums.csv")
        assert problem.strip() in hand_in(tmp_path, name, "sums.csv", code=3), problem
        assert spent(tmp_path) == "0"
        assert not (tmp_path / "north.release.parquet").exists()
    # The ledger counts them by kind, and has nothing else of them.
    refusals = json.loads(potluck("ledger", "show", "--ledger", "ledger", "--json", folder=tmp_path))["refusals"]
    kinds = ["duplicate-id", "id", "id", "rows", "rows", "rows", "value", "value", "value", "type", "type", "type"]
    assert [refused["reason"] for refused in refusals] == kinds
    assert set(refusals[0]) == {"study_id", "study", "party", "reason", "created"}
    if name == "spark":
        # Without ANSI mode a date cast to a number is NULL, and would pass for missing.
        dates = pyarrow.array(range(300), pyarrow.int32()).cast(pyarrow.date32())
        table = load(engines[name], tmp_path, {**people, "amount": dates})
        rows = engines[name].query(sql(tmp_path, name, table), ansi=False)
        save(rows, tmp_path / "sums.csv")
        assert "has type date" in hand_in(tmp_path, name, "sums.csv", code=3)
    table = load(engines[name], tmp_path, people)
    save(engines[name].query(sql(tmp_path, name, table)), tmp_path / "sums.csv")
    hand_in(tmp_path, name, "sums.csv")
    assert spent(tmp_path) != "0"


def test_only_the_result_of_the_query_at_hand_is_taken(engines, tmp_path):
    engine = engines["duckdb"]
    write_study(tmp_path, 300, "text", FEW)
    budget(tmp_path)
    table = load(engine, tmp_path, few())
    query = sql(tmp_path, "duckdb", table)
    rows = engine.query(query)
    write_study(tmp_path, 300, "text", FEW, name="other.toml")
    other = engine.query(sql(tmp_path, "duckdb", table, study="other.toml"))
    query_again = sql(tmp_path, "duckdb", table)
    assert query_again == query, "a query depends on nothing but what was asked for"
    for files in [
        other,
        [row for row in rows if row[0] != "sums"],
        [*rows, rows[-1]],
        [row if row[0] != "sums" else ("sums", 0, row[2] + " 1") for row in rows],
        [row if row[0] != "sums" else ("sums", 0, row[2].replace(" ", ",")) for row in rows],
        [row if row[0] != "sums" else ("sums", 0, None) for row in rows],
    ]:
        save(files, tmp_path / "wrong.parquet")
        hand_in(tmp_path, "duckdb", "wrong.parquet", code=3)
        assert spent(tmp_path) == "0"
    for content in ["", "part,number\nquery,0\n", "patient,age\n1,2\n", "PAR1"]:
        (tmp_path / "wrong.csv").write_text(content)
        hand_in(tmp_path, "duckdb", "wrong.csv", code=3)
        assert spent(tmp_path) == "0"
    save(rows, tmp_path / "sums.csv")
    hand_in(tmp_path, "duckdb", "sums.csv")
    charge = spent(tmp_path)
    # Handing it in again after a crash changes nothing, and asks for the next stage.
    assert "standardise-2" in hand_in(tmp_path, "duckdb", "sums.csv")
    hand_in(tmp_path, "duckdb", "wrong.csv", code=3)
    sql(tmp_path, "duckdb", "clinic.another", code=2)
    for stage in STAGES[1][1:]:
        # Where the table is was said before.
        query = potluck(
            *["sql", "study.toml", "--party", "north", "--state", "state-duckdb", "--ledger", "ledger"], folder=tmp_path
        )
        assert f"({stage})" in query
        save(engine.query(query), tmp_path / "sums.csv")
        hand_in(tmp_path, "duckdb", "sums.csv")
    assert spent(tmp_path) == charge
    release = (tmp_path / "north.release.parquet").read_bytes()
    (tmp_path / "north.release.parquet").unlink()
    # Every stage is stored: the file can be written again without a result.
    potluck(
        *["release", "study.toml", "--party", "north", "--state", "state-duckdb", "--ledger", "ledger"],
        *["--out", "north.release.parquet", "--yes"],
        folder=tmp_path,
    )
    assert (tmp_path / "north.release.parquet").read_bytes() == release


def test_a_view_with_other_rows_each_time_is_refused(engines, tmp_path):
    """The engine counts ids in one reading of the table and adds up in another. Here the first reading has everybody once,
    and the second one many of them twice: PostgreSQL goes on in a large table where the last query stopped."""
    write_study(tmp_path, 100_000, "integer", {"amount": {"lo": -1, "hi": 1}})
    budget(tmp_path)
    connection = engines["postgres"].connection
    for command in [
        "CREATE SCHEMA IF NOT EXISTS clinic",
        "DROP TABLE IF EXISTS clinic.visits CASCADE",
        "CREATE TABLE clinic.visits AS SELECT CASE WHEN i < 100000 THEN i ELSE 200000 + i / 2 END AS id, "
        "CASE WHEN i < 100000 THEN -0.5 ELSE 0.5 END::float8 AS amount, repeat('x', 500) AS filler "
        "FROM generate_series(0::bigint, 199999) AS i",
        "CREATE VIEW clinic.some AS SELECT id, amount FROM clinic.visits LIMIT 100000",
    ]:
        connection.execute(command)
    query = sql(tmp_path, "postgres", "clinic.some")
    for _ in range(3):
        rows = engines["postgres"].query(query)
        save(rows, tmp_path / "sums.csv")
        parts = {part: value.split(" ") for part, _, value in rows}
        apart = parts["ids"][3:5] != parts["sums"][1:3]
        if apart and parts["ids"][0] == parts["ids"][1] == "100000":
            break
    else:
        pytest.fail("the two readings agree: nothing was tested")
    assert "other subjects than those whose ids it counts" in hand_in(tmp_path, "postgres", "sums.csv", code=3)
    assert spent(tmp_path) == "0"


def test_functions_of_others_are_not_called(engines, tmp_path):
    """Somebody else's function, of a name that queries call and for a better match than the engine's own, would see sums."""
    write_study(tmp_path, 300, "text", FEW)
    budget(tmp_path)
    functions = {
        "array_to_string(text[], text)": "text LANGUAGE sql AS $$SELECT 'shadow'$$",
        "convert_to(text, text)": "bytea LANGUAGE sql AS $$SELECT ''::bytea$$",
        "pg_typeof(text)": "text LANGUAGE sql AS $$SELECT 'shadow'$$",
    }
    macros = {name: "x" for name in ["floor", "sum", "abs", "sha256", "typeof", "encode"]}
    macros |= {name: "x, y" for name in ["least", "greatest", "concat_ws", "mod", "starts_with"]}
    shadows = {
        "postgres": [f"CREATE FUNCTION public.{name} RETURNS {result}" for name, result in functions.items()],
        "duckdb": [f"CREATE MACRO {name}({arguments}) AS 42" for name, arguments in macros.items()],
    }
    undo = {
        "postgres": [f"DROP FUNCTION public.{name}" for name in functions],
        "duckdb": [f"DROP MACRO {name}" for name in macros],
    }
    for name, commands in shadows.items():
        table = load(engines[name], tmp_path, few())
        query = sql(tmp_path, name, table)
        expected = engines[name].query(query)
        try:
            for command in commands:
                engines[name].connection.execute(command)
            assert engines[name].query(query) == expected, name
        finally:
            for command in undo[name]:
                engines[name].connection.execute(command)


def test_a_type_that_lists_values_is_not_quoted(engines, tmp_path):
    write_study(tmp_path, 300, "text", FEW)
    budget(tmp_path)
    engine = engines["duckdb"]
    load(engine, tmp_path, few())
    for kind in ["STRUCT(x ENUM('a', 'SmithSecret'))", "ENUM('a', 'SmithSecret')[]"]:
        engine.connection.execute(
            f"CREATE OR REPLACE TABLE clinic.odd AS SELECT * REPLACE (NULL::{kind} AS grade) FROM clinic.people"
        )
        save(engine.query(sql(tmp_path, "duckdb", "clinic.odd")), tmp_path / "sums.csv")
        message = hand_in(tmp_path, "duckdb", "sums.csv", code=3)
        assert '"grade": has type ' in message and "Smith" not in message
    assert spent(tmp_path) == "0"


def test_somebody_without_an_id_is_found_where_everybody_is_mixed(engines, tmp_path):
    write_study(tmp_path, 300, "text", FEW, extra='method = "rmgm"\nk = 20')
    budget(tmp_path)
    people = few()
    for name, engine in engines.items():
        table = load(engine, tmp_path, {**people, "id": [None, *people["id"][1:]]})
        save(engine.query(sql(tmp_path, name, table)), tmp_path / "sums.csv")
        assert "ids are missing" in hand_in(tmp_path, name, "sums.csv", code=3), name
    assert spent(tmp_path) == "0"


# Rules in sets that hide each other's effects as little as can be.
RULES = [
    ["trim", "lowercase", "strip-zeros", "alphanumeric"],
    ["trim", "lowercase", "date"],
    ["strip-zeros"],
    ["alphanumeric", "date"],
    [],
]


def written_ids(rows):
    """Ids with whatever an engine could take for a blank, a letter, a digit or the end of a text, each another person."""
    before = ["", " ", "\t\n", "P", "p-", "00", "x00a0", "Ä", "ä0", "日本", "İ", "ſ", "\u212a", "\u00a0", "\u0660", "$1\\1"]
    after = ["", " ", "\r\n", "\x0b", "\x0c", "é", "/B", "\n", "\u2028", "'", "%s", "$"]
    code = [f"{before[at % 16]}n{'0' * (at % 3)}{at}{after[at % 12]}" for at in range(rows)]
    dates = ["1987-06-05", "1987/06.05", "19870605", "1987-06-05\n", " 1987-06-05", "5.6.1987", "1987-06-051", "198７0605"]
    return {
        "code": code,
        "born": [dates[at % 8] for at in range(rows)],
        "site": pyarrow.array([at % 7 - 3 for at in range(rows)], pyarrow.int32()),
    }


@pytest.mark.parametrize("rules", RULES)
def test_every_engine_follows_rules_of_ids(engines, tmp_path, rules):
    rows = 960
    extra = f'k = 400\nid_columns = ["code", "born", "site"]\n' + (f"id_rules = {json.dumps(rules)}\n" if rules else "")
    write_study(tmp_path, rows, "text", FEW, extra=extra, version=2)
    budget(tmp_path)
    people = {name: values for name, values in few(rows).items() if name != "id"} | written_ids(rows)
    pyarrow.parquet.write_table(pyarrow.table(people), tmp_path / "people.parquet")
    names = {name: load(engine, tmp_path, people, "ruled") for name, engine in engines.items()}
    for number, stage in enumerate(STAGES[2]):
        results = {name: engine.query(sql(tmp_path, name, names[name])) for name, engine in engines.items()}
        save(results["duckdb"], tmp_path / "sums.parquet")
        hand_in(tmp_path, "duckdb", "sums.parquet", "--accept-lost-values")
        if stage == "mixed":
            more = ["--release", "north.release.parquet", "--stage", number + 1]
            expected = audited(tmp_path, stage, *more)
            for name in ENGINES:
                found = without_zeros(sums_of(results[name], len(FEW)))
                assert found == expected, name


def test_sums_are_for_the_ledger_that_the_query_was_asked_for(engines, tmp_path):
    engine = engines["duckdb"]
    write_study(tmp_path, 300, "text", FEW)
    budget(tmp_path)
    budget(tmp_path, "other")
    save(engine.query(sql(tmp_path, "duckdb", load(engine, tmp_path, few()))), tmp_path / "sums.csv")
    assert "two ledgers" in hand_in(tmp_path, "duckdb", "sums.csv", code=2, ledger="other")
    assert spent(tmp_path, "other") == "0"
    # The state folder knows the ledger: it need not be named.
    release = ["release", "study.toml", "--party", "north", "--sums", "sums.csv", "--state", "state-duckdb", "--yes"]
    potluck(*release, "--out", "north.release.parquet", "--accept-low-accuracy", folder=tmp_path)
    assert spent(tmp_path) != "0" and spent(tmp_path, "other") == "0"


def test_collations_and_capitals_do_not_matter(engines, tmp_path):
    """Ids and levels that a column's collation takes for equal are different to potluck."""
    levels = ["Straße", "straße", "STRASSE"]
    write_study(tmp_path, 300, "text", {"street": {"levels": levels}, "amount": FEW["amount"]})
    budget(tmp_path)
    people = {
        "id": [f"{'aA'[i % 2]}{i // 2}" for i in range(300)],
        "street": [levels[i * i % 3] for i in range(300)],
        "amount": few()["amount"],
    }
    names = {name: load(engine, tmp_path, people) for name, engine in engines.items()}
    for command in [
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        *[f"ALTER TABLE clinic.people ALTER COLUMN {column} TYPE text COLLATE loose" for column in ["id", "street"]],
    ]:
        engines["postgres"].connection.execute(command)
    assert engines["postgres"].query("SELECT count(DISTINCT id) FROM clinic.people") == [(150,)]
    engines["duckdb"].connection.execute(
        "CREATE TABLE clinic.loose (id VARCHAR COLLATE NOCASE, street VARCHAR COLLATE NOCASE, amount DOUBLE)"
    )
    engines["duckdb"].connection.execute("INSERT INTO clinic.loose SELECT * FROM clinic.people")
    names["duckdb"] = "clinic.loose"
    engines["spark"].session.sql(
        "SELECT id COLLATE UTF8_LCASE AS id, street COLLATE UTF8_LCASE AS street, amount FROM people"
    ).createOrReplaceTempView("loose")
    names["spark"] = "loose"
    expected = audited(tmp_path, "standardise-1")
    for name, engine in engines.items():
        rows = engine.query(sql(tmp_path, name, names[name]))
        assert sums_of(rows, 2) == expected, name
    # Nobody is there twice.
    save(rows, tmp_path / "sums.csv")
    hand_in(tmp_path, "spark", "sums.csv")


def test_padded_and_cast_columns_of_postgres(engines, tmp_path):
    write_study(tmp_path, 300, "text", FEW)
    budget(tmp_path)
    engine = engines["postgres"]
    table = load(engine, tmp_path, few())
    query = sql(tmp_path, "postgres", table)
    engine.connection.execute("ALTER TABLE clinic.people ALTER COLUMN id TYPE char(10)")
    save(engine.query(query), tmp_path / "sums.csv")
    assert "holds ids of type character" in hand_in(tmp_path, "postgres", "sums.csv", code=3)
    # A view says what is meant.
    engine.connection.execute(
        "CREATE OR REPLACE VIEW clinic.trimmed AS SELECT rtrim(id) AS id, amount, grade FROM clinic.people"
    )
    rows = engine.query(sql(tmp_path, "postgres", "clinic.trimmed"))
    assert sums_of(rows, 2) == audited(tmp_path, "standardise-1")
    engine.connection.execute("ALTER TABLE clinic.people ADD COLUMN late boolean")
    with pytest.raises(psycopg.errors.CannotCoerce):
        write_study(tmp_path, 300, "text", {"late": FEW["amount"]}, name="late.toml")
        engine.query(sql(tmp_path, "postgres", "clinic.people", study="late.toml"))
    assert spent(tmp_path) == "0"


def test_positions_and_the_method_of_the_paper(engines, tmp_path):
    table = people(5000, "row")
    ordered = table.take(pyarrow.compute.sort_indices(table["id"]))
    pyarrow.parquet.write_table(ordered, tmp_path / "people.parquet")
    write_study(tmp_path, 5000, "row", extra='method = "rmgm"\nk = 100')
    budget(tmp_path)
    expected = audited(tmp_path, "mixed", "--ignore-extra")
    for name, engine in engines.items():
        pyarrow.parquet.write_table(table, tmp_path / "shuffled.parquet")
        place = engine.load(table, "people", tmp_path / "shuffled.parquet")
        assert "--id" in sql(tmp_path, name, place, code=3)
        more = ["--id", "id", "--boolean", "flag", "--date", "born"]
        rows = engine.query(sql(tmp_path, name, place, *more))
        assert without_zeros(sums_of(rows, len(COLUMNS))) == expected, name
        if name == "duckdb":
            save(rows, tmp_path / "sums.csv")
    assert "published" in hand_in(tmp_path, "duckdb", "sums.csv", "--accept-lost-values")
    potluck("verify", "north.release.parquet", folder=tmp_path)


def test_a_wide_table(engines, tmp_path):
    """More sums than PostgreSQL has columns, and than a function has arguments."""
    random = numpy.random.default_rng(3)
    columns = {f"c{i}": {"lo": -1, "hi": 1} for i in range(70)}
    write_study(tmp_path, 2000, "integer", columns)
    budget(tmp_path)
    columns = {name: random.normal(size=2000) for name in columns} | {"id": numpy.arange(2000)}
    for name in ["postgres", "duckdb"]:
        table = load(engines[name], tmp_path, columns)
    results, all_sums = {}, []
    for stage in STAGES[1]:
        for name in ["postgres", "duckdb"]:
            results[name] = engines[name].query(sql(tmp_path, name, table))
        assert sums_of(results["postgres"], 70) == sums_of(results["duckdb"], 70)
        save(results["duckdb"], tmp_path / "sums.parquet")
        hand_in(tmp_path, "duckdb", "sums.parquet")
        all_sums.append(sums_of(results["duckdb"], 70))
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "people.parquet")
    assert len(all_sums[2][0]) == 70 + 70 + 70 * 69 // 2
    for position, (stage, sums) in enumerate(zip(STAGES[1], all_sums), 1):
        expected = audited(tmp_path, stage, "--release", "north.release.parquet", "--stage", position)
        assert without_zeros(sums) == expected, stage


def test_a_very_wide_table(engines, tmp_path):
    """More columns than an expression may be deep."""
    columns = {f"c{i}": {"lo": -1, "hi": 1} for i in range(1100)}
    write_study(tmp_path, 1500, "integer", columns, extra='method = "rmgm"\nk = 1200')
    budget(tmp_path)
    random = numpy.random.default_rng(4)
    columns = {name: random.normal(size=1500).astype("float32") for name in columns} | {"id": numpy.arange(1500)}
    for name in ["postgres", "duckdb"]:
        table = load(engines[name], tmp_path, columns)
        rows = engines[name].query(sql(tmp_path, name, table))
        assert without_zeros(sums_of(rows, 1100)) == audited(tmp_path, "mixed"), name


def test_the_commands_of_the_document_work(engines, tmp_path):
    """docs/SCALE.md: every ```sh block, in order, in an empty folder, against our own server."""
    document = pathlib.Path(__file__).parents[2] / "docs" / "SCALE.md"
    blocks = document.read_text().split("```sh\n")[1:]
    script = "".join(block.split("```")[0] for block in blocks)
    assert "until" in script
    command = tmp_path / "bin" / "potluck"
    command.parent.mkdir()
    command.symlink_to(POTLUCK)
    postgres = engines["postgres"]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(command.parent), postgres.programs, os.environ["PATH"]]),
        "PGHOST": str(postgres.folder),
        "PGUSER": "postgres",
        "PGDATABASE": "postgres",
    }
    done = subprocess.run(
        ["sh", "-e", "-u", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert (tmp_path / "north.release.parquet").exists()
