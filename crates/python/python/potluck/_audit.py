"""Audits inside a party."""

from __future__ import annotations

import os

from potluck import _potluck
from potluck._arrow import Data, Path
from potluck._order import Access
from potluck._potluck import Study
from potluck._progress import Progress, reporting

__all__ = ["sums"]


def sums(
    study: Study,
    party: str,
    data: Data,
    *,
    state: Path,
    id: str = "id",
    release: Path | None = None,
    stage: int | None = None,
    ignore_extra: bool = False,
    overwrite: bool = False,
    spool: bool = False,
    threads: int | None = None,
    tmp_dir: Path | None = None,
    progress: Progress = None,
) -> str:
    """Computes the exact sums of one stage, for an audit inside the party, and returns the file that holds them.

    The file is as private as the table: never publish it. Nothing is charged. The first stage by default; for others,
    give the party's `release` and the number of the `stage`, from 1. All else is as in `potluck.release`.
    """
    os.makedirs(state, exist_ok=True)
    with reporting(progress, study.rows) as report:
        return _potluck.sums(
            study,
            party,
            data,
            Access(id, ignore_extra, spool, threads, tmp_dir),
            state=state,
            release=release,
            stage=stage,
            overwrite=overwrite,
            progress=report,
        )
