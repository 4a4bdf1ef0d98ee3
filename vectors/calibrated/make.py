"""Makes fits.json and frames.json: what reference.py beside this file gives on releases that it made itself.

Needs from PyPI: numpy, scipy. Run: python make.py
"""

import json
import math
from pathlib import Path

import numpy as np
import reference

HERE = Path(__file__).parent
Q = 1 << 14


def numbers(values):
    return np.asarray(values, float).tolist()


def table(rng, n, parties, skewed=None, alike=()):
    """Correlated numeric and categorical columns in [-1, 1] or 0/1; numeric ones of `alike` are nearly one."""
    width = sum(len(columns) for party in parties for columns, _ in party)
    common = rng.normal(size=n)
    values = np.empty((n, width))
    for party in parties:
        for columns, kind in party:
            latent = 0.6 * common[:, None] + rng.normal(size=(n, len(columns)))
            if kind == "num":
                nearly = common[:, None] + 0.05 * latent
                values[:, columns] = np.clip((nearly if columns[0] in alike else latent) / 4, -1, 1)
            elif len(columns) == 1:
                values[:, columns] = latent > 1.2
            else:
                values[:, columns] = np.eye(len(columns))[latent.argmax(1)]
    if skewed is not None:
        values[:, skewed] = np.clip(np.exp(3 * values[:, skewed]) / 5 - 1, -1, 1)
    return values


def case(name, seed, n, parties, epsilon, label, features, rows_only=False, skewed=None, alike=()):
    rng = np.random.default_rng(seed)
    release = reference.release(table(rng, n, parties, skewed, alike), parties, reference.mu_of(epsilon), rng)
    if rows_only:
        release = reference.from_rows(release.Z, n, release.noise)
    fit = reference.fit(release, label, features)
    share, error, quantile = reference.r_squared(release, label, features)
    return {
        "name": name,
        "n": release.n,
        "k": release.k,
        "parties": release.parties,
        "rows_only": rows_only,
        "rows": numbers(release.Z.T),
        "noise": numbers(release.noise),
        "covariance": numbers(release.B - release.spurious),
        "spurious": numbers(release.spurious),
        "covariance_noise": numbers(release.eta),
        "attenuation": numbers(reference.attenuation(release)),
        "box_part": numbers(reference.box_factor(release)),
        "scale_error": numbers(reference.whole_scale_error(release)),
        "kurtosis": numbers(reference.kurtosis(release)),
        "tails": [numbers(part) for part in reference.tails(release)],
        "believable_variance": None if rows_only else numbers(reference.believable_variance(release)),
        "numeric": [bool(numeric) for numeric in release.numeric],
        "label": label,
        "features": features,
        "expected": {
            "weights": numbers(fit.weights),
            "unshrunk": numbers(fit.b),
            "standard_errors": numbers(fit.se),
            "low": numbers(fit.low),
            "high": numbers(fit.high),
            "parts": numbers(fit.parts[:5]),  # nothing of the sixth, who shares what people
            "concerns": fit.concerns,
            "confounders": fit.confounders,
            "explained_share": [float(share), float(error), float(quantile * error)],
        },
    }


def frame(name, seed, n, mu, party):
    """Everything that follows from one party's published sums, and the sums as integers."""
    rng = np.random.default_rng(seed)
    widths = [len(columns) for columns, _ in party]
    numeric = np.concatenate([np.full(len(columns), kind == "num") for columns, kind in party])
    d = sum(widths)
    change = sum(4 if kind == "num" else 1 if width == 1 else 2 for (_, kind), width in zip(party, widths))
    effective = d - sum(width > 1 for width in widths)
    local = float(np.clip((200 * d / (n * mu)) ** 2, 0.05, 0.5))
    quarter = round(local * (1 << 20) / 4)
    mu_1 = mu * math.sqrt(quarter / (1 << 20))
    mu_3 = mu * math.sqrt(2 * quarter / (1 << 20))
    growth = max(1.0, math.sqrt(mu * math.sqrt(n / effective) / 200))
    of_sum, of_square = math.ceil(Q * math.sqrt(change) / mu_1), math.ceil(Q * Q * math.sqrt(change / 2.77) / mu_1)

    def first_sums(mean, sd):
        sums = np.round(mean * n * Q + rng.normal(0, of_sum, d))
        squares = np.round((sd**2 + mean**2) * n * Q * Q + rng.normal(0, of_square, d))
        return [int(x) for x in sums] + [int(x) for x in squares[numeric]]

    def understand(sums, a, h):
        mean = np.array(sums[:d]) / (n * Q)
        square = np.zeros(d)
        square[numeric] = np.array(sums[d:]) / (n * Q * Q)
        mean = np.clip(mean, np.where(numeric, -1, 0), 1)
        inflation = np.where(numeric, of_square / (n * Q * Q), of_sum / (n * Q))
        variance = np.where(numeric, np.clip(square - mean**2, 0, 1), mean * (1 - mean)) + inflation
        m, s, e = a + h * mean, np.maximum(h * np.sqrt(variance), 1e-6), h * of_sum / (n * Q)
        low, high = reference.box(m, s, e, numeric, 3 * growth)
        return m, s, e, 1 - inflation / variance, low, high

    mean = np.where(numeric, rng.uniform(-0.3, 0.3, d), rng.uniform(0.05, 0.5, d))
    one = first_sums(mean, np.full(d, 0.2))
    m1, s1, e1, r1, low, high = understand(one, 0.0, 1.0)
    a = np.where(numeric, (low + high) / 2, 0.0)
    h = np.where(numeric, np.maximum((high - low) / 2, 1e-6), 1.0)
    two = first_sums(np.where(numeric, 0.02, mean), np.full(d, 0.3))
    centre, s2, error, r2, low, high = understand(two, a, h)
    resolved = np.where(numeric, r2, r2 * (s2 / 0.5) ** 2)
    scale = np.where(numeric, s2, 0.5)
    reach = math.sqrt(np.sum((np.maximum(high - centre, centre - low) / scale) ** 2))
    R = min(growth * math.sqrt(effective), max(math.sqrt(effective), reach))
    C = math.floor((R * Q) ** 2)
    of_product, of_mean = math.ceil(1.25 * C / mu_3), math.ceil(2.5 * math.sqrt(C) / mu_3)
    moments = rng.normal(0, 0.2, (d, d))
    moments = moments @ moments.T + 0.5 * np.eye(d)
    means = rng.normal(0, 0.05, d)
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    three = [int(x) for x in np.round(means * n * Q)]
    three += [int(round(moments[i, i] * n * Q * Q)) for i in range(d)]
    three += [int(round(moments[i, j] * n * Q * Q)) for i, j in pairs]
    mbar = np.clip(np.array(three[:d]) / (n * Q), (low - centre) / scale, (high - centre) / scale)
    B = np.zeros((d, d))
    B[np.diag_indices(d)] = np.array(three[d : 2 * d]) / (n * Q * Q)
    for (i, j), x in zip(pairs, three[2 * d :]):
        B[i, j] = B[j, i] = x / (n * Q * Q)
    B -= np.outer(mbar, mbar)
    r = reference.from_rows(np.ones((4, d)), n, np.ones(d))
    r.numeric, r.s1, r.s2, r.r1, r.r2, r.B = numeric, s1, s2, r1, r2, B
    r.resolved, r.centre, r.scale, r.mean, r.centre_error = resolved, centre, scale, mbar, error
    r.first_centre, r.first_error = m1, np.full(d, e1)
    r.eta, r.mean_error = np.full(d, of_product / (n * Q * Q)), np.full(d, of_mean / (n * Q))
    r.cap, r.believe_all = np.where(numeric, 1.5, 2.0), False
    r.parties, r.radius = [list(range(d))], [math.sqrt(C) / Q]
    made_up = r.spurious = reference.spurious(party, list(range(d)), centre, resolved, math.sqrt(C) / Q)
    return {
        "name": name,
        "n": n,
        "mu": mu,
        "columns": [0 if kind == "num" else max(2, width) for (_, kind), width in zip(party, widths)],
        "sums": [one, two, three],
        "expected": {
            "low": numbers(low),
            "high": numbers(high),
            "centre": numbers(centre),
            "scale": numbers(scale),
            "norm_squared": C,
            "means": numbers(mbar),
            "covariance": numbers(B - made_up),
            "spurious": numbers(made_up),
            "noise": float(r.eta[0]),
            "attenuation": numbers(reference.attenuation(r)),
            "box_part": numbers(reference.box_factor(r)),
            "scale_error": numbers(reference.whole_scale_error(r)),
            "tails": [numbers(part) for part in reference.tails(r)],
            "kurtosis": numbers(reference.kurtosis(r)),
            "believable_variance": numbers(reference.believable_variance(r)),
            "centres": numbers(reference.centres(r)[0]),
            "believed_centres": numbers(reference.believed_centres(r)),
        },
    }


def main():
    numeric = [[([0], "num"), ([1], "num")], [([2], "num"), ([3], "num")], [([4], "num")]]
    mixed = [[([0], "num"), ([1], "cat")], [([2, 3, 4], "cat"), ([5], "num")], [([6], "num"), ([7], "num")]]
    one = [[([0], "num"), ([1], "num"), ([2], "num")]]
    everything = [0, 1, 2, 3, 4, 5, 6]
    fits = [
        case("label alone", 1, 20000, numeric, 1.0, 4, [0, 1, 2, 3]),
        case("label among features", 2, 20000, mixed, 1.0, 7, everything),
        case("some features", 3, 20000, mixed, 0.3, 5, [0, 6, 1]),
        case("strong noise", 4, 3000, mixed, 0.1, 7, everything),
        case("weak noise", 5, 8000, numeric, 3.0, 0, [1, 2, 3, 4]),
        case("one feature elsewhere", 6, 20000, numeric, 1.0, 4, [2]),
        case("one party", 7, 20000, one, 1.0, 0, [1, 2]),
        case("rare level as label", 8, 20000, mixed, 1.0, 1, [0, 2, 3, 4, 5, 6, 7]),
        case("a label with a tail", 10, 20000, numeric, 1.0, 4, [0, 1, 2, 3], skewed=4),
        case("a feature with a tail", 11, 50000, mixed, 1.0, 7, everything, skewed=0),
        case("columns that are nearly one", 22, 20000, mixed, 1.0, 7, everything, alike=(0, 5, 6, 7)),
        case("nearly one in one party", 36, 20000, numeric, 1.0, 4, [0, 1, 2, 3], alike=(0, 1, 2, 4)),
        case("mixed rows alone", 9, 20000, numeric, 1.0, 4, [0, 1, 2, 3], rows_only=True),
    ]
    # μ = 1/4 is exact, so that shares and noise are those of the program.
    frames = [
        frame("many people", 1, 100000, 0.25, [([0], "num"), ([1], "cat"), ([2, 3, 4], "cat"), ([5], "num")]),
        frame("few people", 2, 2000, 0.25, [([0], "num"), ([1], "num"), ([2], "cat")]),
        frame("very many people", 3, 50000000, 0.25, [([0], "num")]),
    ]
    (HERE / "fits.json").write_text(json.dumps(fits) + "\n")
    (HERE / "frames.json").write_text(json.dumps(frames) + "\n")


main()
