"""Differentially private data release for linear regression across organisations.

Organisations that hold different columns about the same people agree on a `Study`; each publishes its columns once, with
`release`; anyone lays them side by side with `join` and fits a `LinearRegression` of any column on any others.
"""

from potluck._errors import BudgetError, Error, InputError, IntegrityError, UsageError
from potluck._linear import LinearRegression
from potluck._potluck import (
    Categorical,
    Ledger,
    Model,
    Numeric,
    PublicDataset,
    Published,
    Study,
    __version__,
    join,
    new_signing_key,
)
from potluck._release import release, sums

__all__ = [
    "BudgetError",
    "Categorical",
    "Error",
    "InputError",
    "IntegrityError",
    "Ledger",
    "LinearRegression",
    "Model",
    "Numeric",
    "PublicDataset",
    "Published",
    "Study",
    "UsageError",
    "__version__",
    "join",
    "new_signing_key",
    "release",
    "sums",
]
