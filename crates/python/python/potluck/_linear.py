"""Linear regression on public datasets, in scikit-learn's manner."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, Literal, overload

import numpy as np
import numpy.typing as npt

from potluck._arrow import Data, Path
from potluck._errors import InputError
from potluck._progress import Progress
from potluck._regression import Regression

__all__ = ["LinearRegression"]


class LinearRegression(Regression):
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

    _kind: ClassVar[Literal["linear", "logistic"]] = "linear"

    def __init__(self, *, learner: str = "posterior", ridge: float = 1e-4, level: float = 0.95) -> None:
        self.learner = learner
        self.ridge = ridge
        self.level = level

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as scikit-learn asks for them."""
        return {"learner": self.learner, "ridge": self.ridge, "level": self.level}

    def _settings(self) -> tuple[str, float]:
        return self.learner, self.ridge

    @classmethod
    def load(cls, path: Path) -> LinearRegression:
        """Reads a model file, such as `save` and `potluck fit --out` write."""
        model = cls._read(path)
        parameters = model.to_dict()
        regression = cls(learner=model.learner, ridge=parameters["ridge"], level=model.level)
        return regression._take(model, None)

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn asks for them, and it has no types.
        sklearn: Any = import_module("sklearn.utils")
        return sklearn.Tags(
            estimator_type="regressor",
            target_tags=sklearn.TargetTags(required=False),
            regressor_tags=sklearn.RegressorTags(),
            input_tags=sklearn.InputTags(two_d_array=False, categorical=True, string=True, allow_nan=True),
        )

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
