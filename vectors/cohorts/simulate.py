"""Error, kept share, coverage and width of the reference where parties hold different people, in cells that are named below.

Run: python simulate.py GROUP SEEDS [FIRST_SEED [WHAT ...]]

Three parties hold x1 x2, x3 x4 and x5 x6; the label is alone ("a") or with the last two ("w"); populations "correlated" (C) and "strong"
(S) of the lab. Error: distance of the weights to predict with from the truth, in standard deviations. Kept: mean of b·β/β·β. Cover:
95% intervals of all coefficients; worst: of one. Width: median half-width. R2: the same of the explained share.
"""

import math
import sys
from types import SimpleNamespace

import numpy as np
import reference
from scipy.optimize import brentq
from scipy.stats import norm

base = reference.base
POPULATIONS = {"C": ([0.4, -0.3, 0.3, 0.0, 0.2, -0.2], 0.5, 1.0), "S": ([1.0, 0.0, 0.0, 0.1, 0.0, -0.1], 0.2, 0.6)}
LAYOUTS = {"a": [[0, 1], [2, 3], [4, 5], [6]], "w": [[0, 1], [2, 3], [4, 5, 6]]}
BOUND, LABEL_BOUND = 6.0, 8.0
FEATURES = list(range(6))


def draw(n, population, rng):
    slopes, link, rest = POPULATIONS[population]
    X = rng.normal(size=(n, 6))
    for j in range(1, 6):
        X[:, j] = link * X[:, j - 1] + math.sqrt(1 - link**2) * X[:, j]
    np.clip(X, -BOUND, BOUND, out=X)
    return X, np.clip(X @ np.array(slopes) + rest * rng.normal(size=n), -LABEL_BOUND, LABEL_BOUND)


def truth(population):
    """Slopes in units of u, what makes them standardised, covariance of the features, variance of the label."""
    slopes, link, rest = POPULATIONS[population]
    slopes, C = np.array(slopes), link ** np.abs(np.subtract.outer(range(6), range(6)))
    variance = slopes @ C @ slopes + rest**2
    return slopes * BOUND / LABEL_BOUND, LABEL_BOUND / BOUND / math.sqrt(variance), C, variance


def logistic(z):
    return 1 / (1 + np.exp(-z))


def members(who, share, parties):
    """The chance that a party holds somebody: by x1 at the label's party or at the first, by the label at the first, or random."""
    z = np.random.default_rng(1).normal(size=200000)
    middle = brentq(lambda a: logistic(a + z).mean() - share, -8, 8) if share < 1 else 0.0

    def chance(party, X, y):
        chosen = {"label": parties - 1, "own": 0, "y": 0}.get(who)
        if party != chosen:
            return np.full(len(y), share)
        return logistic(middle + (y / y.std() if who == "y" else X[:, 0]))

    return chance


def make(rng, n, layout, population, share=1.0, who=None, missing=0.0, how="random", typo=0.0):
    """Parties, and the whole table as it would be if everybody were everywhere."""
    total = int(round(n / share))
    X, y = draw(total, population, rng)
    U = np.column_stack([X / BOUND, y / LABEL_BOUND])
    parties, extra = [], total
    latent = rng.normal(size=total)
    chance = members(who, share, len(LAYOUTS[layout]))
    for i, columns in enumerate(LAYOUTS[layout]):
        ids = np.arange(total) if share == 1 else np.flatnonzero(rng.random(total) < chance(i, X, y))
        u, may_miss = U[np.ix_(ids, columns)], [missing > 0] * len(columns)
        if missing:
            if how == "random":
                gone = rng.random(u.shape) < missing
            elif how == "together":  # the same people miss values at all parties, whatever the values
                gone = math.sqrt(0.5) * (latent[ids][:, None] + rng.normal(size=u.shape)) < norm.ppf(missing)
            else:  # by the value
                gone = rng.random(u.shape) < logistic(u / u.std(0) - {0.1: 2.57, 0.3: 1.03}[missing])
            u[gone] = np.nan
            if share == 1:
                U[:, columns] = u
            if len(columns) == 1:  # a row without any value is not there
                there = ~np.isnan(u[:, 0])
                u, ids, may_miss = u[there], ids[there], [False]
        if typo and i == 0:
            ids = ids.copy()
            wrong = rng.random(len(ids)) < typo
            ids[wrong] = extra + np.arange(wrong.sum())
            extra += int(wrong.sum())
        parties.append(SimpleNamespace(ids=ids, U=u, spec=[(1, "num")] * len(columns), may_miss=may_miss))
    return parties, U


CELLS = {}


def cell(group, **named):
    CELLS.setdefault(group, []).append({"n": 100_000, "epsilon": 1.0, "share": 1.0} | named)


for what in ("Ca", "Sw", "Cw", "Sa"):
    cell("same", what=what, today=True, declared="all")
    cell("same", what=what, today=True)
    for share in (0.8, 0.5, 0.2):
        cell("overlap", what=what, share=share, r2=True)
    for missing in (0.1, 0.3):
        cell("missing", what=what, missing=missing, r2=True)
for what in ("Ca", "Sw"):
    for share in (1.0, 0.8, 0.5, 0.2):
        cell("overlap03", what=what, share=share, epsilon=0.3)
        cell("million", what=what, share=share, n=1_000_000)
        cell("sharp", what=what, share=share, epsilon=10.0)
    for missing in (0.1, 0.3):
        cell("missing03", what=what, missing=missing, epsilon=0.3)
    cell("r2", what=what, r2=True)
for what in ("Cw", "Sa"):
    for missing in (0.1, 0.3):
        cell("missing10", what=what, missing=missing, epsilon=10.0, r2=True)
    for missing in (0.1, 0.3):
        cell("missing6", what=what, missing=missing, n=1_000_000)
for what in ("Sa", "Sw"):
    for typo in (0.1, 0.3):
        cell("typo", what=what, typo=typo)
        cell("typo10", what=what, typo=typo, epsilon=10.0)
        cell("typo6", what=what, typo=typo, n=1_000_000)
    for who in ("label", "own", "y"):
        for share in (0.5, 0.8):
            cell("select", what=what, who=who, share=share)
            cell("select10", what=what, who=who, share=share, epsilon=10.0)
for missing in (0.1, 0.3):
    cell("together", what="Sw", missing=missing, how="together")
    cell("value", what="Sa", missing=missing, how="value")
    cell("both", what="Cw", missing=missing, share=0.5, r2=True)
    cell("both", what="Sa", missing=missing, share=0.8, r2=True)


def summary(population, found):
    """found: (weights, b, low, high) of each seed."""
    true, scale, _, _ = truth(population)
    W, b, low, high = (np.array(part) for part in zip(*found))
    error = np.sqrt((((W - true) * scale) ** 2).sum(1))
    kept = b @ true / (true @ true)
    cover = (low <= true) & (true <= high)
    by_seed = lambda x: x.std() / math.sqrt(len(x))
    return dict(error=error.mean(), error_se=by_seed(error), kept=kept.mean(), kept_se=by_seed(kept), cover=cover.mean(),
                cover_se=by_seed(cover.mean(1)), worst=cover.mean(0).min(), width=np.median((high - low) / 2 * scale))  # fmt: skip


def run(seeds, what, n, epsilon, share, today=False, declared=None, r2=False, **how):
    population, layout = what
    mu, found, said, explained = base.mu_of(epsilon), {}, [], []
    for seed in seeds:
        rng = np.random.default_rng([seed, n])
        parties, U = make(rng, n, layout, population, share, **how)
        if today:
            r = base.release(np.nan_to_num(U), [[([c], "num") for c in P] for P in LAYOUTS[layout]], mu, np.random.default_rng([seed, 5]))
            found.setdefault("today", []).append(reference.slopes_of(r, base.fit(r, 6, FEATURES), 6, FEATURES))
        r = reference.release(parties, mu, rng, share=declared)
        f = reference.fit(r, 6, FEATURES)
        found.setdefault("new", []).append(reference.slopes_of(r, f, 6, FEATURES))
        l = f.learned
        up = np.triu_indices(len(r.n), 1)
        said.append(((l.m / np.minimum.outer(r.n, r.n))[up].mean(), (l.m / np.minimum.outer(r.n, r.n))[up].std(), l.m_sd[up].mean()))
        if r2:
            true, scale, C, variance = truth(population)
            slopes, w = true * LABEL_BOUND / BOUND, found["new"][-1][0] * LABEL_BOUND / BOUND
            share_of = (2 * slopes - w) @ C @ w / variance
            estimate, error, reach = reference.r_squared(r, 6, FEATURES)
            explained.append((share_of, estimate, error, abs(estimate - share_of) <= reach * error))
    return {name: summary(population, of) for name, of in found.items()}, np.array(said), np.array(explained, float)


def main():
    group, count = sys.argv[1], int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    only = sys.argv[4:]
    for of in CELLS[group]:
        if only and of["what"] not in only:
            continue
        found, said, explained = run(range(first, first + count), **of)
        print(" ".join(f"{name}={value}" for name, value in of.items() if name not in ("today", "r2")))
        for name, x in found.items():
            print(f"    {name:6} error {x['error']:.4f}±{x['error_se']:.4f} kept {x['kept']:.3f}±{x['kept_se']:.3f} "
                  f"cover {x['cover']:.3f}±{x['cover_se']:.3f} worst {x['worst']:.2f} width {x['width']:.4f}")  # fmt: skip
        m, apart, sd = said.mean(0)
        print(f"    overlap {m:.3f}, apart {apart:.3f}, said {sd:.3f}, of fits {said[:, 0].std():.3f}", end="")
        if len(explained):
            true, estimate, error, cover = explained.mean(0)
            print(f"; R2 {true:.3f} found {estimate:.3f} sd {(explained[:, 1] - explained[:, 0]).std():.3f} said {error:.3f} cover {cover:.3f}", end="")
        print(flush=True)


if __name__ == "__main__":
    main()
