"""What every way to release is asked for, and how tables are read: these options walk to the native part here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Union

from potluck._arrow import Path

Confirm = Union[bool, Callable[[str], bool]]
"""Who is asked before something is charged: whoever sits at the keyboard, a callable, or nobody."""


def _at_the_keyboard(question: str) -> bool:
    return input(f"{question} [y/N] ").strip().lower() in {"y", "yes"}


def asked(confirm: Confirm) -> Callable[[str], bool] | None:
    """What is given the question, if anyone is asked."""
    return _at_the_keyboard if confirm is True else confirm or None


class Order(NamedTuple):
    """What is asked for of a release, wherever its table is."""

    ledger: Path | None
    budget: str | None
    out: Path | None
    signing_key: Path | None
    accept_low_accuracy: bool
    accept_lost_values: bool
    overwrite: bool
    confirm: Confirm

    @property
    def asked(self) -> Callable[[str], bool] | None:
        """What is given the question, if anyone is asked."""
        return asked(self.confirm)


class Access(NamedTuple):
    """How a table is read. `spool` says whether a stream goes to disk; None where memory decides."""

    id: str
    ignore_extra: bool
    spool: bool | None
    threads: int | None
    tmp_dir: Path | None
    memory: int | None = None
