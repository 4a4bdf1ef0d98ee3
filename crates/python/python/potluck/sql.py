"""Releases from tables in databases, which stay there (docs/SCALE.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Literal

from potluck import _staged
from potluck._arrow import Path
from potluck._errors import UsageError
from potluck._order import Order
from potluck._potluck import Published, Study
from potluck._progress import Progress
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


def release(
    study: Study,
    party: str,
    connection: Any,
    table: str,
    *,
    dialect: Literal["postgres", "duckdb", "spark"] | None = None,
    id: str | None = None,
    ledger: Path | None = None,
    budget: str | None = None,
    out: Path | None = None,
    signing_key: Path | None = None,
    accept_low_accuracy: bool = False,
    accept_lost_values: bool = False,
    overwrite: bool = False,
    confirm: bool | Callable[[str], bool] = False,
    progress: Progress = None,
) -> Published:
    """Publishes a party's columns from a table that stays in its database, once, and charges the ledger.

    The database answers one query a stage; only sums come back, and noise is added here. The sums are those that
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
    progress
        As in `potluck.release`, told before and after each query.
    """
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
