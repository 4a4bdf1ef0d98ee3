"""Logistic regression and correlations, in scikit-learn's manner."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from potluck import InputError, LinearRegression, LogisticRegression, NotFittedError, UsageError

TABLE = {"age": [30.0, 80.0, None], "pressure": [110.0, 150.0, 130.0]}


@pytest.fixture
def odds(dataset):
    return LogisticRegression().fit(dataset, "smoker", ["age", "pressure"])


def test_a_classifier_in_the_manner_of_scikit_learn(odds):
    table = pd.DataFrame(TABLE)
    assert list(odds.classes_) == ["no", "yes"]
    assert list(odds.feature_names_in_) == ["age", "pressure"]
    proba = odds.predict_proba(table)
    assert proba.shape == (3, 2)
    assert np.allclose(proba.sum(axis=1), 1.0)
    assert np.allclose(np.log(proba), odds.predict_log_proba(table))
    decision = odds.decision_function(table)
    assert np.allclose(proba[:, 1], 1 / (1 + np.exp(-decision)))
    assert list(odds.predict(table)) == [odds.classes_[int(one > 0)] for one in decision]
    kept = np.array([one["range"] for one in odds.model_.to_dict()["coefficients"]])
    inputs = table[["age", "pressure"]].iloc[:2].clip(kept[:, 0], kept[:, 1], axis=1).to_numpy()
    by_hand = odds.prediction_intercept_ + inputs @ odds.prediction_coef_
    assert np.allclose(decision[:2], by_hand)
    low, high = odds.proba_interval(table).T
    assert (low <= proba[:, 1]).all() and (proba[:, 1] <= high).all()


def test_what_it_found(odds):
    assert np.allclose(odds.odds_ratios_, np.exp(odds.coef_))
    assert np.allclose(odds.odds_ratio_int(), np.exp(odds.conf_int()))
    assert (odds.conf_int(level=0.5)[:, 0] >= odds.conf_int()[:, 0]).all()
    assert 0 < odds.share_ < 1
    low, high = odds.roc_auc_interval_
    assert 0 <= low <= odds.roc_auc_ <= high <= 1
    assert "ROC AUC" in odds.summary() and "Logistic regression" in odds.summary()
    assert "Odds ratio" in odds.report_html()


def test_score_is_the_share_of_rows_that_are_right(odds):
    table = pd.DataFrame({**TABLE, "smoker": ["no", "yes", None]})
    right = np.mean(odds.predict(table)[:2] == np.array(["no", "yes"]))
    assert odds.score(table) == right
    with pytest.raises(InputError, match="no row of the table has a label"):
        odds.score(table.assign(smoker=[None, None, None]))


def test_it_is_kept_and_copied(odds, folder):
    odds.save("model.json")
    again = LogisticRegression.load("model.json")
    assert np.array_equal(again.coef_, odds.coef_) and list(again.classes_) == ["no", "yes"]
    assert np.array_equal(pickle.loads(pickle.dumps(odds)).coef_, odds.coef_)
    assert np.array_equal(copy.deepcopy(odds).coef_, odds.coef_)
    with pytest.raises(UsageError, match="load it with LogisticRegression"):
        LinearRegression.load("model.json")
    assert repr(odds) == "LogisticRegression(level=0.95)"
    assert odds.get_params() == {"level": 0.95}


def test_numbers_have_no_odds(dataset):
    with pytest.raises(InputError, match="is a number, and only a label with levels has odds"):
        LogisticRegression().fit(dataset, "pressure")
    with pytest.raises(NotFittedError):
        LogisticRegression().predict_proba(pd.DataFrame(TABLE))


def test_correlations_are_a_square_with_intervals(dataset):
    found = dataset.correlations()
    size = len(found.columns)
    assert found.matrix.shape == (size, size)
    assert np.array_equal(found.matrix, found.matrix.T) and (np.diag(found.matrix) == 1).all()
    assert (found.low <= found.matrix).all() and (found.matrix <= found.high).all()
    first = found.pairs[0]
    frame = found.to_pandas()
    assert frame.loc[first["one"], first["other"]] == first["estimate"]
    wider = dataset.correlations(together=True)
    assert wider.level > found.level
    given = dataset.correlations(["age", "pressure"], given=["smoker"])
    assert given.given == ["smoker=yes"] and len(given.pairs) == 1
    assert "holding fixed smoker=yes" in repr(given)
    with pytest.raises(InputError, match="at least two"):
        dataset.correlations(["age"])
