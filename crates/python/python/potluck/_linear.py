"""Linear regression on public datasets, in scikit-learn's manner."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np
import numpy.typing as npt

from potluck import _potluck
from potluck._arrow import Data, Path
from potluck._errors import InputError, NotFittedError, UsageError
from potluck._potluck import Model, PublicDataset
from potluck._progress import Progress
from potluck._text import Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Finding", "LinearRegression"]

_WIDTH = 78
"""Characters that a summary takes at least."""


@dataclass(frozen=True)
class Finding:
    """What published numbers say against a coefficient (docs/LEARNERS.md#findings).

    Attributes
    ----------
    kind
        ``"label-tails"`` and ``"feature-tails"``: values were cut, and the coefficient is about the cut ones;
        ``"label-unresolved"`` and ``"feature-unresolved"``: its interval cannot be relied on; ``"confounders"``: what
        looks like its effect may come from `columns`; ``"nobody-in-common"``, ``"overlap-undeclared"`` and
        ``"overlap-unseen"``: the parties of the label and of the feature do not seem to hold the same people, so neither
        its interval nor R² can be relied on; ``"label-missing"`` and ``"feature-missing"``: many values are missing, and
        no interval shows it if that has to do with what they would be.
    columns
        Columns of other parties, for ``"confounders"``.
    text
        The finding in a sentence.
    """

    kind: Literal[
        "nobody-in-common",
        "overlap-undeclared",
        "overlap-unseen",
        "label-tails",
        "feature-tails",
        "label-unresolved",
        "feature-unresolved",
        "confounders",
        "label-missing",
        "feature-missing",
    ]
    columns: tuple[str, ...]
    text: str


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
        Estimates in original units, one for each of `coef_names_`: to read effects from.
    coef_names_
        What the coefficients belong to: ``column``, or ``column=level`` for a level.
    intercept_
        The label's value where every feature is 0.
    prediction_coef_, prediction_intercept_
        What `predict` uses: shrunk where the data resolve little.
    feature_names_in_
        The columns that a table needs for `predict`: ``regression.predict(table[regression.feature_names_in_])``.
    n_features_in_
        Their number.
    label_
        Name of the label.
    bse_
        Standard errors of `coef_`.
    pvalues_
        Two-sided p-values of `coef_` being 0, in agreement with the intervals. They mean as much as the intervals do:
        look at `findings_` first.
    cov_
        Covariances of `coef_`, rows and columns in the order of `coef_names_`.
    findings_
        What published numbers say against each of `coef_`: a list of `Finding` for each of `coef_names_`. An interval of
        the learner ``"posterior"`` holds where it is empty.
    parts_
        What the variance of each of `coef_` is made of: shares by name (``"privacy"``, ``"mixing"``, ``"correlations"``,
        ``"sampling"``, ``"clipping"``, and ``"people"`` where parties hold different ones), or None where the learner does
        not know.
    r_squared_
        Share of the label's variance that the features explain, or None where it cannot be estimated.
    model_
        All of it, as it stands in a model file.
    dataset_
        The public dataset that it was fitted on, for `report_html`; None after `load`.
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

        What is fitted is a public dataset, whose rows stand for many people each. So cross-validation, train and test
        splits and pipelines that transform rows do not apply: leaving rows out leaves nobody out. Instead, intervals and
        R² of one fit already speak of new people; `score` compares with a table of people's own rows, where you have one;
        and `Study.simulate` tries a whole study again and again.
        """
        if not isinstance(dataset, PublicDataset):
            raise UsageError(_not_a_dataset(dataset))
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
        self.coef_names_ = np.array(model.features, dtype=object)
        self.feature_names_in_ = np.array(model.inputs, dtype=object)
        self.n_features_in_ = len(model.inputs)
        self.bse_ = model.standard_errors[1:]
        self.pvalues_ = model.p_values()[1:]
        self.cov_ = model.covariance[1:, 1:]
        self.findings_ = [
            [Finding(cast(Any, kind), tuple(columns), text) for kind, columns, text in of_one]
            for of_one in model.findings
        ]
        self.parts_ = model.parts
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
            raise NotFittedError("this regression is not fitted yet; call fit(dataset, label) first")
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn asks for them, and it has no types.
        sklearn: Any = import_module("sklearn.utils")
        return sklearn.Tags(
            estimator_type="regressor",
            target_tags=sklearn.TargetTags(required=False),
            regressor_tags=sklearn.RegressorTags(),
            input_tags=sklearn.InputTags(two_d_array=False, categorical=True, string=True, allow_nan=True),
        )

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Writes the model file."""
        self._fitted().save(path, overwrite=overwrite)

    def to_json(self) -> str:
        """The text of the model file: what `potluck fit --json` prints."""
        return self._fitted().to_json()

    @overload
    def predict(
        self, data: Data, *, interval: None = None, tmp_dir: Path | None = None, progress: Progress = None
    ) -> npt.NDArray[np.float64]: ...

    @overload
    def predict(
        self, data: Data, *, interval: float, tmp_dir: Path | None = None, progress: Progress = None
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...

    def predict(
        self, data: Data, *, interval: float | None = None, tmp_dir: Path | None = None, progress: Progress = None
    ) -> npt.NDArray[np.float64] | tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """One prediction a row of a table with the columns `feature_names_in_`; with a level such as ``interval=0.95``
        three arrays: predictions, and the lower and upper ends of intervals that hold the label of a new person with this
        probability, if what predictions miss is bell-shaped.

        Inputs are clamped to what the release kept of their columns, missing ones count as its centre, and the result is
        clamped to what it kept of the label: the model knows nothing outside. Predictions of a level are shares, and
        have no interval.
        """
        predicted = self._fitted().predict(data, tmp_dir=tmp_dir, progress=progress)
        if interval is None:
            return predicted
        low, high = self._fitted().prediction_intervals(predicted, interval)
        return predicted, low, high

    def score(self, data: Data, *, tmp_dir: Path | None = None, progress: Progress = None) -> float:
        """R² of the predictions for a table that has the label's column too: 1 at best, 0 for predicting the mean.

        A label that is a level, or has two, counts as 1 where a row has the level and 0 where it has another. Rows whose
        label is missing do not count.
        """
        predicted, labels = self._fitted().predictions_and_labels(data, tmp_dir=tmp_dir, progress=progress)
        known = np.isfinite(labels)
        if not known.any():
            raise InputError(f"no row of the table has a label {self.label_!r} to compare with")
        predicted, labels = predicted[known], labels[known]
        left = float(np.square(labels - predicted).sum())
        spread = float(np.square(labels - labels.mean()).sum())
        if spread == 0.0:
            # As scikit-learn does where all labels are the same.
            return 1.0 if left == 0.0 else 0.0
        return 1.0 - left / spread

    def conf_int(self, *, level: float | None = None) -> npt.NDArray[np.float64]:
        """Lower and upper end of the interval of each of `coef_`, such as ``level=0.95``; at the fitted level unless
        another is given.

        Intervals need not be symmetric about `coef_`. Those of the learner ``"posterior"`` at another level come from
        fitting again, on `dataset_`; after `load` there is none, and they are stretched, with a warning.
        """
        model = self._fitted()
        if level is None or level == model.level:
            return model.intervals()[1:]
        if model.learner != "posterior":
            return model.intervals(level)[1:]
        if self.dataset_ is None:
            warnings.warn(
                f"without its dataset, intervals at {level:g} are stretched from those at {model.level:g}, which is "
                f"about right; fit again with level={level:g} for exact ones",
                stacklevel=2,
            )
            return model.intervals(level)[1:]
        again = _potluck.fit(
            self.dataset_, model.label, model.features, learner=model.learner, ridge=self.ridge, level=level
        )
        return again.intervals()[1:]

    def summary(self) -> Text:
        """The regression as text, in the manner of statsmodels; what speaks against it comes first."""
        model = self._fitted()
        coefficients = _coefficients(model)
        width = max(_WIDTH, *map(len, coefficients))
        rule = "=" * width
        lines = [*_opening(model), "Linear regression on a public dataset".center(width).rstrip(), rule, *_facts(model, width), rule]
        lines += [coefficients[0], "-" * width, *coefficients[1:], rule, *_notes(model)]
        return Text("\n".join(lines))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the coefficients with their intervals, each for a rise by half of the feature's range that was kept.

        Needs matplotlib: ``pip install potluck[plot]``.
        """
        import matplotlib.pyplot as plt

        model = self._fitted()
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 1.4 + 0.45 * len(self.coef_names_)), layout="constrained")
        ticks = []
        for row, one in enumerate(model.to_dict()["coefficients"]):
            low, high = one["range"]
            is_level = "level" in one["term"]
            rise = 1.0 if is_level else (high - low) / 2
            step = f"\n+{rise:.3g} {one['unit'] or ''}".rstrip()
            ticks.append(self.coef_names_[row] if is_level else self.coef_names_[row] + step)
            value = one["value"]
            clear = value["low"] > 0 or value["high"] < 0
            style: dict[str, Any] = {"color": "#0b5a8a" if clear else "#8b95a1"}
            dash, dot = ("--", "D") if model.marks[row] else ("-", "o")
            ax.plot([value["low"] * rise, value["high"] * rise], [row, row], dash, linewidth=2, **style)
            ax.plot(value["estimate"] * rise, row, dot, fillstyle="full" if clear else "none", **style)
        ax.axvline(0, color="#6f7a87", linewidth=1)
        ax.set_yticks(range(len(ticks)), ticks)
        ax.set_ylim(len(ticks) - 0.5, -0.5)
        unit = f" ({model.label_unit})" if model.label_unit else ""
        ax.set_xlabel(f"change of {model.label}{unit}\nwhen a feature rises by the step at its name, or its level applies")
        marked = "\ndiamonds on dashed lines: something speaks against them, see findings_" if any(model.marks) else ""
        ax.set_title(f"{100 * model.level:g}% intervals{marked}", fontsize="medium" if marked else None)
        return ax

    @overload
    def report_html(self, path: None = None, *, overwrite: bool = False) -> str: ...

    @overload
    def report_html(self, path: Path, *, overwrite: bool = False) -> None: ...

    def report_html(self, path: Path | None = None, *, overwrite: bool = False) -> str | None:
        """The report as one HTML page that needs nothing else: its text, or a file at `path`."""
        model = self._fitted()
        if self.dataset_ is None:
            raise UsageError("a report needs the dataset; fit the regression instead of loading it")
        if path is None:
            return model.report_html(self.dataset_)
        model.save_report(self.dataset_, path, overwrite=overwrite)
        return None

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"LinearRegression({parameters})"

    def _repr_html_(self) -> str | None:
        model: Model | None = getattr(self, "model_", None)
        return None if model is None else model._repr_html_()


def _not_a_dataset(given: object) -> str:
    """What to pass instead of this."""
    kind = type(given).__name__
    pass_this = "fit(dataset, label): the dataset is a PublicDataset, from PublicDataset.load(path), potluck.join or a hub"
    if isinstance(given, (str, PathLike)):
        return f"the first argument is a path; {pass_this}"
    if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__array__") or hasattr(given, "columns"):
        return (
            f"the first argument is a {kind}; {pass_this}. Rows of a published file are not people, and a {kind} of them "
            "has lost what says how they were mixed and noised; so a fit on them would be wrong. Cross-validation and "
            "pipelines, which pass such tables, do not apply (see help(LinearRegression.fit))"
        )
    return f"the first argument is a {kind}; {pass_this}"


def _number(value: float) -> str:
    return f"{value:.4g}"


def _facts(model: Model, width: int) -> list[str]:
    r_squared = "not known" if model.r_squared is None else f"{model.r_squared:.3f}"
    if model.r_squared is not None and model.r_squared_interval is not None:
        # Noise may take it beyond what a share can be.
        low, high = (min(max(end, 0.0), 1.0) for end in model.r_squared_interval)
        r_squared = f"{min(max(model.r_squared, 0.0), 1.0):.3f} [{low:.3f}, {high:.3f}]"
    if model.r_squared_mark is not None:
        r_squared += " (!)"
    left = [("Dep. Variable:", model.label), ("Learner:", model.learner), ("R-squared:", r_squared)]
    right = [
        ("No. People:", str(model.rows)),
        ("Released rows:", str(model.released_rows)),
        ("Df:", str(model.degrees)),
    ]
    half = max(width // 2, 19 + max(len(is_one) for _, is_one in left))
    return [
        f"{one:<16} {is_one:>{half - 19}}  {two:<16}{is_two:>{width - half - 16}}"
        for (one, is_one), (two, is_two) in zip(left, right, strict=True)
    ]


def _coefficients(model: Model) -> list[str]:
    """A table as lines, the header first; columns are as wide as what is in them."""
    tail = (1 - model.level) / 2
    rows = [["", "coef", "std err", "p-value", f"[{tail:.4g}", f"{1 - tail:.4g}]"]]
    compared = ["" if one is None else f" ({one})" for one in model.references]
    names = ["const", *(name + one for name, one in zip(model.features, compared, strict=True))]
    estimates = [model.intercept, *model.coefficients]
    known = zip(names, estimates, model.standard_errors, model.p_values(), model.intervals(), strict=True)
    for name, estimate, error, p_value, (low, high) in known:
        if name == "const" and not model.free_intercept:
            rows.append([name, _number(estimate)])
            continue
        cells = [_number(estimate), _number(error), f"{p_value:.3f}"]
        rows.append([name, *cells, _number(low), _number(high)])
    wide = [[len(row[at]) for row in rows if at < len(row)] for at in range(len(rows[0]))]
    widths = [max(wide[0]), *(max(9, 2 + max(column)) for column in wide[1:])]
    marks = ["findings" if any(model.marks) else None, None, *model.marks]
    lines = []
    for row, mark in zip(rows, marks, strict=True):
        cells = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=False)]
        line = f"{row[0]:<{widths[0]}}" + "".join(cells)
        line = line if len(row) > 2 else f"{line}  follows from the public ranges"
        lines.append(line if mark is None else f"{line}  {mark}")
    return lines


def _opening(model: Model) -> list[str]:
    """The sentence to take home, and what to read before the first number."""
    lines = []
    for alarm in model.alarms:
        lines += [*textwrap.wrap(f"Careful: {alarm}", _WIDTH), ""]
    lines += [*textwrap.wrap(model.headline, _WIDTH, break_on_hyphens=False), ""]
    if model.opening:
        lines += [f"{model.findings_heading}:", *_listed(model.opening), ""]
    return lines


def _notes(model: Model) -> list[str]:
    notes = [f"These are {model.estimand}.", *model.collinear]
    if model.cut_to:
        notes.append(f"Cut at least to: {', '.join(model.cut_to)}.")
    if model.r_squared_mark is not None:
        notes.append(f"R-squared (!): {model.r_squared_mark}.")
    if model.free_intercept and any(model.marks):
        notes.append("const follows from the coefficients: what speaks against one of them speaks against it.")
    return ["Notes:", *_listed([*notes, *model.privacy])]


def _listed(sentences: Sequence[str]) -> list[str]:
    lines = []
    for sentence in sentences:
        lines += textwrap.wrap(sentence, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
    return lines
