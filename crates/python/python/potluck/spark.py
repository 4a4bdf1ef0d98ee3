"""Releases from DataFrames of Spark, 3.4 or later, computed where the data is (docs/SCALE.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from potluck import _staged
from potluck._arrow import Path
from potluck._errors import InputError, UsageError
from potluck._order import Order
from potluck._potluck import Published, Study
from potluck._progress import Progress
from potluck._staged import Answer, in_engine

__all__ = ["release", "validate"]


class _View:
    """A DataFrame under a name of its own in its session, while a release lasts. Spark SQL only: no Python runs on the
    cluster, and no row of the table comes here."""

    def __init__(self, frame: Any, name: str) -> None:
        self._frame = frame
        self._name = name

    def __enter__(self) -> _View:
        with in_engine("did not take the DataFrame"):
            self._frame.createOrReplaceTempView(f"`{self._name}`")
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self._frame.sparkSession.catalog.dropTempView(self._name)
        except Exception:  # The session may be gone, and the view with it; what matters is raised already.
            return

    def refuse_padded(self) -> None:
        """Spark calls a CHAR(n) a string, and pads it; whether the blanks count is for the owner of the table to say."""
        with in_engine("did not say what the DataFrame holds"):
            fields = list(self._frame.schema.fields)
        for field in fields:
            kind = str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", ""))
            if kind.startswith("char"):
                raise InputError(
                    f"column {field.name!r} is stored as CHAR, padded with blanks; drop it, or say what is meant with "
                    f"df.withColumn({field.name!r}, rtrim({field.name!r}))"
                )

    def _collect(self, query: str) -> list[tuple[Any, ...]]:
        with in_engine("did not answer the query"):
            return [tuple(row) for row in self._frame.sparkSession.sql(query).collect()]

    def names(self, query: str) -> list[str]:
        with in_engine("did not answer the query"):
            return list(self._frame.sparkSession.sql(query).columns)

    def text(self, query: str) -> str | None:
        rows = self._collect(query)
        return str(rows[0][0]) if rows else None

    def rows(self, query: str) -> Answer:
        return self._collect(query)


def _view_name(study: Study, party: str, df: Any) -> str:
    """The same name whenever the call is made again, and no other party's."""
    if not hasattr(df, "createOrReplaceTempView") or not hasattr(df, "sparkSession"):
        raise UsageError(f"df is a {type(df).__name__}; give a DataFrame of Spark 3.4 or later")
    return f"potluck_{study.id or 'draft'}_{party.encode().hex()}"


def release(
    study: Study,
    party: str,
    df: Any,
    *,
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
    """Publishes a party's columns from a DataFrame of Spark, once, and charges the ledger.

    Every stage is one Spark SQL query over the DataFrame: executors encode and sum, at most one row for each mixed row
    comes back, and noise is added here. No Python runs on the cluster. If it is interrupted, make the same call again: it
    goes on where it stopped, with the same noise and one charge.

    Parameters
    ----------
    study
        The sealed study.
    party
        Which of its parties you are.
    df
        The party's table. It is computed anew for each of the four stages and must give the same rows every time: write
        out, and read back, what depends on chance or on tables that change.
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
    name = _view_name(study, party, df)
    with _View(df, name) as view:
        view.refuse_padded()
        return _staged.run(
            study,
            party,
            view,
            Order(ledger, budget, out, signing_key, accept_low_accuracy, accept_lost_values, overwrite, confirm),
            dialect="spark",
            table=name,
            id=id,
            progress=progress,
        )


def validate(study: Study, party: str, df: Any, *, id: str | None = None) -> dict[str, Any]:
    """Counts, where the data is, what a steward should know of a DataFrame before a release; see `Study.validate`.

    One query, whose answer is for your own eyes: nothing is charged, written or published. The study need not be sealed.
    Undeclared levels are counted and never shown. Parameters are those of `release`.
    """
    name = _view_name(study, party, df)
    with _View(df, name) as view:
        view.refuse_padded()
        return _staged.validate(study, party, view, dialect="spark", table=name, id=id)
