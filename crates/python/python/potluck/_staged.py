"""Releases from tables that stay in their engines: one query a stage, and only sums come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, Union

from potluck._arrow import ArrowStream
from potluck._errors import RemoteError
from potluck._order import Order
from potluck._potluck import Published, StagedRelease, StagedValidation, Study
from potluck._progress import Progress, reporting

Answer = Union[ArrowStream, Iterable[tuple[str, int, str]]]


@contextmanager
def in_engine(what: str) -> Iterator[None]:
    """What the engine raises becomes a `RemoteError`, which has it but does not show it. An interrupt stays one."""
    try:
        yield
    except Exception as error:
        failure = RemoteError(
            f"the engine {what} ({type(error).__name__}). Nothing came of this query: once this is mended, make the same "
            "call again (and roll back first if the connection is in a transaction). What the engine said may quote a "
            "value of the table, so it is not shown; it is the engine_error of this exception"
        )
        failure.engine_error = error
        raise failure from None


class Engine(Protocol):
    """What answers queries. What goes wrong in it is raised as `RemoteError`."""

    @property
    def adds_up(self) -> bool:
        """Whether it runs this package's own code on its rows, in place of queries for sums."""

    def names(self, query: str) -> list[str]:
        """The names of the columns of a query's result."""

    def text(self, query: str) -> str | None:
        """The only text that a query gives, if there is any."""

    def rows(self, query: str) -> Answer:
        """All rows that a query gives."""

    def shares(self, query: str, task: str) -> list[bytes]:
        """What a task comes to on the rows that a query gives: those of shares of them."""


def run(
    study: Study,
    party: str,
    engine: Engine,
    order: Order,
    *,
    dialect: str,
    table: str,
    id: str | None,
    progress: Progress,
) -> Published:
    """Has every stage that is not stored yet computed by the engine, and writes the release."""
    staged = StagedRelease(study, party, order, dialect=dialect, table=table, id=id)
    if staged.complete:
        return staged.finish()
    staged.take_names(engine.names(staged.names_query()))
    staged.take_types(engine.text(staged.types_query()))
    with reporting(progress, study.rows) as report:
        stages = _added(staged, engine) if engine.adds_up else _answered(staged, engine)
        for position, feed in stages:
            if report:
                report(position + 1, 0)
            feed()
            if report:
                report(position + 1, study.rows)
    return staged.finish()


def _answered(staged: StagedRelease, engine: Engine) -> Iterator[tuple[int, Callable[[], None]]]:
    """The stages that are left, each with what has the engine compute it and takes its answer."""
    while (query := staged.next_query()) is not None:
        position, text = query
        yield position, partial(_feed, staged, engine, text)


def _feed(staged: StagedRelease, engine: Engine, text: str) -> None:
    staged.feed(engine.rows(text))


def _added(staged: StagedRelease, engine: Engine) -> Iterator[tuple[int, Callable[[], None]]]:
    """The same where tasks add up. Ids are looked at once: the later stages are held against the same answer, so they are
    of the same subjects."""
    ids: list[tuple[str, int, str]] = []
    while (next_task := staged.next_task()) is not None:
        position, task, rows, of_ids = next_task
        yield position, partial(_feed_shares, staged, engine, ids, of_ids, rows, task)


def _feed_shares(
    staged: StagedRelease, engine: Engine, ids: list[tuple[str, int, str]], of_ids: str, rows: str, task: str
) -> None:
    if not ids:
        ids.extend(engine.rows(of_ids))  # type: ignore[arg-type]
    staged.feed_shares(ids, engine.shares(rows, task))


def validate(study: Study, party: str, engine: Engine, *, dialect: str, table: str, id: str | None) -> dict[str, Any]:
    """Has the engine count what a steward should know before a release."""
    staged = StagedValidation(study, party, dialect=dialect, table=table, id=id)
    staged.take_names(engine.names(staged.names_query()))
    staged.take_types(engine.text(staged.types_query()))
    return staged.take(engine.rows(staged.query()))
