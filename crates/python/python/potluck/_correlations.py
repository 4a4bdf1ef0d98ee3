"""Correlations of the columns of a public dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Correlations"]


class Correlations:
    """How columns go together, with intervals; from `PublicDataset.correlations`.

    Attributes
    ----------
    columns
        Names of the encoded columns, those that go together next to each other.
    given
        What is held fixed: correlations are partial ones then.
    level
        Level of each interval.
    pairs
        One dictionary a pair of columns, the strongest first: `one`, `other`, `estimate`, `low`, `high`, `resolved`, and
        `findings` where published numbers speak against it. Levels of one column exclude each other and have none.
    matrix, low, high
        Estimates and the ends of their intervals as square arrays in the order of `columns`: 1 on the diagonal, NaN
        between levels of one column.
    resolved
        Whether each interval excludes 0, as a square array.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found
        self.columns: list[str] = found["columns"]
        self.given: list[str] = found["given"]
        self.level: float = found["level"]
        self.pairs: list[dict[str, Any]] = found["pairs"]
        self.matrix = self._square("estimate")
        self.low = self._square("low")
        self.high = self._square("high")
        self.resolved: npt.NDArray[np.bool_] = (self.low > 0) | (self.high < 0)

    def _square(self, what: str) -> npt.NDArray[np.float64]:
        place = {name: at for at, name in enumerate(self.columns)}
        square = np.full((len(place), len(place)), np.nan)
        np.fill_diagonal(square, 1.0)
        for pair in self.pairs:
            one, other = place[pair["one"]], place[pair["other"]]
            square[one, other] = square[other, one] = pair[what]
        return square

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data: what `potluck correlate --json` prints."""
        return self._found

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of `matrix`."""
        # Only those who call this need pandas.
        import pandas as pd

        return pd.DataFrame(self.matrix, index=self.columns, columns=self.columns)

    def __repr__(self) -> str:
        resolved = sum(pair["resolved"] for pair in self.pairs)
        lines = [f"Correlations: {resolved} of {len(self.pairs)} resolved at the {self.level:g} level"]
        if self.given:
            lines[0] += f", holding fixed {', '.join(self.given)}"
        for pair in self.pairs:
            open_ = "" if pair["resolved"] else "  not resolved"
            ends = f"[{pair['low']:.3f}, {pair['high']:.3f}]"
            lines.append(f"{pair['one']}, {pair['other']}: {pair['estimate']:.3f} {ends}{open_}")
        return "\n".join(lines)
