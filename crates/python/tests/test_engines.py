"""Releases from PostgreSQL, DuckDB and Spark, each through every kind of connection: the sums are those of the built-in
reader, and what goes wrong costs nothing."""

import threading
import time
import traceback
from pathlib import Path

import adbc_driver_duckdb.dbapi
import adbc_driver_postgresql.dbapi
import duckdb
import numpy
import psycopg
import pyarrow
import pyarrow.parquet
import pytest
import scale
from conftest import assert_untouched, command, spent
from engines import quote, started

import potluck
from potluck import Categorical, Numeric, Study

ROWS = 3000
TABLE = 'my "people"'
WAYS = ["psycopg", "duckdb", "adbc postgres", "adbc duckdb", "spark", "spark native"]
STREAMS = ["psycopg", "duckdb", "adbc postgres", "adbc duckdb"]


@pytest.fixture(scope="session")
def engines(tmp_path_factory):
    with started(tmp_path_factory.mktemp("engines")) as engines:
        yield engines


@pytest.fixture
def study():
    """With a boolean and a date that have bounds, which only the schema of the table can tell from numbers."""
    columns = [
        Numeric("amount", 0, 1, missing="error"),
        Numeric("flag", 0, 1),
        Numeric("born", -20_000, 20_000),
        Categorical("grade", ["a", "b", "c"]),
    ]
    parties = {"north": columns, "south": [Numeric("other", 0, 1)]}
    return Study.new(name="engines", rows=ROWS, epsilon=2, delta=1e-6, id="text", parties=parties).seal()


def people(**change):
    rng = numpy.random.default_rng(5)
    days = pyarrow.array(rng.integers(-30_000, 30_000, ROWS).astype("int32")).cast(pyarrow.date32())
    columns = {
        "id": [f"é{i}" for i in range(ROWS)],
        "amount": rng.random(ROWS),
        "flag": rng.random(ROWS) < 0.3,
        "born": days,
        "grade": ["abc"[i % 3] if i % 7 else None for i in range(ROWS)],
        "not in the study": list(range(ROWS)),
    }
    return pyarrow.table({**columns, **change})


class Way:
    """A table in an engine, and a way to release it."""

    def __init__(self, engines, name, folder):
        self.engines, self.name, self.folder = engines, name, folder

    def load(self, table):
        """Puts a table there."""
        path = self.folder / "people.parquet"
        pyarrow.parquet.write_table(table, path)
        dialect = {"psycopg": "postgres", "adbc postgres": "postgres"}.get(self.name, "duckdb")
        if self.is_spark:
            self.data = self.engines["spark"].session.read.parquet(str(path))
        elif self.name == "adbc duckdb":
            self.data = f"main.{quote(TABLE)}"
            database = self.folder / "people.duckdb"
            with duckdb.connect(str(database)) as connection:
                connection.execute(f"CREATE OR REPLACE TABLE {quote(TABLE)} AS FROM read_parquet('{path}')")
        else:
            self.data = self.engines[dialect].load(table, TABLE, path)

    @property
    def is_spark(self):
        return self.name.startswith("spark")

    def connect(self):
        if self.name == "psycopg":
            return psycopg.connect(host=str(self.engines["postgres"].folder), user="postgres")
        if self.name == "adbc postgres":
            folder = self.engines["postgres"].folder
            return adbc_driver_postgresql.dbapi.connect(f"postgresql:///postgres?host={folder}&user=postgres")
        if self.name == "adbc duckdb":
            return adbc_driver_duckdb.dbapi.connect(str(self.folder / "people.duckdb"))
        return self.engines["duckdb"].connection.cursor()

    def release(self, study, ledger, **more):
        more = {"ledger": ledger, "accept_low_accuracy": True, **more}
        if self.is_spark:
            engine = "native" if self.name == "spark native" else "sql"
            return potluck.spark.release(study, "north", self.data, engine=engine, **more)
        connection = more.pop("connection", None)
        if connection is not None:
            return potluck.sql.release(study, "north", connection, self.data, **more)
        with self.connect() as connection:
            return potluck.sql.release(study, "north", connection, self.data, **more)


@pytest.fixture(params=WAYS)
def way(request, engines, folder):
    return Way(engines, request.param, folder)


def test_a_release_is_charged_once_and_comes_out_the_same_again(way, study, ledger):
    table = people()
    way.load(table)
    reported = []
    first = way.release(study, ledger, progress=lambda *at: reported.append(at))
    assert not first.repeated and first.party == "north" and first.epsilon_left == 0.0
    assert reported == [(stage, done, ROWS) for stage in (1, 2, 3, 4) for done in (0, ROWS)]
    command("verify", first.path)
    charged = spent(ledger)
    # Everything is stored: the engine is not asked, and the bytes are the same.
    more = {} if way.is_spark else {"connection": object(), "dialect": "duckdb"}
    again = way.release(study, ledger, out="again.parquet", **more)
    assert again.repeated and Path("again.parquet").read_bytes() == Path(first).read_bytes()
    assert spent(ledger) == charged


def test_exact_sums_agree(way, study, ledger, monkeypatch):
    """Every answer of the engine holds the sums that `potluck.sums` gives."""
    table = people()
    way.load(table)
    seen, native = [], []
    feed = potluck._staged.StagedRelease.feed

    class Listening:
        """Hears what the engine says."""

        def __init__(self, *given, **named):
            self._staged = potluck._potluck.StagedRelease(*given, **named)

        def __getattr__(self, name):
            return getattr(self._staged, name)

        def feed(self, answer):
            rows = answer if isinstance(answer, list) else [tuple(row.values()) for row in answer.to_pylist()]
            seen.append(rows)
            return feed(self._staged, answer)

        def feed_shares(self, ids, shares):
            native.append(potluck._potluck.merged(shares))
            return self._staged.feed_shares(ids, shares)

    monkeypatch.setattr(potluck._staged, "StagedRelease", Listening)
    released = way.release(study, ledger)
    for stage, share in enumerate(native):
        path = potluck.sums(
            study, "north", table, state="audit", release=released, stage=stage + 1, ignore_extra=True, overwrite=True
        )
        expected = [int(line.split(",")[-1]) for line in Path(path).read_text().splitlines()[1:]]
        assert numpy.frombuffer(share, "<i8", offset=64)[-len(expected) :].tolist() == expected
    assert len(seen) + len(native) == 4
    for stage, rows in enumerate(seen):
        path = potluck.sums(
            study, "north", table, state="audit", release=released, stage=stage + 1, ignore_extra=True, overwrite=True
        )
        expected = {}
        for line in Path(path).read_text().splitlines()[1:]:
            fields = line.split(",")
            slot = int(fields[0]) if stage == 3 else 0
            expected.setdefault(slot, []).append(fields[-1])
        # A count of rows, two check sums and a count of refused values for each column stand before the sums.
        found = {number: value.split(" ")[3 + 4 :] for part, number, value in rows if part == "sums"}
        nothing = {"0"}
        assert {slot: sums for slot, sums in found.items() if set(sums) != nothing} == {
            slot: sums for slot, sums in expected.items() if set(sums) != nothing
        }


def test_what_is_wrong_with_a_table_is_said_and_costs_nothing(way, study, ledger, folder):
    table = people()
    ids = table["id"].to_pylist()
    for message, wrong in {
        '"born": is missing': table.drop_columns(["born"]),
        '"id": is missing; name the column that holds the ids with id=': table.drop_columns(["id"]),
        "the same id stands in several rows": people(id=[ids[1], *ids[1:]]),
        "ids are missing": people(id=[None, *ids[1:]]),
        '"amount": holds text': people(amount=[str(i) for i in range(ROWS)]),
        '"amount": has values that are missing': people(amount=[None, *[0.5] * (ROWS - 1)]),
        "holds ids of type": people(id=list(range(ROWS))),
        "has fewer rows": table.slice(1),
        "fewer rows than the 3000": table.slice(0, 0),
        "more rows": pyarrow.concat_tables([table, people(id=["new", *ids[1:]]).slice(0, 1)]),
    }.items():
        way.load(wrong)
        with pytest.raises(potluck.Error) as raised:
            way.release(study, ledger)
        assert isinstance(raised.value, potluck.InputError) and message in str(raised.value), raised.value
        assert raised.value.exit_code == 3
        assert_untouched(ledger, folder)
    way.load(table)
    with pytest.raises(potluck.UsageError, match="not agreed"):
        way.release(study, ledger, confirm=lambda question: False)
    assert_untouched(ledger, folder)
    way.release(study, ledger)
    assert spent(ledger) > 0


def test_a_dead_connection_costs_nothing_and_a_release_is_taken_up(way, study, ledger, folder):
    way.load(people())
    if not way.is_spark:
        dead = way.connect()
        dead.close()
        with pytest.raises(potluck.RemoteError, match="did not answer") as raised:
            way.release(study, ledger, connection=dead, dialect="postgres" if "post" in way.name else "duckdb")
        assert raised.value.exit_code == 6 and raised.value.engine_error is not None
        assert_untouched(ledger, folder)

    def breaks_at(stage):
        def report(at, done, rows):
            if at == stage and done == 0:
                raise ConnectionError("the line is dead")

        return report

    with pytest.raises(ConnectionError):
        way.release(study, ledger, progress=breaks_at(1))
    assert_untouched(ledger, folder)
    with pytest.raises(ConnectionError):
        way.release(study, ledger, progress=breaks_at(3))
    charged = spent(ledger)
    assert charged > 0 and not list(folder.glob("*.release.parquet"))
    # Taken up at the stage that was not done, at no further charge.
    reported = []
    published = way.release(study, ledger, progress=lambda *at: reported.append(at))
    assert not published.repeated and reported[0] == (3, 0, ROWS) and spent(ledger) == charged


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("memory", [None, 0])
def test_rows_that_are_streamed_give_the_same_sums(engines, study, ledger, folder, name, memory):
    table = people()
    way = Way(engines, name, folder)
    way.load(table)
    asked, tmp = [], folder / "tmp"
    tmp.mkdir()
    more = {"read": "stream", "memory": memory, "tmp_dir": tmp}
    published = way.release(study, ledger, confirm=lambda question: asked.append(question) or True, **more)
    assert len(asked) == 1 and command("verify", published.path)
    assert not list(tmp.iterdir())
    sums = {"state": "audit", "release": published, "ignore_extra": True, "overwrite": True}
    with way.connect() as connection:
        for stage in range(1, 5):
            expected = Path(potluck.sums(study, "north", table, stage=stage, **sums)).read_text()
            access = potluck._order.Access("id", True, None, None, None, memory)
            dialect = "postgres" if "p" in name.split()[-1] else "duckdb"
            pull = potluck._potluck.Pull(study, "north", access, dialect=dialect, table=way.data)
            with potluck.sql._Rows(potluck.sql._Database(connection), pull, way.data) as rows:
                assert Path(potluck.sums(study, "north", rows, stage=stage, **sums)).read_text() == expected
    # Everything is stored: nobody is asked.
    again = way.release(study, ledger, out="again.parquet", connection=object(), dialect="duckdb", **more)
    assert again.repeated and Path("again.parquet").read_bytes() == Path(published).read_bytes()


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_wrong_with_streamed_rows_is_said_and_costs_nothing(engines, study, ledger, folder, name):
    way = Way(engines, name, folder)
    table = people()
    ids = table["id"].to_pylist()
    asked = []
    more = {"read": "stream", "confirm": lambda question: asked.append(question) or True}
    for message, wrong, before in [
        ('"born": is missing', table.drop_columns(["born"]), True),
        ('"id": is missing; name the column that holds the ids with id=', table.drop_columns(["id"]), True),
        ("the id is the same as in row", people(id=[ids[1], *ids[1:]]), False),
        ('"amount", row 1: is missing', people(amount=[None, *[0.5] * (ROWS - 1)]), False),
        ("has fewer rows", table.slice(1), False),
        ("fewer rows than the 3000", table.slice(0, 0), False),
    ]:
        way.load(wrong)
        with pytest.raises(potluck.InputError) as raised:
            way.release(study, ledger, **more)
        assert message in str(raised.value), raised.value
        assert bool(asked) != before, "names are looked at before anybody is asked"
        asked.clear()
        assert_untouched(ledger, folder)
    dead = way.connect()
    dead.close()
    with pytest.raises(potluck.RemoteError):
        way.release(study, ledger, connection=dead, dialect="postgres" if "p" in name.split()[-1] else "duckdb", **more)
    assert_untouched(ledger, folder)


def test_what_postgres_says_of_streamed_rows_is_not_shown(engines, ledger, folder):
    """A view that fails at a value in the middle of the rows, which PostgreSQL quotes."""
    engines["postgres"].connection.execute("DROP TABLE IF EXISTS clinic.words CASCADE")
    engines["postgres"].connection.execute(
        "CREATE TABLE clinic.words AS SELECT i AS id, CASE i WHEN 40 THEN 'secret' ELSE '1' END AS word "
        "FROM generate_series(0::bigint, 99) AS i"
    )
    engines["postgres"].connection.execute(
        "CREATE VIEW clinic.cast_words AS SELECT id, CAST(word AS float8) AS amount FROM clinic.words"
    )
    parties = {"north": [Numeric("amount", 0, 1)], "south": [Numeric("other", 0, 1)]}
    study = Study.new(name="words", rows=100, epsilon=2, delta=1e-6, parties=parties).seal()
    more = {"ledger": ledger, "accept_low_accuracy": True, "read": "stream"}
    with Way(engines, "psycopg", folder).connect() as connection, pytest.raises(potluck.RemoteError) as raised:
        potluck.sql.release(study, "north", connection, "clinic.cast_words", **more)
    assert "secret" in str(raised.value.engine_error)
    assert "secret" not in "".join(traceback.format_exception(raised.value))
    assert_untouched(ledger, folder)


def test_executors_without_the_package_are_told_of_and_sql_is_used(engines, study, ledger, folder, monkeypatch):
    way = Way(engines, "spark native", folder)
    way.load(people())
    # What executors have is held against this.
    monkeypatch.setattr(potluck.spark, "_VERSION", "0.0.0")
    with pytest.warns(UserWarning, match=r"executors do not have potluck 0\.0\.0 \(.*Spark SQL computes the sums"):
        way.release(study, ledger)
    assert spent(ledger) > 0


def test_shares_of_many_partitions_are_merged(engines, study, ledger, folder):
    way = Way(engines, "spark native", folder)
    way.load(people())
    way.data = way.data.repartition(70)
    way.release(study, ledger)
    assert spent(ledger) > 0
    with pytest.raises(potluck.InputError, match="another version"):
        potluck._potluck.merged([b"0" * 72, b"1" * 72])


def test_a_cancelled_query_costs_nothing(engines, study, ledger, folder):
    way = Way(engines, "psycopg", folder)
    way.load(people())
    engines["postgres"].connection.execute(
        f"""CREATE OR REPLACE VIEW clinic.slow AS SELECT id, flag, born, grade,
        amount + CASE WHEN pg_sleep(0.01) IS NULL THEN 1 ELSE 0 END AS amount FROM {way.data}"""
    )
    way.data = "clinic.slow"
    with way.connect() as connection:
        threading.Timer(1.5, connection.cancel).start()
        start = time.monotonic()
        with pytest.raises(potluck.RemoteError) as raised:
            way.release(study, ledger, connection=connection)
        assert isinstance(raised.value.engine_error, psycopg.errors.QueryCanceled)
        assert time.monotonic() - start < 20
        assert_untouched(ledger, folder)
        # The connection is as it was, so the same call can be made again at once.
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        connection.execute("BEGIN")
        way.data = f"clinic.{quote(TABLE)}"
        way.release(study, ledger, connection=connection, out="in a transaction.parquet")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS, "left as it was"
    ledger = potluck.Ledger("spark.ledger")
    ledger.init("people", 2, 1e-6)
    spark = Way(engines, "spark", folder)
    spark.load(people())
    asked, done = threading.Event(), threading.Event()

    def cancel():
        asked.wait()
        while not done.wait(0.02):
            engines["spark"].session.sparkContext.cancelAllJobs()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:
        with pytest.raises(potluck.RemoteError) as raised:
            spark.release(study, ledger, progress=lambda at, rows, all: asked.set())
    finally:
        asked.set()
        done.set()
        canceller.join()
    assert "cancelled" in str(raised.value.engine_error)
    assert_untouched(ledger, folder)


def test_what_an_engine_says_is_not_shown(engines, ledger, folder):
    """A table whose values the engine itself trips over, and quotes: no traceback shows them."""
    secret = "1" + "0" * 400
    engines["postgres"].connection.execute("DROP TABLE IF EXISTS clinic.vast")
    engines["postgres"].connection.execute(f"CREATE TABLE clinic.vast AS SELECT 'a' AS id, {secret}::numeric AS amount")
    parties = {"north": [Numeric("amount", 0, 1)], "south": [Numeric("other", 0, 1)]}
    study = Study.new(name="vast", rows=50, epsilon=2, delta=1e-6, id="text", parties=parties).seal()
    more = {"ledger": ledger, "accept_low_accuracy": True}
    with Way(engines, "psycopg", folder).connect() as connection, pytest.raises(potluck.RemoteError) as raised:
        potluck.sql.release(study, "north", connection, "clinic.vast", **more)
    assert secret in str(raised.value.engine_error)
    assert secret not in "".join(traceback.format_exception(raised.value))
    assert_untouched(ledger, folder)


def test_an_answer_of_another_form_is_refused(study, ledger, folder):
    class Odd:
        """A database that answers in its own way."""

        description = [(name,) for name in ["id", "amount", "flag", "born", "grade"]]

        def cursor(self):
            return self

        def execute(self, query):
            pass

        def close(self):
            pass

        def fetchone(self):
            return ("double precision;boolean;date;text;text",)

        def fetchall(self):
            return [("sums", "a sum of 12345", 1)]

    with pytest.raises(potluck.InputError, match="has another form") as raised:
        potluck.sql.release(
            study, "north", Odd(), "people", dialect="postgres", ledger=ledger, accept_low_accuracy=True
        )
    assert "12345" not in str(raised.value)
    assert_untouched(ledger, folder)


def test_padded_columns_of_spark_are_refused(engines, study, ledger, folder):
    session = engines["spark"].session
    session.sql("DROP TABLE IF EXISTS padded")
    session.sql("CREATE TABLE padded (id CHAR(6), amount DOUBLE, flag BOOLEAN, born DATE, grade STRING) USING parquet")
    more = {"ledger": ledger, "accept_low_accuracy": True}
    with pytest.raises(potluck.InputError, match=r"'id' is stored as CHAR.*rtrim"):
        potluck.spark.release(study, "north", session.table("padded"), **more)
    assert_untouched(ledger, folder)


def test_budget_and_plan_are_looked_at_before_the_engine_works(study, ledger, folder):
    nobody = object()
    more = {"dialect": "postgres", "accept_low_accuracy": True}
    small = potluck.Ledger("small.ledger")
    small.init("people", 0.1, 1e-6)
    with pytest.raises(potluck.BudgetError):
        potluck.sql.release(study, "north", nobody, "people", ledger=small, **more)
    assert_untouched(small, folder)
    columns = {"north": [Numeric("amount", 0, 1)], "south": [Numeric("other", 0, 1)]}
    futile = Study.new(name="futile", rows=100, epsilon=0.1, delta=1e-6, parties=columns).seal()
    with pytest.raises(potluck.UsageError, match="accept_low_accuracy=True"):
        potluck.sql.release(futile, "north", nobody, "people", ledger=ledger, dialect="postgres")
    with pytest.raises(potluck.InputError, match="seal it with"):
        potluck.sql.release(Study.parse(unsealed(study)), "north", nobody, "people", ledger=ledger, **more)
    Path("north.release.parquet").write_text("somebody else's")
    with pytest.raises(potluck.InputError, match="overwrite=True"):
        potluck.sql.release(study, "north", nobody, "people", ledger=ledger, **more)
    assert spent(ledger) == 0


def unsealed(study):
    """The text of a study without its seal."""
    return study.to_toml().partition("[sealed]")[0]


def test_dialects_and_names(engines, study, ledger, folder):
    with pytest.raises(potluck.UsageError, match="dialect="):
        potluck.sql.release(study, "north", object(), "people", ledger=ledger, accept_low_accuracy=True)
    with pytest.raises(potluck.UsageError, match="a dialect is postgres, duckdb or spark"):
        potluck.sql.release(study, "north", object(), "people", ledger=ledger, dialect="oracle")
    with pytest.raises(potluck.UsageError, match="DataFrame of Spark"):
        potluck.spark.release(study, "north", people(), ledger=ledger)
    connection = duckdb.connect()
    # A temporary table, which another connection does not see, under a name that no quoting by hand survives.
    odd = 'odd "name"; DROP TABLE people --'
    table = people()
    connection.register("given", table)
    connection.execute(f"CREATE TEMP TABLE {quote(odd)} AS FROM given")
    published = potluck.sql.release(
        study, "north", connection, quote(odd), ledger=ledger, accept_low_accuracy=True, out="odd.parquet"
    )
    assert command("inspect", published.path, "--json")["party"] == "north"


def test_no_row_of_spark_comes_to_the_driver(engines, study, ledger, folder, monkeypatch):
    """At most a row for each mixed row comes back, and there is no Python on the executors."""
    way = Way(engines, "spark", folder)
    way.load(people())
    sizes, plans = [], []
    kind = type(way.data)
    collect = kind.collect

    def counted(frame):
        plans.append(frame._jdf.queryExecution().toString())
        rows = collect(frame)
        sizes.append(len(rows))
        return rows

    monkeypatch.setattr(kind, "collect", counted)
    for name in ["toPandas", "toLocalIterator", "take", "head", "foreach", "rdd"]:
        monkeypatch.setattr(kind, name, None)
    published = way.release(study, ledger)
    rows = len(pyarrow.parquet.read_table(published.path))
    # The types; then each stage's sums, beside three rows that say what they are sums of, and in the first stage one
    # that says how many values are lost.
    assert sizes[:4] == [1, 5, 4, 4] and sizes[4] <= rows + 3 < ROWS
    assert not any("Python" in plan for plan in plans)
    assert not [view for view in engines["spark"].session.catalog.listTables() if "potluck" in view.name]


def test_the_tables_of_growth_can_be_made(engines, folder):
    """docs/RESULTS.md and docs/SCALE.md, in small."""
    seconds = scale.measure(engines, [2000, 4000], folder, runs=1)
    assert len(scale.measured(seconds, cores=2).splitlines()) == 2 + 7
    estimated = scale.estimated(seconds, cores=2)
    assert len(estimated.splitlines()) == 2 + 9 and "10,000,000,000 rows" in estimated
