"""Known answers for the learners. Needs Python 3.11, numpy 2 and scipy 1.17; run it in this directory:

    python make.py

It writes least-squares.json and student.json beside itself. The code is written from the formulas alone and
shares nothing with the Rust: plain least squares by SVD of the augmented rows, the noise-corrected system by
LU, scores row by row, the map to original units as one matrix; t quantiles are scipy's.
"""

import json
import pathlib

import numpy as np
from scipy import stats

HERE = pathlib.Path(__file__).parent


def draw(rng, k, n, noise, mix):
    """k released rows, rounded to 4 decimals so that the file stays readable."""
    p = len(noise)
    table = rng.uniform(-1, 1, (n, p))
    table[:, -1] = 0.3 * table[:, -1] + table[:, :-1] @ rng.uniform(-0.5, 0.5, p - 1)
    if mix == "identity":
        mixed = table
    elif mix == "bernoulli":
        mixed = rng.choice([-1.0, 1.0], (k, n)) @ table / np.sqrt(k)
    else:
        mixed = np.zeros((k, p))
        for row in table:
            mixed[rng.integers(k)] += rng.choice([-1.0, 1.0]) * row
    return np.round(mixed + rng.normal(size=(k, p)) * noise, 4)


def least_squares(learner, columns, noise, n, label, features, ridge, level, scaling):
    columns, noise = np.array(columns), np.array(noise)
    x, y = columns[features].T, columns[label]
    (k, d), s2, s2y = x.shape, noise[features] ** 2, noise[label] ** 2
    gram, cross = x.T @ x / n, x.T @ y / n
    if learner == "ols":
        hessian = gram + ridge * np.eye(d)
        stacked = np.vstack([x, np.sqrt(n * ridge) * np.eye(d)])
        weights = np.linalg.lstsq(stacked, np.append(y, np.zeros(d)), rcond=None)[0]
        constant = np.zeros(d)
    else:
        hessian = gram - k / n * np.diag(s2) + ridge * np.eye(d)
        weights = np.linalg.solve(hessian, cross)
        constant = s2 * weights

    scores = [x[i] * (y[i] - x[i] @ weights) + constant for i in range(k)]
    centre = sum(scores) / k
    middle = sum(np.outer(s - centre, s - centre) for s in scores) / (k - d)
    covariance = k / n**2 * np.linalg.solve(hessian, np.linalg.solve(hessian, middle).T)
    errors = np.sqrt(np.diag(covariance))
    quantile = stats.t.ppf(0.5 + level / 2, k - d)

    values, vectors = np.linalg.eigh(hessian)
    along = (x @ vectors[:, 0]) ** 2
    residual = np.sum((y - x @ weights) ** 2)
    if learner == "ols":
        r_squared = 1 - residual / np.sum(y**2)
        variance = residual / n * k / (k - d)
    else:
        moment = np.sum(y**2) / n - k / n * s2y
        defined = moment > 0 and values[0] > 0
        explained = float(cross @ weights / moment) if defined else 2.0
        r_squared = max(explained, 0.0) if explained <= 1 else None
        variance = residual / n * k / (k - d) - k / n * (s2y + weights**2 @ s2)

    mids, halves = np.array(scaling["mid"])[features], np.array(scaling["half"])[features]
    slope = scaling["half"][label] / halves
    jacobian = np.vstack([-slope * mids, np.diag(slope)])
    original = jacobian @ weights
    original[0] += scaling["mid"][label]
    return {
        "weights": weights.tolist(),
        "eigenvalues": values.tolist(),
        "smallest_error": float(np.sqrt(k) / n * along.std(ddof=1)),
        "covariance": covariance.tolist(),
        "standard_errors": errors.tolist(),
        "intervals": [[w - quantile * e, w + quantile * e] for w, e in zip(weights, errors)],
        "noise_share": (k / n * s2 / np.diag(gram)).tolist(),
        "residual_variance": float(variance),
        "r_squared": r_squared,
        "original": original.tolist(),
        "original_covariance": (jacobian @ covariance @ jacobian.T).tolist(),
    }


def cases():
    shapes = [
        # name, mixing, k, n, noise, label, features, ridge, level
        ("one feature, no noise", "sparse", 6, 50, [0.0, 0.0], 1, [0], 0.0, 0.95),
        ("bernoulli, unequal noise", "bernoulli", 24, 300, [0.5, 1.0, 0.8, 0.6], 3, [0, 1, 2], 0.0, 0.95),
        ("sparse, other label, other order", "sparse", 30, 400, [0.5, 1.0, 0.8, 0.6], 1, [3, 0, 2], 0.0, 0.8),
        ("sparse, ridge", "sparse", 20, 200, [1.0, 2.0, 1.5], 2, [1, 0], 0.05, 0.99),
        ("identity, moderate noise", "identity", 40, 40, [0.3, 0.2, 0.4], 2, [0, 1], 0.0, 0.95),
        ("identity, noise outweighs data", "identity", 30, 30, [2.0, 2.5, 3.0, 2.0], 3, [0, 1, 2], 0.0, 0.95),
        ("identity, noise outweighs data, ridge", "identity", 30, 30, [2.0, 2.5, 3.0, 2.0], 3, [0, 1, 2], 9.0, 0.95),
        ("one degree of freedom", "sparse", 4, 100, [0.5, 0.5, 0.5, 0.5], 0, [3, 2, 1], 0.0, 0.5),
        ("eight features", "bernoulli", 60, 900, [0.7] * 9, 8, list(range(8)), 1e-4, 0.95),
    ]
    for seed, (name, mix, k, n, noise, label, features, ridge, level) in enumerate(shapes):
        rng = np.random.default_rng(seed)
        columns = draw(rng, k, n, np.array(noise), mix).T.tolist()
        scaling = {
            "mid": np.round(rng.uniform(-50, 50, len(noise)), 2).tolist(),
            "half": np.round(rng.uniform(0.5, 40, len(noise)), 2).tolist(),
        }
        task = dict(columns=columns, noise=noise, n=n, label=label, features=features, ridge=ridge, level=level)
        task["scaling"] = scaling
        answers = {learner: least_squares(learner, **task) for learner in ("ols", "debiased")}
        yield {"name": name, **task, **answers}


def refused():
    """Inputs that have no answer, with the name of the error and the learners that must give it."""
    a, b, y = [1.0, -1.0, 2.0, 0.5, 0.25], [0.5, 0.25, -1.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0]
    both, debiased = ["ols", "debiased"], ["debiased"]
    free = [0.0, 0.0, 0.0]
    # Second moments 1 and noise variance 1 with k = n: H is exactly 0.
    signs = [[1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, -1.0]]
    return [
        dict(error="Singular", learners=both, columns=[a, a, y], noise=free, n=5, label=2, features=[0, 1]),
        dict(error="Singular", learners=both, columns=[a, [3 * v for v in a], y], noise=free, n=50, label=2, features=[0, 1]),
        dict(error="Singular", learners=debiased, columns=signs, noise=[1.0, 0.0], n=4, label=1, features=[0]),
        dict(error="ZeroColumn", learners=both, columns=[a, [0.0] * 5, y], noise=free, n=5, label=2, features=[0, 1]),
        dict(error="TooFewRows", learners=both, columns=[a[:2], b[:2], y[:2]], noise=free, n=5, label=2, features=[0, 1]),
        dict(error="LabelAmongFeatures", learners=both, columns=[a, b, y], noise=free, n=5, label=1, features=[0, 1]),
        dict(error="RepeatedFeature", learners=both, columns=[a, b, y], noise=free, n=5, label=2, features=[0, 0]),
        dict(error="UnknownColumn", learners=both, columns=[a, b, y], noise=free, n=5, label=2, features=[0, 3]),
        dict(error="UnknownColumn", learners=both, columns=[a, b, y], noise=free, n=5, label=3, features=[0]),
        dict(error="NoFeatures", learners=both, columns=[a, b, y], noise=free, n=5, label=2, features=[]),
        dict(error="Overflow", learners=both, columns=[[1e200] * 5, b, y], noise=free, n=5, label=2, features=[0]),
        dict(error="Overflow", learners=both, columns=[a, b, y], noise=[1e200, 0.0, 0.0], n=5, label=2, features=[0]),
    ]


def student():
    for degrees in (1, 2, 3, 4, 5, 8, 10, 17, 30, 100, 199, 200, 201, 1000, 12345, 1000000, 100000000):
        for level in (0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.999999):
            # By the upper tail, as the exact level 0.5 + level/2 would lose digits near 1.
            yield {"degrees": degrees, "level": level, "quantile": float(stats.t.isf((1 - level) / 2, degrees))}


def write(name, key, items, **more):
    lines = ",\n".join("  " + json.dumps(item) for item in items)
    text = f'{{"{key}": [\n{lines}\n]'
    for other, values in more.items():
        lines = ",\n".join("  " + json.dumps(item) for item in values)
        text += f', "{other}": [\n{lines}\n]'
    (HERE / name).write_text(text + "}\n")


write("least-squares.json", "cases", cases(), refused=refused())
write("student.json", "quantiles", student())
