"""Logistic regression on public datasets, in scikit-learn's manner."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from potluck._arrow import Data, Path
from potluck._errors import InputError
from potluck._potluck import Model, PublicDataset
from potluck._progress import Progress
from potluck._regression import Regression

__all__ = ["LogisticRegression"]


class LogisticRegression(Regression):
    """A logistic regression of a column of a public dataset that has two levels, or of one level, on others.

    It comes from the same moments as a linear one and costs no more privacy; what moments do not say of log odds has an
    allowance in the intervals, and a finding where it is not enough.

    Parameters
    ----------
    level
        Level of the intervals.

    Attributes
    ----------
    classes_
        What `predict` answers with: the two levels of the label's column, or False and True for one level of several. The
        second is the one that probabilities and coefficients are about.
    coef_
        Estimates of the log odds per unit of each feature, one for each of `coef_names_`: to read effects from.
    odds_ratios_
        By what the odds are multiplied per unit of each feature: the exponentials of `coef_`.
    coef_names_
        What the coefficients belong to: ``column``, or ``column=level`` for a level.
    intercept_
        The log odds where every feature is 0.
    prediction_coef_, prediction_intercept_
        What predictions use: shrunk where the data resolve little.
    feature_names_in_
        The columns that a table needs: ``regression.predict_proba(table[regression.feature_names_in_])``.
    n_features_in_
        Their number.
    label_
        Name of the label.
    share_
        The share of people that the label applies to.
    roc_auc_
        Area under the curve of true against false positives on new people.
    roc_auc_interval_
        Lower and upper end of its interval.
    bse_, pvalues_, cov_, findings_, parts_, r_squared_, model_, dataset_
        As `LinearRegression` has them, of the log odds; R² is that of the linear regression, and `parts_` has
        ``"approximation"`` too, the allowance for what moments do not say of log odds.
    """

    _kind: ClassVar[Literal["linear", "logistic"]] = "logistic"

    def __init__(self, *, level: float = 0.95) -> None:
        self.level = level

    def _take(self, model: Model, dataset: PublicDataset | None) -> LogisticRegression:
        super()._take(model, dataset)
        found = model.classification
        assert found is not None and model.label_levels is not None  # as every logistic regression has
        level, levels = model.label_levels
        others = [one for one in levels if one != level]
        classes = [others[0], level] if len(others) == 1 else [False, True]
        self.classes_ = np.array(classes)
        self.odds_ratios_ = np.exp(self.coef_)
        self.share_: float = found["share"]
        self.roc_auc_: float = found["area"]
        self.roc_auc_interval_: tuple[float, float] = tuple(found["area_interval"])
        return self

    @classmethod
    def load(cls, path: Path) -> LogisticRegression:
        """Reads a model file, such as `save` and `potluck fit --model logistic --out` write."""
        model = cls._read(path)
        return cls(level=model.level)._take(model, None)

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn asks for them, and it has no types.
        sklearn: Any = import_module("sklearn.utils")
        return sklearn.Tags(
            estimator_type="classifier",
            target_tags=sklearn.TargetTags(required=False),
            classifier_tags=sklearn.ClassifierTags(multi_class=False),
            input_tags=sklearn.InputTags(two_d_array=False, categorical=True, string=True, allow_nan=True),
        )

    def predict_proba(
        self, data: Data, *, tmp_dir: Path | None = None, progress: Progress = None
    ) -> npt.NDArray[np.float64]:
        """The probability of each of `classes_`, a row for each row of a table with the columns `feature_names_in_`.

        Inputs are clamped to what the release kept of their columns, and missing ones count as its centre.
        """
        applies = self._fitted().predict(data, tmp_dir=tmp_dir, progress=progress)
        return np.column_stack([1.0 - applies, applies])

    def predict_log_proba(
        self, data: Data, *, tmp_dir: Path | None = None, progress: Progress = None
    ) -> npt.NDArray[np.float64]:
        """The logarithms of `predict_proba`."""
        return np.log(self.predict_proba(data, tmp_dir=tmp_dir, progress=progress))

    def proba_interval(
        self, data: Data, *, tmp_dir: Path | None = None, progress: Progress = None
    ) -> npt.NDArray[np.float64]:
        """Lower and upper end of the interval of the second probability of `predict_proba`, a row for each row.

        It is about the share of people like this one, at the fitted level, and holds the prediction.
        """
        return self._fitted().probabilities(data, tmp_dir=tmp_dir, progress=progress)[:, 1:]

    def decision_function(
        self, data: Data, *, tmp_dir: Path | None = None, progress: Progress = None
    ) -> npt.NDArray[np.float64]:
        """The predicted log odds of the second of `classes_`, one for each row."""
        return self._fitted().log_odds(data, tmp_dir=tmp_dir, progress=progress)

    def predict(self, data: Data, *, tmp_dir: Path | None = None, progress: Progress = None) -> npt.NDArray[Any]:
        """The likelier one of `classes_`, one for each row."""
        applies = self.decision_function(data, tmp_dir=tmp_dir, progress=progress) > 0
        return cast(npt.NDArray[Any], self.classes_[applies.astype(int)])

    def score(self, data: Data, *, tmp_dir: Path | None = None, progress: Progress = None) -> float:
        """The share of rows whose class is predicted rightly, of a table that has the label's column too.

        Rows whose label is missing do not count.
        """
        predicted, labels = self._fitted().predictions_and_labels(data, tmp_dir=tmp_dir, progress=progress)
        known = np.isfinite(labels)
        if not known.any():
            raise InputError(f"no row of the table has a label {self.label_!r} to compare with")
        return float(((predicted[known] > 0.5) == (labels[known] > 0.5)).mean())

    def odds_ratio_int(self, *, level: float | None = None) -> npt.NDArray[np.float64]:
        """Lower and upper end of the interval of each of `odds_ratios_`: the exponentials of `conf_int`."""
        return np.exp(self.conf_int(level=level))
