"""What a path and a table may be."""

from __future__ import annotations

import os
from typing import Protocol, Union, runtime_checkable

__all__ = ["ArrowArray", "ArrowStream", "Data", "Path"]

Path = Union[str, "os.PathLike[str]"]


@runtime_checkable
class ArrowStream(Protocol):
    """Hands over a stream of Arrow batches: tables of pandas, polars, pyarrow and DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@runtime_checkable
class ArrowArray(Protocol):
    """Hands over one Arrow batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


Data = Union[Path, ArrowStream, ArrowArray]
"""The path of a file, or a table that speaks the Arrow PyCapsule interface."""
