"""Releases."""

from __future__ import annotations

from collections.abc import Callable

from potluck import _potluck
from potluck._arrow import Data, Path
from potluck._order import Access, Order
from potluck._potluck import Published, Study
from potluck._progress import Progress, reporting

__all__ = ["release"]


def release(
    study: Study,
    party: str,
    data: Data,
    *,
    id: str = "id",
    ledger: Path | None = None,
    budget: str | None = None,
    out: Path | None = None,
    signing_key: Path | None = None,
    accept_low_accuracy: bool = False,
    accept_lost_values: bool = False,
    ignore_extra: bool = False,
    overwrite: bool = False,
    spool: bool = False,
    threads: int | None = None,
    tmp_dir: Path | None = None,
    memory: int | None = None,
    confirm: bool | Callable[[str], bool] = False,
    progress: Progress = None,
) -> Published:
    """Publishes a party's columns, once, and charges the ledger.

    If it is interrupted, make the same call again: it goes on where it stopped, with the same noise and one charge.

    Parameters
    ----------
    study
        The sealed study.
    party
        Which of its parties you are.
    data
        The path of a CSV (also gzipped), Parquet or Arrow file; or a table that speaks the Arrow PyCapsule interface,
        such as one of pandas, polars, pyarrow or DuckDB. A table is taken over as it is, mostly without a copy, and
        held in memory while the release reads it up to five times: do not change it meanwhile. A stream is read once, and
        not before everything else has been checked and agreed; not at all where the release was published before.
    id
        The column that holds the ids.
    ledger
        The ledger, or its path; the user's own by default (see `Ledger`).
    budget
        The budget of the ledger that is charged; by default the only one.
    out
        Where the release goes; by default ``<party>.release.parquet`` in the working folder.
    signing_key
        The private key to sign with, from `new_signing_key`.
    accept_low_accuracy
        Publish even if the plan says that predicting the mean would do as well as a regression.
    accept_lost_values
        Publish even if most values of a column are missing or outside of its bounds; otherwise a new release is refused
        before its charge.
    ignore_extra
        Leave columns alone that the study does not name; otherwise they are refused.
    overwrite
        Replace the file if it exists.
    spool
        Keep the rows of a stream in an unnamed private file instead of memory: for streams that are larger.
    threads
        Number of threads; all cores by default.
    tmp_dir
        Folder for temporary files, which hold private data while they last.
    memory
        How many bytes of memory may hold decoded columns between the passes, in place of reading the table again; 0 for
        none. A quarter of what is available by default.
    confirm
        True asks at the keyboard before anything is charged; a callable is given the question and returns whether to go
        on. Not asked where the release was charged before.
    progress
        A callable that is given the pass, the rows done and the rows in all, the last time with all rows done; True for a
        bar by tqdm; False for none. By default a bar if tqdm is installed and somebody is there to see it: a terminal or a
        notebook.
    """
    with reporting(progress, study.rows, study._passes) as report:
        return _potluck.release(
            study,
            party,
            data,
            Order(ledger, budget, out, signing_key, accept_low_accuracy, accept_lost_values, overwrite, confirm),
            Access(id, ignore_extra, spool, threads, tmp_dir, memory),
            report,
        )
