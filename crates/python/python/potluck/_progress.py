"""Progress of long calls: a callable, a bar, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Union

Report = Callable[[int, int, int], object]
"""Called with the number of the pass, the rows done in it, and the rows in all."""

Progress = Union[bool, Report, None]


def _notebook() -> bool:
    """Whether a person looks at this through a notebook."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _bar(rows: int, wanted: bool | None) -> Any:
    """A tqdm bar on stderr, if somebody is there to see it; None if not, or without tqdm."""
    if wanted is None and not (sys.stderr.isatty() or _notebook()):
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if wanted:
            raise
        return None
    return tqdm(total=rows, unit=" rows", unit_scale=True, leave=False, file=sys.stderr)


@contextmanager
def reporting(progress: Progress, rows: int) -> Iterator[Callable[[int, int], object] | None]:
    """What the native code shall call with pass and rows done, if anything."""
    if callable(progress):
        report = progress
        yield lambda at, done: report(at, done, rows)
        return
    bar = None if progress is False else _bar(rows, progress)
    if bar is None:
        yield None
        return

    def show(at: int, done: int) -> None:
        bar.set_description(f"pass {at}", refresh=False)
        bar.n = done
        bar.refresh()

    with bar:
        yield show
