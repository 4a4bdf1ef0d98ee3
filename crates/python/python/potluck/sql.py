"""Releases from tables in databases: where they are, or from rows that come here (docs/SCALE.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from typing import Any, Literal

from potluck import _potluck, _staged
from potluck._arrow import ArrowStream, Path
from potluck._errors import InputError, UsageError
from potluck._order import Access, Order
from potluck._potluck import Published, Pull, Study
from potluck._progress import Progress, reporting
from potluck._staged import Answer, in_engine

__all__ = ["release", "validate"]

# By the package that a connection comes from.
_DIALECTS: dict[str, str] = {
    "psycopg": "postgres",
    "psycopg2": "postgres",
    "duckdb": "duckdb",
    "_duckdb": "duckdb",
    "pyspark": "spark",
}
# By the name that an ADBC driver gives its database.
_VENDORS: dict[str, str] = {"postgresql": "postgres", "duckdb": "duckdb"}

# Rows of a batch of DuckDB's, and pieces of PostgreSQL's that are handed on at a time: one a row.
_BATCH = 1 << 16
_PIECES = 1 << 12


def _package(connection: object) -> str:
    return type(connection).__module__.partition(".")[0]


def _dialect(connection: Any) -> str:
    """The SQL that a connection speaks."""
    found = _DIALECTS.get(_package(connection))
    if found is None and hasattr(connection, "adbc_get_info"):
        with in_engine("does not say what it is"):
            vendor = str(connection.adbc_get_info().get("vendor_name", ""))
        found = _VENDORS.get(vendor.lower())
    if found is None:
        raise UsageError(
            f"a {type(connection).__name__} of {_package(connection)} does not show which SQL it speaks; "
            "name it with dialect='postgres' or dialect='duckdb'"
        )
    return found


def _is_idle(connection: Any) -> bool:
    """Whether a connection of psycopg or psycopg2 is known to be outside of a transaction."""
    status = getattr(getattr(connection, "info", None), "transaction_status", None)
    return status is not None and int(status) == 0


class _Database:
    """A database behind a DB-API or ADBC connection."""

    adds_up = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @contextmanager
    def _answer(self, query: str) -> Iterator[Any]:
        with in_engine("did not answer the query"):
            if _package(self._connection) in {"duckdb", "_duckdb"}:
                # A cursor of DuckDB's is another connection, which does not see temporary tables.
                yield self._connection.execute(query)
                return
            with self._transaction(), closing(self._connection.cursor()) as cursor:
                cursor.execute(query)
                yield cursor

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Ends the transaction that a query began by itself, and leaves alone one that was there before."""
        idle = _is_idle(self._connection)
        try:
            yield
        finally:
            if idle and not self._connection.closed:
                self._connection.rollback()

    def names(self, query: str) -> list[str]:
        with self._answer(query) as answer:
            return [str(column[0]) for column in answer.description]

    def text(self, query: str) -> str | None:
        with self._answer(query) as answer:
            row = answer.fetchone()
            return None if row is None else str(row[0])

    def rows(self, query: str) -> Answer:
        with self._answer(query) as answer:
            # ADBC answers in Arrow.
            if hasattr(self._connection, "adbc_get_info"):
                table: Answer = answer.fetch_arrow_table()
                return table
            return [tuple(row) for row in answer.fetchall()]

    def pairs(self, query: str) -> list[tuple[str, str]]:
        with self._answer(query) as answer:
            return [(str(one), str(other)) for one, other in answer.fetchall()]

    def shares(self, query: str, task: str) -> list[bytes]:
        raise NotImplementedError("a database runs no code of ours")

    @contextmanager
    def stream(self, pull: Pull) -> Iterator[ArrowStream]:
        """The rows that are asked for, by one query and so as they were at one moment."""
        package = _package(self._connection)
        if package == "psycopg":
            with in_engine("did not give its rows"), self._transaction(), closing(self._connection.cursor()) as cursor:
                yield _Copied(cursor, pull)
            return
        if package == "psycopg2":
            raise UsageError("rows are not streamed from psycopg2; connect with psycopg (version 3) or ADBC")
        if package in {"duckdb", "_duckdb"}:
            with in_engine("did not give its rows"):
                rows = self._connection.sql(pull.rows_query())
                # Its name before version 1.5.
                yield rows.to_arrow_reader(_BATCH) if hasattr(rows, "to_arrow_reader") else rows.fetch_record_batch(_BATCH)
            return
        if not hasattr(self._connection, "adbc_get_info"):
            raise UsageError(f"rows are not streamed from a connection of {package}; use ADBC, psycopg or DuckDB")
        with self._answer(pull.rows_query()) as answer:
            yield answer.fetch_record_batch()


class _Copied:
    """Rows of PostgreSQL as it gives them for COPY, as an Arrow stream."""

    def __init__(self, cursor: Any, pull: Pull) -> None:
        self._cursor = cursor
        self._pull = pull
        self.failure: Exception | None = None

    def _pieces(self) -> Iterator[bytes]:
        try:
            with self._cursor.copy(self._pull.copy_statement()) as copy:
                rows = iter(copy)
                while piece := b"".join(islice(rows, _PIECES)):
                    yield piece
        except Exception as error:  # Arrow passes on that it failed, and not why.
            self.failure = error
            raise

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._pull.decoded(self._pieces())


class _Rows:
    """The rows of a table in a database, which come when somebody asks for them, and once."""

    def __init__(self, database: _Database, pull: Pull, table: str) -> None:
        self._database = database
        self._pull = pull
        self._potluck_name = table
        self._described = False
        self._open = ExitStack()
        self._stream: Any = None

    def __enter__(self) -> _Rows:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._open.close()
        except Exception:  # What was read is read; what matters is raised already.
            return

    def _describe(self) -> None:
        if not self._described:
            query = self._pull.columns_query()
            if query is None:
                found = [(name, "") for name in self._database.names(self._pull.names_query())]
            else:
                found = self._database.pairs(query)
            self._pull.take_columns(found)
            self._described = True

    def __arrow_c_schema__(self) -> object:
        self._describe()
        return self._pull.schema()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self._describe()
        self._stream = self._open.enter_context(self._database.stream(self._pull))
        return self._stream.__arrow_c_stream__()

    @property
    def failure(self) -> Exception | None:
        """Why the rows ended too early, if they did and that is known."""
        return getattr(self._stream, "failure", None)


def _streamed(
    study: Study, party: str, connection: Any, table: str, order: Order, access: Access, dialect: str, progress: Progress
) -> Published:
    pull = Pull(study, party, access, dialect=dialect, table=table)
    with _Rows(_Database(connection), pull, table) as rows, reporting(progress, study.rows, study._passes) as report:
        try:
            return _potluck.release(study, party, rows, order, access, report)
        except InputError:
            if rows.failure is None:
                raise
            with in_engine("stopped before all rows had come"):
                raise rows.failure from None


def release(
    study: Study,
    party: str,
    connection: Any,
    table: str,
    *,
    dialect: Literal["postgres", "duckdb", "spark"] | None = None,
    read: Literal["sums", "stream"] = "sums",
    id: str | None = None,
    ledger: Path | None = None,
    budget: str | None = None,
    out: Path | None = None,
    signing_key: Path | None = None,
    accept_low_accuracy: bool = False,
    accept_lost_values: bool = False,
    overwrite: bool = False,
    threads: int | None = None,
    tmp_dir: Path | None = None,
    memory: int | None = None,
    confirm: bool | Callable[[str], bool] = False,
    progress: Progress = None,
) -> Published:
    """Publishes a party's columns from a table in a database, once, and charges the ledger.

    The database answers one query a stage; only sums come back, and noise is added here. Where this machine may see the
    rows, ``read="stream"`` brings them: they come here once, by one query. The sums are those that
    `potluck.release` would compute, to the last bit, and so is the guarantee. If it is interrupted, make the same call
    again: it goes on where it stopped, with the same noise and one charge.

    Parameters
    ----------
    study
        The sealed study.
    party
        Which of its parties you are.
    connection
        A DB-API connection (psycopg, DuckDB) or an ADBC connection, open. It only reads.
    table
        The table or view: ``table``, ``schema.table`` or ``catalog.schema.table``, capitals included; a name with a dot in
        it stands in double quotes. Its rows must stay the same until the release is done.
    dialect
        The SQL that the connection speaks, where it does not show.
    read
        ``"sums"``: the table stays where it is, and queries compute sums. ``"stream"``: the rows of the columns that are
        needed come here, after everything else was checked and agreed, and are held in memory within `memory`, beyond that
        in an unnamed private file. PostgreSQL needs psycopg 3 or ADBC for it.
    id
        The column that holds the ids; ``id`` by default. A study whose ids are positions needs a column that holds them.
    ledger
        The ledger, or its path; the user's own by default (see `Ledger`).
    budget
        The budget of the ledger that is charged; by default the only one.
    out
        Where the release goes; by default ``<party>.release.parquet`` in the working folder.
    signing_key, accept_low_accuracy, accept_lost_values, overwrite, confirm
        As in `potluck.release`.
    threads, tmp_dir, memory
        As in `potluck.release`, for rows that are streamed.
    progress
        As in `potluck.release`; for sums it is told before and after each query.
    """
    if read not in ("sums", "stream"):
        raise UsageError(f"read is {read!r}; give \"sums\" or \"stream\"")
    if read == "stream":
        return _streamed(
            study,
            party,
            connection,
            table,
            Order(ledger, budget, out, signing_key, accept_low_accuracy, accept_lost_values, overwrite, confirm),
            Access(id or "id", True, None, threads, tmp_dir, memory),
            dialect or _dialect(connection),
            progress,
        )
    return _staged.run(
        study,
        party,
        _Database(connection),
        Order(ledger, budget, out, signing_key, accept_low_accuracy, accept_lost_values, overwrite, confirm),
        dialect=dialect or _dialect(connection),
        table=table,
        id=id,
        progress=progress,
    )


def validate(
    study: Study,
    party: str,
    connection: Any,
    table: str,
    *,
    dialect: Literal["postgres", "duckdb", "spark"] | None = None,
    id: str | None = None,
) -> dict[str, Any]:
    """Counts, in the database, what a steward should know of a table before a release; see `Study.validate`.

    One query, whose answer is for your own eyes: nothing is charged, written or published. The study need not be sealed.
    Undeclared levels are counted and never shown: ask the database for them. Parameters are those of `release`.
    """
    return _staged.validate(
        study, party, _Database(connection), dialect=dialect or _dialect(connection), table=table, id=id
    )
