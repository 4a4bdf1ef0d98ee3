"""Linear regression on public datasets, in scikit-learn's manner."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import numpy.typing as npt

from potluck import _potluck
from potluck._arrow import Data
from potluck._errors import UsageError
from potluck._potluck import Model, PublicDataset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LinearRegression"]

Path = Union[str, "os.PathLike[str]"]

_WIDTH = 78


class LinearRegression:
    """A regression of one column of a public dataset on others.

    Parameters
    ----------
    learner
        ``"posterior"`` (the default) estimates every covariance by what is most likely given what is known of noise,
        mixing and clipping; ``"debiased"`` takes the known variance of the noise out and is unstable where noise
        dominates; ``"ols"`` is least squares on the released rows, pulled towards zero by the noise.
    ridge
        λ added to the diagonal of the moment matrix, by ``"ols"`` and ``"debiased"``.
    level
        Level of the intervals.

    Attributes
    ----------
    coef_
        Estimates in original units, one a feature: to read effects from.
    intercept_
        The label's value where every feature is 0.
    prediction_coef_, prediction_intercept_
        What `predict` uses: shrunk where the data resolve little.
    feature_names_in_
        Names of the features; a level is ``column=level``.
    n_features_in_
        Their number.
    label_
        Name of the label.
    bse_
        Standard errors of `coef_`.
    r_squared_
        Share of the label's variance that the features explain, or None where it cannot be estimated.
    model_
        All of it, as it stands in a model file.
    """

    def __init__(self, *, learner: str = "posterior", ridge: float = 1e-4, level: float = 0.95) -> None:
        self.learner = learner
        self.ridge = ridge
        self.level = level

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as scikit-learn asks for them."""
        return {"learner": self.learner, "ridge": self.ridge, "level": self.level}

    def set_params(self, **params: Any) -> LinearRegression:
        """Changes parameters by name; they count from the next fit on."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise UsageError(f"there is no parameter {name!r}; there are {', '.join(known)}")
            setattr(self, name, value)
        return self

    def fit(
        self, dataset: PublicDataset, label: str, features: Sequence[str] | None = None
    ) -> LinearRegression:
        """Fits the label on the features, or on all other columns. Costs no privacy, however often it is done.

        A label is a numeric column, one with two levels, or ``column=level``.
        """
        if isinstance(features, str):
            raise UsageError(f"features is a text; give a list of names, such as [{features!r}]")
        model = _potluck.fit(
            dataset,
            label,
            None if features is None else list(features),
            learner=self.learner,
            ridge=self.ridge,
            level=self.level,
        )
        return self._take(model, dataset)

    def _take(self, model: Model, dataset: PublicDataset | None) -> LinearRegression:
        self.model_ = model
        self.dataset_ = dataset
        self.label_ = model.label
        self.coef_ = model.coefficients
        self.intercept_ = model.intercept
        self.prediction_coef_ = model.prediction_coefficients
        self.prediction_intercept_ = model.prediction_intercept
        self.feature_names_in_ = np.array(model.features, dtype=object)
        self.n_features_in_ = len(model.features)
        self.bse_ = model.standard_errors[1:]
        self.r_squared_ = model.r_squared
        return self

    @classmethod
    def load(cls, path: Path) -> LinearRegression:
        """Reads a model file, such as `save` and `potluck fit --out` write."""
        model = Model.load(path)
        parameters = model.to_dict()
        regression = cls(learner=model.learner, ridge=parameters["ridge"], level=model.level)
        return regression._take(model, None)

    def _fitted(self) -> Model:
        model: Model | None = getattr(self, "model_", None)
        if model is None:
            raise UsageError("this regression is not fitted yet; call fit(dataset, label) first")
        return model

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Writes the model file."""
        self._fitted().save(path, overwrite=overwrite)

    def to_json(self) -> str:
        """The text of the model file: what `potluck fit --json` prints."""
        return self._fitted().to_json()

    def predict(self, data: Data) -> npt.NDArray[np.float64]:
        """One prediction a row of a table with the columns of the features.

        Inputs are clamped to what the release kept of their columns, missing ones count as its centre, and the result is
        clamped to what it kept of the label: the model knows nothing outside.
        """
        return self._fitted().predict(data)

    def conf_int(self, level: float | None = None) -> npt.NDArray[np.float64]:
        """Lower and upper end of the interval of each of `coef_`; at the fitted level unless another is given."""
        return self._fitted().intervals(level)[1:]

    def summary(self) -> str:
        """The regression as text, in the manner of statsmodels."""
        model = self._fitted()
        lines = ["Linear regression on a public dataset".center(_WIDTH).rstrip(), "=" * _WIDTH]
        lines += _facts(model)
        lines.append("=" * _WIDTH)
        lines += _coefficients(model)
        lines.append("=" * _WIDTH)
        lines += _notes(model)
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the coefficients with their intervals, each for a rise by half of the feature's range that was kept.

        Needs matplotlib: ``pip install potluck[plot]``.
        """
        import matplotlib.pyplot as plt

        model = self._fitted()
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 1.2 + 0.4 * self.n_features_in_), layout="constrained")
        for row, one in enumerate(model.to_dict()["coefficients"]):
            low, high = one["range"]
            rise = 1.0 if "level" in one["term"] else (high - low) / 2
            value = one["value"]
            clear = value["low"] > 0 or value["high"] < 0
            colour = "#0b5a8a" if clear else "#8b95a1"
            ax.plot([value["low"] * rise, value["high"] * rise], [row, row], color=colour, linewidth=2)
            ax.plot(value["estimate"] * rise, row, "o", color=colour, fillstyle="full" if clear else "none")
        ax.axvline(0, color="#6f7a87", linewidth=1)
        ax.set_yticks(range(self.n_features_in_), list(self.feature_names_in_))
        ax.invert_yaxis()
        unit = f" ({model.label_unit})" if model.label_unit else ""
        ax.set_xlabel(f"change of {model.label}{unit} when a feature rises by half its range, or has the level")
        ax.set_title(f"{100 * model.level:g}% intervals")
        return ax

    def report_html(self, path: Path | None = None, *, overwrite: bool = False) -> str:
        """The report as one HTML page that needs nothing else; also written to `path`, if there is one."""
        model = self._fitted()
        if self.dataset_ is None:
            raise UsageError("a report needs the dataset; fit the regression instead of loading it")
        page = model.report_html(self.dataset_)
        if path is not None:
            with open(path, "w" if overwrite else "x", encoding="utf-8") as file:
                file.write(page)
        return page

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"LinearRegression({parameters})"

    def _repr_html_(self) -> str | None:
        model: Model | None = getattr(self, "model_", None)
        return None if model is None else model._repr_html_()


def _number(value: float) -> str:
    return f"{value:.4g}"


def _facts(model: Model) -> list[str]:
    r_squared = "not known" if model.r_squared is None else f"{model.r_squared:.3f}"
    if model.r_squared is not None and model.r_squared_interval is not None:
        # Noise may take it beyond what a share can be.
        low, high = (min(max(end, 0.0), 1.0) for end in model.r_squared_interval)
        r_squared = f"{min(max(model.r_squared, 0.0), 1.0):.3f} [{low:.3f}, {high:.3f}]"
    left = [("Dep. Variable:", model.label), ("Learner:", model.learner), ("R-squared:", r_squared)]
    right = [
        ("No. People:", str(model.rows)),
        ("Released rows:", str(model.released_rows)),
        ("Df:", str(model.degrees)),
    ]
    half = _WIDTH // 2
    return [
        f"{one:<16}{is_one:>{half - 18}}  {two:<16}{is_two:>{half - 16}}"
        for (one, is_one), (two, is_two) in zip(left, right, strict=True)
    ]


def _coefficients(model: Model) -> list[str]:
    tail = (1 - model.level) / 2
    names = ["const", *model.features]
    width = min(max(map(len, names)), _WIDTH - 54)
    header = ["coef", "std err", "t", "P>|t|", f"[{tail:.4g}", f"{1 - tail:.4g}]"]
    lines = [" " * width + "".join(f"{title:>9}" for title in header), "-" * _WIDTH]
    estimates = [model.intercept, *model.coefficients]
    rows = zip(names, estimates, model.standard_errors, model.p_values(), model.intervals(), strict=True)
    for name, estimate, error, p_value, (low, high) in rows:
        shown = name if len(name) <= width else name[: width - 1] + "…"
        if name == "const" and not model.free_intercept:
            lines.append(f"{shown:<{width}}{_number(estimate):>9}  follows from the public ranges")
            continue
        cells = [_number(estimate), _number(error), f"{estimate / error:.2f}", f"{p_value:.3f}"]
        cells += [_number(low), _number(high)]
        lines.append(f"{shown:<{width}}" + "".join(f"{cell:>9}" for cell in cells))
    return lines


def _notes(model: Model) -> list[str]:
    notes = [f"These are {model.estimand}."]
    if model.fault is not None:
        notes.insert(0, f"Careful: {model.fault}.")
    return ["Notes:", *(f"- {note}" for note in [*notes, *model.privacy])]
