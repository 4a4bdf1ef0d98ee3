"""Differentially private data release for regression across organisations.

Organisations that hold different columns about the same people agree on a `Study`; each publishes its columns once, with
`release`; anyone lays them side by side with `join`, or takes them from a hub with `connect`, and fits a
`LinearRegression` of any column on any others, or a `LogisticRegression` of one with levels. Tables in databases and
clusters are released where they are, with `potluck.sql` and `potluck.spark`.
"""

from potluck import spark, sql
from potluck._audit import sums
from potluck._correlations import Correlations
from potluck._errors import (
    BudgetError,
    Error,
    InputError,
    IntegrityError,
    NotFittedError,
    RemoteError,
    StaleDatasetWarning,
    UsageError,
)
from potluck._hub import connect
from potluck._linear import LinearRegression
from potluck._logistic import LogisticRegression
from potluck._potluck import (
    Categorical,
    Hub,
    HubStudy,
    Ledger,
    Model,
    Numeric,
    Preview,
    PublicDataset,
    Published,
    Study,
    __version__,
    join,
    new_signing_key,
)
from potluck._regression import Finding
from potluck._release import release

__all__ = [
    "BudgetError",
    "Categorical",
    "Correlations",
    "Error",
    "Finding",
    "Hub",
    "HubStudy",
    "InputError",
    "IntegrityError",
    "Ledger",
    "LinearRegression",
    "LogisticRegression",
    "Model",
    "NotFittedError",
    "Numeric",
    "Preview",
    "PublicDataset",
    "Published",
    "RemoteError",
    "StaleDatasetWarning",
    "Study",
    "UsageError",
    "__version__",
    "connect",
    "join",
    "new_signing_key",
    "release",
    "spark",
    "sql",
    "sums",
]
