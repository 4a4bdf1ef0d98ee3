"""What linear and logistic regressions on public datasets have in common, in scikit-learn's manner."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from potluck import _potluck
from potluck._arrow import Path
from potluck._errors import NotFittedError, UsageError
from potluck._potluck import Model, PublicDataset
from potluck._text import Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 78
"""Characters that a summary takes at least."""

_Self = TypeVar("_Self", bound="Regression")


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
        no interval shows it if that has to do with what they would be; ``"odds-unbounded"``, ``"level-rare"`` and
        ``"feature-shape"``: log odds are hard to tell from moments there, and their interval cannot be relied on.
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
        "odds-unbounded",
        "level-rare",
        "feature-shape",
    ]
    columns: tuple[str, ...]
    text: str


class Regression:
    """A regression of one column of a public dataset on others."""

    _kind: ClassVar[Literal["linear", "logistic"]]

    level: float

    def _settings(self) -> tuple[str, float]:
        """The learner and its ridge."""
        return "posterior", 1e-4

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as scikit-learn asks for them."""
        return {"level": self.level}

    def set_params(self: _Self, **params: Any) -> _Self:
        """Changes parameters by name; they count from the next fit on."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise UsageError(f"there is no parameter {name!r}; there are {', '.join(known)}")
            setattr(self, name, value)
        return self

    def fit(
        self: _Self, dataset: PublicDataset, label: str, features: Sequence[str] | None = None
    ) -> _Self:
        """Fits the label on the features, or on all other columns. Costs no privacy, however often it is done.

        A label is a numeric column, one with two levels, or ``column=level``; a logistic regression needs one with
        levels.

        What is fitted is a public dataset, whose rows stand for many people each. So cross-validation, train and test
        splits and pipelines that transform rows do not apply: leaving rows out leaves nobody out. Instead, intervals and
        R² of one fit already speak of new people; `score` compares with a table of people's own rows, where you have one;
        and `Study.simulate` tries a whole study again and again.
        """
        if not isinstance(dataset, PublicDataset):
            raise UsageError(_not_a_dataset(dataset))
        if isinstance(features, str):
            raise UsageError(f"features is a text; give a list of names, such as [{features!r}]")
        learner, ridge = self._settings()
        model = _potluck.fit(
            dataset,
            label,
            None if features is None else list(features),
            kind=self._kind,
            learner=learner,
            ridge=ridge,
            level=self.level,
        )
        return self._take(model, dataset)

    def _take(self: _Self, model: Model, dataset: PublicDataset | None) -> _Self:
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
    def _read(cls, path: Path) -> Model:
        model = Model.load(path)
        if model.kind != cls._kind:
            raise UsageError(
                f"the file holds a {model.kind} regression; load it with {model.kind.capitalize()}Regression"
            )
        return model

    def _fitted(self) -> Model:
        model: Model | None = getattr(self, "model_", None)
        if model is None:
            raise NotFittedError("this regression is not fitted yet; call fit(dataset, label) first")
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Writes the model file."""
        self._fitted().save(path, overwrite=overwrite)

    def to_json(self) -> str:
        """The text of the model file: what `potluck fit --json` prints."""
        return self._fitted().to_json()

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
        _, ridge = self._settings()
        again = _potluck.fit(
            self.dataset_,
            model.label,
            model.features,
            kind=self._kind,
            learner=model.learner,
            ridge=ridge,
            level=level,
        )
        return again.intervals()[1:]

    def summary(self) -> Text:
        """The regression as text, in the manner of statsmodels; what speaks against it comes first."""
        model = self._fitted()
        coefficients = _coefficients(model)
        width = max(_WIDTH, *map(len, coefficients))
        rule = "=" * width
        lines = [*_opening(model), f"{self._kind.capitalize()} regression on a public dataset".center(width).rstrip(), rule, *_facts(model, width), rule]
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
        of = "the log odds of " if self._kind == "logistic" else ""
        ax.set_xlabel(f"change of {of}{model.label}{unit}\nwhen a feature rises by the step at its name, or its level applies")
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
        return f"{type(self).__name__}({parameters})"

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
    found = model.classification
    if found is not None:
        low, high = found["area_interval"]
        left[2] = ("ROC AUC:", f"{found['area']:.3f} [{low:.3f}, {high:.3f}]")
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
