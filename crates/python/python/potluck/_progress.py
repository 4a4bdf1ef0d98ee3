"""Progress of long calls: a callable, a bar, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Union

Report = Callable[[int, int, int], object]
"""Called with the number of the pass, the rows done in it, and the rows in all; 0 where that is not known."""

Progress = Union[bool, Report, None]

_PATIENCE = 0.5
"""Seconds before a bar is shown that nobody asked for."""


class Tell(Protocol):
    """What the native code calls, with a total where it knows better."""

    def __call__(self, at: int, done: int, total: int = ..., /) -> object: ...


def _notebook() -> bool:
    """Whether a person looks at this through a notebook."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _bar(wanted: bool | None) -> Any:
    """tqdm, if somebody is there to see its bar; None if not, or without tqdm."""
    if wanted is None and not (sys.stderr.isatty() or _notebook()):
        return None
    try:
        # The plain one in notebooks too: tqdm's own for them needs ipywidgets, and warns without.
        from tqdm import tqdm
    except ImportError:
        if wanted:
            raise
        return None
    return tqdm


@contextmanager
def reporting(
    progress: Progress, total: int, passes: int | None = None, unit: str = " rows"
) -> Iterator[Tell | None]:
    """What the native code shall call with pass and rows done, if anything. `total` is 0 where it is not known."""
    if callable(progress):
        report = progress
        yield lambda at, done, total=total: report(at, done, total)
        return
    tqdm = None if progress is False else _bar(progress)
    if tqdm is None:
        yield None
        return
    # Nobody needs a bar for what is over at once.
    begin = time.monotonic() + (0.0 if progress else _PATIENCE)
    bar: Any = None

    def show(at: int, done: int, total: int = total, /) -> None:
        nonlocal bar
        if bar is None:
            if time.monotonic() < begin:
                return
            bar = tqdm(total=total or None, unit=unit, unit_scale=True, leave=False, file=sys.stderr)
        if passes != 1:
            bar.set_description(f"pass {at}" if passes is None else f"pass {at} of {passes}", refresh=False)
        bar.total = total or None
        bar.n = done
        bar.refresh()

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()
