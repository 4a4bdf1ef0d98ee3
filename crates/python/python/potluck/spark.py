"""Releases from DataFrames of Spark, 3.4 or later, computed where the data is (docs/SCALE.md)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from potluck import _potluck, _staged
from potluck._arrow import Path
from potluck._errors import InputError, UsageError
from potluck._order import Order
from potluck._potluck import Published, Study
from potluck._progress import Progress
from potluck._staged import Answer, in_engine

__all__ = ["release", "validate"]


# What executors must have.
_VERSION = _potluck.__version__
# An archive of this name among those of a session (``--archives potluck.zip#potluck-package``) holds the package.
_ARCHIVE = "potluck-package"
# Shares that are merged here without a step in between.
_SHARES = 64


def _found() -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What tells which version of this package an executor has. It goes there as it is written, and imports nothing of the
    package's where that may be missing."""
    archive = _ARCHIVE

    def found(batches: Iterable[Any]) -> Iterator[Any]:
        import os
        import sys

        import pyarrow  # type: ignore[import-untyped]

        for _ in batches:
            pass
        if os.path.isdir(archive) and archive not in sys.path:
            sys.path.insert(0, archive)
        try:
            from potluck import __version__ as version
        except Exception as error:
            version = type(error).__name__
        yield pyarrow.RecordBatch.from_pydict({"version": [version]})

    return found


def _added(task: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What adds up the rows of a partition."""
    archive = _ARCHIVE

    def added(batches: Iterable[Any]) -> Iterator[Any]:
        import os
        import sys

        import pyarrow

        if os.path.isdir(archive) and archive not in sys.path:
            sys.path.insert(0, archive)
        from potluck import _potluck

        share = _potluck.Share(task)
        for batch in batches:
            share.add(batch)
        yield pyarrow.RecordBatch.from_pydict({"share": [share.finish()]}, pyarrow.schema([("share", pyarrow.binary())]))

    return added


def _merged() -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What makes one share of those of a partition, if there are any."""
    archive = _ARCHIVE

    def merged(batches: Iterable[Any]) -> Iterator[Any]:
        import os
        import sys

        import pyarrow

        if os.path.isdir(archive) and archive not in sys.path:
            sys.path.insert(0, archive)
        from potluck import _potluck

        whole = None
        for batch in batches:
            for share in batch.column(0):
                parts = [share.as_py()] if whole is None else [whole, share.as_py()]
                whole = _potluck.merged(parts)
        if whole is not None:
            yield pyarrow.RecordBatch.from_pydict({"share": [whole]}, pyarrow.schema([("share", pyarrow.binary())]))

    return merged


def _is_on_executors(session: Any) -> bool:
    """Whether executors have this package in this version: as many tasks look as run at a time. Says so if not."""
    try:
        tasks = max(1, int(session.sparkContext.defaultParallelism))
        found = session.range(0, tasks, 1, tasks).mapInArrow(_found(), "version string").distinct().collect()
        versions = sorted(str(row[0]) for row in found)
    except Exception as error:
        versions = [type(error).__name__]
    if versions == [_VERSION]:
        return True
    warnings.warn(
        f"executors do not have potluck {_VERSION} ({', '.join(versions)}), so Spark SQL computes the sums, which "
        "takes longer and gives the same; docs/SCALE.md says how the package gets there",
        stacklevel=3,
    )
    return False


class _View:
    """A DataFrame under a name of its own in its session, while a release lasts. No row of the table comes here."""

    def __init__(self, frame: Any, name: str, adds_up: bool = False) -> None:
        self._frame = frame
        self._name = name
        self.adds_up = adds_up

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

    def shares(self, query: str, task: str) -> list[bytes]:
        with in_engine("did not add up the rows"):
            shares = self._frame.sparkSession.sql(query).mapInArrow(_added(task), "share binary")
            count = shares.rdd.getNumPartitions()
            if count > _SHARES:
                # Each merges about as many as are left for the last one.
                shares = shares.repartition(math.isqrt(count)).mapInArrow(_merged(), "share binary")
            return [bytes(row[0]) for row in shares.collect()]


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
    engine: Literal["sql", "native"] = "sql",
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

    Every stage is computed where the data is: executors encode and sum, sums alone come back, and noise is added here. By
    default one Spark SQL query does it, and no Python runs on the cluster; with ``engine="native"`` this package's own code
    does, on executors that have it. The sums are the same to the last bit. If it is interrupted, make
    the same call again: it goes on where it stopped, with the same noise and one charge.

    Parameters
    ----------
    study
        The sealed study.
    party
        Which of its parties you are.
    df
        The party's table. It is computed anew for each of the four stages and must give the same rows every time: write
        out, and read back, what depends on chance or on tables that change.
    engine
        ``"sql"``, or ``"native"``: tasks of `mapInArrow` add up their partitions, and what they come to is merged. Executors
        need this package in this version, and pyarrow; where they lack it, a warning says so, and SQL is used.
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
        As in `potluck.release`, told before and after each stage.
    """
    if engine not in ("sql", "native"):
        raise UsageError(f"engine is {engine!r}; give \"sql\" or \"native\"")
    name = _view_name(study, party, df)
    native = engine == "native" and _is_on_executors(df.sparkSession)
    with _View(df, name, native) as view:
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
