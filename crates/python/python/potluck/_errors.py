"""Exceptions. They mirror the errors of the command, and carry the code that it would exit with."""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "BudgetError",
    "Error",
    "InputError",
    "IntegrityError",
    "NotFittedError",
    "RemoteError",
    "StaleDatasetWarning",
    "UsageError",
]


class Error(Exception):
    """Anything that potluck itself reports. No message holds a value of a table."""

    exit_code: ClassVar[int] = 1


class UsageError(Error, ValueError):
    """What was asked for cannot be done as it was asked."""

    exit_code = 2


class NotFittedError(UsageError, AttributeError):
    """The regression is not fitted yet. A ValueError and an AttributeError, like the one of scikit-learn."""


class InputError(Error, ValueError):
    """A study, a table or a file is not usable as it is."""

    exit_code = 3


class BudgetError(Error):
    """The ledger does not allow it; nothing was charged or published."""

    exit_code = 4


class IntegrityError(Error):
    """Something was changed, cut short or signed by somebody else."""

    exit_code = 5


class RemoteError(Error):
    """A hub or a database cannot be reached, refused, or broke off."""

    exit_code = 6
    #: What an engine raised, if it was one. Its words may quote a value of the table, so no message shows them.
    engine_error: Exception | None = None


class StaleDatasetWarning(UserWarning):
    """A hub sent a public dataset that verifies, but its event log speaks of a later one."""


_all: tuple[type[Exception], ...] = (
    Error,
    UsageError,
    NotFittedError,
    InputError,
    BudgetError,
    IntegrityError,
    RemoteError,
    StaleDatasetWarning,
)
for _one in _all:
    # Where people find them.
    _one.__module__ = "potluck"
