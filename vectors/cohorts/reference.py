"""The calibrated release in buckets, for parties that hold different people with missing values, and its learner.

Floating point, for checking only; not safe for real data (float noise, no ledger). docs/PRIVACY.md#calibrated and
docs/LEARNERS.md#different-people explain every step. What is not defined here is that of ../calibrated/reference.py, which this equals
where everybody is everywhere: check_same.py.

A party: SimpleNamespace(ids, U, spec, may_miss): U is n_i x d_i, NaN where missing (all levels of a column together), spec a list of
(width, "num" | "cat"), may_miss one bool for each entry of spec.
"""

import importlib.util
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy.stats import chi2, norm
from scipy.stats import t as student


def beside(folder):
    path = Path(__file__).parent.parent / folder / "reference.py"
    module = importlib.util.module_from_spec(found := importlib.util.spec_from_file_location(folder, path))
    found.loader.exec_module(module)
    return module


base = beside("calibrated")

B2 = 2.77  # of Lemma S
COUNT = np.array([0.23, 0.75, 1.0])  # weights of a squared change of a count: numeric, two levels, more
ALL = 0.25  # prior probability that all of the smaller party's people are in the larger one, where that is not ruled out
LEAST = 0.005  # smallest share of the smaller party that two parties are believed to have in common
LEVELS = np.linspace(0.025, 0.975, 20)  # where the shares of all pairs of parties may lie …
ALIKE = (0.02, 0.07, 0.2, math.inf)  # … and how far apart
EVERYWHERE = 0.25  # prior probability that everybody is everywhere, where that is not ruled out
IN_COMMON = np.linspace(-3, 3, 13)  # sds of the error that all pairs have in common
MOST_IN_COMMON = 0.9  # largest share of the variance that is common
MOST_COSINE = 0.9999
TWO_SIDED = float(norm.ppf(0.975))  # for the interval of what presence says
DEPENDENT = 0.2  # sd of the unknown correlation between "missing here" and "missing there", for columns of two parties
SELECTED = 0.5  # prior probability that an overlap is not a random part of a party's people
SELECTION_DOUBT = 0.5  # relative sd of the correction for what selection does to covariances
MOST_SELECTED = 0.8  # largest square of what selection takes
MOST_OVERLAP_DOUBT = 1.5  # largest sd of the logarithm of an overlap that counts
SURE, MANY_MISSING = 3.0, 0.2  # standard deviations of a finding; share of missing values that is one

# ---------------------------------------------------------------- release


def columns_of(party):
    """Of each encoded column: numeric, two levels or more; its column; its group of presence; and the number of groups."""
    kind, column, group, groups = [], [], [], int(not all(party.may_miss))
    for c, ((width, k), miss) in enumerate(zip(party.spec, party.may_miss)):
        kind += [0 if k == "num" else 1 if width == 1 else 2] * width
        column += [c] * width
        group += [groups if miss else 0] * width
        groups += int(miss)
    return np.array(kind), np.array(column), np.array(group), groups


def standardise(u, there, kind, column, group, change, rows, mu, rng):
    """One round: mean, spread, noise of the mean, share of the variance that is not noise, counts and their noise."""
    d, numeric = u.shape[1], kind == 0
    of_sum = math.sqrt(change) / mu
    of_square = of_sum / math.sqrt(B2)
    shifted = np.where(there, u - np.where(kind == 1, 0.5, 0.0), 0.0)
    total = shifted.sum(0) + rng.normal(0, of_sum, d)
    square = (np.where(there, u, 0.0) ** 2).sum(0) + rng.normal(0, of_square, d)
    count, of_count = np.zeros(d), np.zeros(d)
    for g in set(group):
        mine = group == g
        weight = sum(COUNT[kind][column == c][0] for c in set(column[mine]))
        of_count[mine] = of_sum / math.sqrt(weight)
        noise = of_sum / math.sqrt(weight)
        count[mine] = seen(there[:, np.flatnonzero(mine)[0]].sum() + rng.normal(0, noise), noise, rows)
    mean = np.clip(total / count + np.where(kind == 1, 0.5, 0.0), np.where(numeric, -1, 0), 1)
    inflation = np.where(numeric, of_square, of_sum) / count
    variance = np.where(numeric, np.clip(square / count - mean * mean, 0, 1), mean * (1 - mean)) + inflation
    return mean, np.sqrt(variance), of_sum / count, 1 - inflation / variance, count, of_count


def seen(count, noise, rows):
    """A count as it is divided by: one that its noise hides says nothing."""
    return np.maximum(np.maximum(count, np.minimum(noise, rows)), 1.0)


def release(parties, mu, rng, rows=None, k=None, share=None):
    """rows: public guesses of how many people parties hold. share: declared ranges {(i, j): (low, high)} of what two parties have in
    common, as a share of the smaller one; "all" for everybody; nothing is declared otherwise."""
    b, sizes = len(parties), [len(party.ids) for party in parties]
    rows = sizes if rows is None else rows
    widths = [sum(w for w, _ in party.spec) for party in parties]
    p, n_guess = sum(widths), min(rows)
    local = float(np.clip((base.GROWTH_START * max(widths) / (n_guess * mu)) ** 2, 0.05, 0.5))
    mu_1, mu_2, mu_3, mu_4 = (mu * math.sqrt(part) for part in (local / 4, local / 4, local / 2, 1 - local))
    names = "noise centre scale low high mean eta resolved cap mean_error centre_error".split()
    names += "first_centre first_error s1 r1 s2 r2 numeric rate rate_error".split()
    r = SimpleNamespace(p=p, parties=[], B=np.zeros((p, p)), **{name: np.zeros(p) for name in names})
    r.spurious, r.believe_all, r.radius = np.zeros((p, p)), False, []
    r.joint = np.ones((p, p))  # share of a party's rows in which both values are present
    r.noise_p, r.n = np.full(b, 2 / mu_4), np.zeros(b)
    r.share = declared(b, share)
    r.of_party = np.repeat(np.arange(b), widths)
    rows_of, counts_of = [], []
    for index, party in enumerate(parties):
        d, n = widths[index], sizes[index]
        P = list(np.flatnonzero(r.of_party == index))
        r.parties.append(P)
        kind, column, group, groups = columns_of(party)
        numeric = kind == 0
        change = sum(4 if k_ == "num" else 1 if w == 1 else 2 for w, k_ in party.spec)
        effective = d - sum(k_ != "num" and w > 1 for w, k_ in party.spec)
        growth = max(1.0, math.sqrt(mu * math.sqrt(rows[index] / effective) / base.GROWTH_START))
        there = ~np.isnan(party.U)
        u = np.where(there, party.U, 0.0)
        about = (there, kind, column, group, change, rows[index])
        m1, s1, e1, r1, _, _ = standardise(u, *about, mu_1, rng)
        low, high = base.box(m1, s1, e1, numeric, 3 * growth)
        a = np.where(numeric, (low + high) / 2, 0.0)
        h = np.where(numeric, np.maximum((high - low) / 2, 1e-6), 1.0)
        m2, s2, e2, r2, n2, of_n2 = standardise(np.clip((u - a) / h, -1, 1), *about, mu_2, rng)
        centre, scale, error = a + h * m2, np.maximum(h * s2, 1e-6), h * e2
        low, high = base.box(centre, scale, error, numeric, 3 * growth)
        r.s1[P], r.r1[P], r.s2[P], r.r2[P], r.numeric[P] = s1, r1, scale, r2, numeric
        resolved = np.where(numeric, r2, r2 * (scale / 0.5) ** 2)
        scale = np.where(numeric, scale, 0.5)
        reach = math.sqrt(np.sum((np.maximum(high - centre, centre - low) / scale) ** 2))
        R = min(growth * math.sqrt(effective), max(math.sqrt(effective), reach))
        r.radius.append(R)
        x = base.ball(np.where(there, (np.clip(u, low, high) - centre) / scale, 0.0), R)

        # Local moments of (x, presence of each group).
        present = there[:, [np.flatnonzero(group == g)[0] for g in range(groups)]].astype(float)
        off = (1 + base.TAU**2) * R * R / mu_3
        unit = base.TAU * R / math.sqrt(groups)
        N = np.triu(rng.normal(0, off, (d, d)), 1)
        S = x.T @ x + N + N.T + np.diag(rng.normal(0, math.sqrt(2) * off, d))
        M = (x.T @ present + rng.normal(0, off / unit, (d, groups)))[:, group]  # sum of x_i where j is present
        N = np.triu(rng.normal(0, off / unit**2, (groups, groups)), 1)
        N = present.T @ present + N + N.T + np.diag(rng.normal(0, math.sqrt(2) * off / unit**2, groups))
        # Counts: the second round's and those here, by how well each is known.
        of_n3, own = math.sqrt(2) * off / unit**2, np.diag(N)[group]
        trust = of_n3**2 / (of_n3**2 + of_n2**2)
        of_count = np.sqrt(trust) * of_n2
        count = seen(trust * n2 + (1 - trust) * own, of_count, rows[index])
        pair = np.minimum(np.maximum(N[np.ix_(group, group)], off / unit**2), np.minimum.outer(count, count))
        pair = np.where(group[:, None] == group, count, pair)
        low_x, high_x = (low - centre) / scale, (high - centre) / scale
        mean = np.clip(np.diag(M) / count, low_x, high_x)
        Mx = np.clip(M / pair, low_x[:, None], high_x[:, None])
        r.B[np.ix_(P, P)] = S / pair - Mx * Mx.T
        rows_of.append(base.ball(np.where(there, x - mean, 0.0), R))
        counts_of.append((count, of_count, pair, np.array(party.may_miss)[column]))
        r.eta[P], r.cap[P] = off * math.sqrt(np.mean(pair**-2.0)), np.where(numeric, 1.5, 2.0)
        r.noise[P], r.resolved[P] = 2 * R / mu_4, resolved
        r.centre[P], r.scale[P], r.low[P], r.high[P], r.mean[P] = centre, scale, low, high, mean
        r.centre_error[P], r.mean_error[P] = error, off / unit / count
        r.first_centre[P], r.first_error[P] = m1, e1
        ends = np.cumsum([0] + [w for w, _ in party.spec])
        spec = [(P[start:end], k_) for (_, k_), start, end in zip(party.spec, ends, ends[1:])]
        r.spurious[np.ix_(P, P)] = base.spurious(spec, P, centre, resolved, R)
    if k is None:
        k = min(n_guess, max(3 * (p + b), math.exp(np.mean(np.log(np.array(rows)[r.of_party] / r.noise**2)))))
    r.k = int(k)
    bucket = rng.integers(0, r.k, 1 + max(int(party.ids.max()) for party in parties))
    r.Z, r.P = np.zeros((r.k, p)), np.zeros((r.k, b))
    for index, party in enumerate(parties):
        for j, q in enumerate(r.parties[index]):
            r.Z[:, q] = np.bincount(bucket[party.ids], rows_of[index][:, j], r.k)
        r.P[:, index] = np.bincount(bucket[party.ids], minlength=r.k)
    r.Z += rng.normal(0, 1, (r.k, p)) * r.noise
    r.P += rng.normal(0, 1, (r.k, b)) * r.noise_p
    r.counts = counts_of
    for index, P in enumerate(r.parties):
        people(r, index, P, *counts_of[index])
        factor = clipped_together(r, P, r.radius[index], counts_of[index][2])
        r.B[np.ix_(P, P)] = factor * (r.B - r.spurious)[np.ix_(P, P)] + r.spurious[np.ix_(P, P)]
    return r


def declared(b, share):
    if share == "all":
        share = {(i, j): (1.0, 1.0) for i in range(b) for j in range(i)}
    found = {(i, i): (1.0, 1.0) for i in range(b)}
    for (i, j), range_ in (share or {}).items():
        found[i, j] = found[j, i] = range_
    return {(i, j): found.get((i, j), (0.0, 1.0)) for i in range(b) for j in range(b)}


def people(r, index, P, count, of_count, pair, may_miss):
    """How many people a party holds (its presence adds up to that), and how often values and pairs of values are present."""
    n, of_n = r.P[:, index].sum(), r.noise_p[index] * math.sqrt(r.k)
    if not may_miss.all():
        j = int(np.flatnonzero(~may_miss)[0])
        n = (n / of_n**2 + count[j] / of_count[j] ** 2) / (1 / of_n**2 + 1 / of_count[j] ** 2)
        of_n = (1 / of_n**2 + 1 / of_count[j] ** 2) ** -0.5
    n = r.n[index] = max(n, of_n, 1.0)
    rate = r.rate[P] = np.where(may_miss, np.clip(count / n, 0.01, 1.0), 1.0)
    r.rate_error[P] = np.where(may_miss, of_count / count, 0.0)
    joint = np.clip(np.clip(pair / n, 1e-4, 1.0), np.maximum(np.add.outer(rate, rate) - 1, 1e-4), np.minimum.outer(rate, rate))
    joint[np.diag_indices(len(P))] = rate
    r.joint[np.ix_(P, P)] = joint


def clipped_together(r, P, R, pair):
    """By what covariances are multiplied because the ball cuts people who have both values more than those who have one: variances,
    by which it is measured what it cut, are over the latter. For bell-shaped rows, as in lost_by_a_bell."""
    if np.allclose(pair, pair.max()):
        return np.ones(pair.shape)
    given = np.minimum(pair / np.diag(pair)[:, None], 1)  # [j, o]: how often o is there where j is
    after = np.maximum((r.B - r.spurious)[P, P], 3 * r.eta[P])
    before = np.clip(r.resolved[P], 0.02, 1)
    squares = np.maximum((r.B - r.spurious)[np.ix_(P, P)] ** 2 - r.eta[P[0]] ** 2, 0) / np.outer(after, after)
    squares = np.outer(before, before) * np.minimum(squares, 1) * ~np.eye(len(P), dtype=bool)

    def kept(there):
        mean = there @ before
        half = (there * (3 - there) / 2) @ before**2 + there @ squares @ there
        h, limit = mean**2 / half, R * R / mean
        return chi2.cdf(limit * h, h + 2) + limit * chi2.sf(limit * h, h)

    alone = [kept(there) for there in given]
    factor = np.ones(pair.shape)
    for j in range(len(P)):
        for o in range(j):
            both = (given[j] + given[o]) / 2
            both[[j, o]] = 1.0
            factor[j, o] = factor[o, j] = math.sqrt(alone[j] * alone[o]) / kept(both)
    return factor


# ---------------------------------------------------------------- who is where


def prepared(r, rows=slice(None)):
    """Mixed columns about their means, divided by the share of present values; presence likewise."""
    return ((r.Z - r.Z.mean(0)) / r.rate)[rows], (r.P - r.P.mean(0))[rows]


def overlaps(r):
    """What parties have in common: exp of the posterior mean of its logarithm, and the sd of that; by every pair also the share of
    the smaller party that its own presence says, and by how many sds it is above nothing and outside of what is declared."""
    if getattr(r, "overlaps", None):
        return r.overlaps
    b, k = len(r.parties), r.k
    P = r.P - r.P.mean(0)
    cosines = P.T @ P / np.sqrt(np.outer((P * P).sum(0), (P * P).sum(0)))
    m, sd, pairs, away = np.diag(r.n).astype(float), np.zeros((b, b)), [], math.sqrt(max(k - 4, 1))
    for i in range(b):
        for j in range(i):
            smaller = min(r.n[i], r.n[j])
            full = smaller / k / math.sqrt((r.n[i] / k + r.noise_p[i] ** 2) * (r.n[j] / k + r.noise_p[j] ** 2))
            z = math.atanh(np.clip(cosines[i, j], -MOST_COSINE, MOST_COSINE))  # Fisher's
            low, high = r.share[i, j]
            grid = np.linspace(max(low, LEAST), max(high, LEAST), 400 if high > low else 1)
            places = lambda share: np.arctanh(np.minimum(full * share, MOST_COSINE))
            beyond = max(z - places(high), places(low) - z, 0) * away
            said = dict(at=(j, i), share=math.tanh(z) / full, above=z * away, beyond=beyond, nothing=low <= 0)
            said["low"], said["high"], said["most"] = (np.clip(math.tanh(z + x / away) / full, 0, 1) for x in (-TWO_SIDED, TWO_SIDED, SURE))
            pairs.append((said, grid, (z - places(grid)) * away, high >= 1, smaller))
    for (said, grid, _, _, smaller), chance in zip(pairs, shares(pairs, in_common(cosines))):
        log = np.log(grid * smaller)
        mean = chance @ log
        j, i = said["at"]
        m[i, j] = m[j, i] = math.exp(mean)
        sd[i, j] = sd[j, i] = 0 if len(grid) == 1 else min(math.sqrt(max(chance @ log**2 - mean**2, 0)), MOST_OVERLAP_DOUBT)
    r.overlaps = m, sd, [said for said, *_ in pairs]
    return r.overlaps


def in_common(cosines):
    """What share of their variance the errors of the cosines have in common: their mean correlation (Olkin and Siotani 1976)."""
    c = np.clip(cosines, 0, MOST_COSINE)
    c[np.diag_indices(len(c))] = 1.0
    places = [(i, j) for i in range(len(c)) for j in range(i)]
    found = []
    for at, (i, j) in enumerate(places):
        for k, l in places[:at]:
            squares = c[i, k] ** 2 + c[i, l] ** 2 + c[j, k] ** 2 + c[j, l] ** 2
            triples = c[i, j] * (c[i, k] * c[i, l] + c[j, k] * c[j, l]) + c[k, l] * (c[i, k] * c[j, k] + c[i, l] * c[j, l])
            covariance = 0.5 * c[i, j] * c[k, l] * squares + c[i, k] * c[j, l] + c[i, l] * c[j, k] - triples
            found.append(covariance / ((1 - c[i, j] ** 2) * (1 - c[k, l] ** 2)))
    return min(max(np.mean(found), 0.0), MOST_IN_COMMON) if found else 0.0


def shares(pairs, common):
    """Posterior of the share of every pair. Before, it is all of the smaller party: for all pairs together with probability EVERYWHERE,
    for each with probability ALL. Otherwise it lies about a level that all pairs share, nearer or further."""
    stories = [(1.0, 1e-3, EVERYWHERE)]
    stories += [(level, apart, (1 - EVERYWHERE) / len(LEVELS) / len(ALIKE)) for level in LEVELS for apart in ALIKE]
    priors, likes = [], []
    for _, grid, errors, may_be_all, _ in pairs:
        of_stories = np.array([np.exp(-0.5 * ((grid - level) / apart) ** 2) + 1e-12 for level, apart, _ in stories])
        of_stories /= of_stories.sum(1)[:, None]
        if may_be_all and len(grid) > 1:
            all_of_it = np.array([1.0 if level == 1 else ALL for level, _, _ in stories])
            of_stories *= 1 - all_of_it[:, None]
            of_stories[:, -1] += all_of_it
        priors.append(of_stories)
        # By the error that all pairs have in common.
        log = -0.5 * (errors - math.sqrt(common) * IN_COMMON[:, None]) ** 2 / (1 - common)
        likes.append(np.exp(log - log.max()))
    evidence = [np.maximum(prior @ like.T, 1e-300) for prior, like in zip(priors, likes)]  # of each story and common error
    log = sum(np.log(of_pair) for of_pair in evidence) - 0.5 * IN_COMMON**2 if pairs else np.zeros(1)
    weight = np.exp(log - log.max()) * np.array([chance for *_, chance in stories])[:, None] if pairs else None
    found = []
    for prior, like, of_pair in zip(priors, likes, evidence):
        chance = np.einsum("se,sg,eg->g", weight / of_pair, prior, like)
        found.append(chance / chance.sum())
    return found


def selection(share):
    """Gaussian selection of this share (Pearson, Aitken, Lawley): largest shift of a mean in sds, and loss of variance for each
    squared shift."""
    share = min(max(share, 1e-3), 0.999)
    alpha = norm.ppf(share)
    most = norm.pdf(alpha) / share
    return most, 1 + alpha / most


def shrunk_shift(x, v, most):
    """Posterior means and variances of shifts x with error variances v: none with probability 1 - SELECTED, else N(0, g), g on a
    grid."""
    grid = most**2 * np.geomspace(1e-3, 1, 12)
    slab = -0.5 * np.sum(np.log(1 + grid[:, None] / v) - x * x * (1 / v - 1 / (grid[:, None] + v)), 1)
    weight = np.exp(slab - max(slab.max(), 0)) * SELECTED / len(grid)
    none = math.exp(-max(slab.max(), 0)) * (1 - SELECTED)
    factor, total = grid[:, None] / (grid[:, None] + v), weight.sum() + none
    mean = weight @ factor * x / total
    variance = np.maximum(weight @ ((factor * x) ** 2 + factor * v) / total - mean**2, 0)
    return mean * min(1.0, most / max(math.sqrt(mean @ mean), 1e-300)), variance


def times(mean, variance, other_mean, other_variance):
    """Mean and variance of the product of two shifts whose errors have nothing in common."""
    product = mean * other_mean
    return product, (mean**2 + variance) * (other_mean**2 + other_variance) - product**2


def findings(r):
    """What numbers of people and values say against every fit: (kind, parties or column)."""
    found = []
    for pair in overlaps(r)[2]:
        if pair["above"] < SURE and pair["most"] < 0.5:
            found.append(("no overlap", pair["at"]))
        elif pair["above"] < SURE and pair["nothing"]:
            found.append(("overlap not seen", pair["at"]))
        elif pair["beyond"] > SURE:
            found.append(("overlap outside the declared range", pair["at"]))
    found += [("many missing", j) for j in range(r.p) if 1 - r.rate[j] > MANY_MISSING]
    return found


# ---------------------------------------------------------------- learner


def look(r, label, features, rows=None, select=True):
    """What is found of whitened features: that of the reference, with own numbers of people, overlaps, missing values and shifts of
    means between a party's people and those it shares with another."""
    B = r.B - r.spurious
    Z, Pr = prepared(r, slice(None) if rows is None else rows)
    k = len(Z)
    n, (m, m_sd, _) = r.n * k / r.k, overlaps(r)
    m = m * k / r.k
    d, home = len(features), r.of_party[label]
    place = {j: i for i, j in enumerate(features)}
    sy = math.sqrt(max(B[label, label], 3 * r.eta[label]))
    ty_mix = n[home] / k / r.rate[label]
    ty = ty_mix + (r.noise[label] / r.rate[label]) ** 2 / sy**2
    A, turn = np.zeros((2, d, d))
    size, t, t_mix, c, eta, raised = np.zeros((6, d))  # size: squared length of a row of A
    block, own, at = np.zeros(d, int), np.zeros(d, bool), 0
    for b, members in enumerate(r.parties):
        P = [j for j in members if j in place]
        q = len(P)
        if not q:
            continue
        e, M, off = r.eta[P[0]], B[np.ix_(P, P)].copy(), ~np.eye(q, dtype=bool)
        if q > 1:
            M[off] *= max(0, 1 - e * e * q * (q - 1) / max((M[off] ** 2).sum(), 1e-300))
        M[np.diag_indices(q)] = np.maximum(np.diag(M), 3 * e)
        values, vectors = np.linalg.eigh(M)
        rows_, columns = slice(at, at + q), [place[j] for j in P]
        raised[columns] = vectors**2 @ (values < 2 * e * math.sqrt(q))
        values = np.maximum(values, 2 * e * math.sqrt(q))
        W = (vectors / np.sqrt(values)).T
        turn[rows_, rows_] = vectors
        t_mix[rows_], t[rows_] = n[b] / k, n[b] / k + r.noise[P[0]] ** 2 / values
        rate = r.rate[P]
        if (rate < 1).any():
            # A bucket holds values that are present, over their shares, and noise: turned until that is diagonal.
            M = (vectors * values) @ vectors.T
            filled = n[b] / k * M * r.joint[np.ix_(P, P)] / np.outer(rate, rate)
            t[rows_], by = np.linalg.eigh(W @ (filled + np.diag((r.noise[P] / rate) ** 2)) @ W.T)
            W = by.T @ W
            turn[rows_, rows_] = vectors @ by
            t_mix[rows_] = np.diag(W @ filled @ W.T)
        A[rows_, columns] = W
        size[rows_], block[rows_], eta[rows_] = (W**2).sum(1), b, e
        if b == home:
            own[rows_] = True
            c[rows_] = W @ B[P, label] / sy
        at += q
    F = Z[:, features] @ A.T
    F = F / np.sqrt((F * F).sum(0))
    y = Z[:, label] / np.linalg.norm(Z[:, label])
    apart = block[:, None] != block[None, :]
    root = np.sqrt(t)
    m_ab, m_ay = m[np.ix_(block, block)], m[block, home]
    shift, shift_v, shift_y, shift_yv = shifts(r, F, y, Pr, n, m, k, t, ty, block, home)
    # [a, b]: of coordinate a on the people shared with the party of b.
    moved, unmoved = times(shift[block].T, shift_v[block].T, shift[block], shift_v[block])
    moved_y, unmoved_y = times(shift[home], shift_v[home], shift_y[block], shift_yv[block])
    unmoved, unmoved_y = np.where(apart, unmoved, 0), np.where(own, 0, unmoved_y)
    K = np.where(apart, (F.T @ F) * np.outer(root, root) * k / m_ab - moved, 0)
    V = np.outer(t, t) * k / m_ab**2 + unmoved
    c = np.where(own, c, (F.T @ y) * root * math.sqrt(ty) * k / m_ay - moved_y)
    v = np.where(own, eta**2 * size * (1 / sy**2 + size), t * ty * k / m_ay**2 + unmoved_y)
    l = SimpleNamespace(
        n=n, k=k, d=d, sy=sy, ty=ty, ty_mix=ty_mix, A=A, size=size, t=t, t_mix=t_mix, eta=eta, block=block, own=own, apart=apart,
        cosines=F.T @ F, c=c, v=v, K=K, V=V, turn=turn, raised=raised, m=m, m_sd=m_sd, home=home, m_ab=m_ab, m_ay=m_ay,
        shift=shift, shift_v=shift_v, shift_y=shift_y, shift_yv=shift_yv, rate_y=r.rate[label], unmoved=unmoved, unmoved_y=unmoved_y,
    )  # fmt: skip
    return l, lost(l) if select else None


def shifts(r, F, y, Pr, n, m, k, t, ty, block, home):
    """By how much means over the people that a party shares with each other party differ from those over all of its own, as far as it
    is believed, and the variances of what is not; 0 where there is none. Of the features' coordinates and of the label."""
    b, d = len(r.parties), len(t)
    shift, shift_v = np.zeros((2, b, d))
    shift_y, shift_yv = np.zeros((2, b))
    for o in range(b):
        all_of_it = np.array([r.share[i, o][0] >= 1 for i in range(b)])
        if all_of_it.all():
            continue
        p, tp = Pr[:, o] / np.linalg.norm(Pr[:, o]), n[o] / k + r.noise_p[o] ** 2
        seen, of_seen = (F.T @ p) * np.sqrt(t) * math.sqrt(tp) * k / m[o, block], t * tp * k / m[o, block] ** 2
        for i in sorted(set(block)):
            mine = block == i
            if i != o and not all_of_it[i]:
                shift[o, mine], shift_v[o, mine] = shrunk_shift(seen[mine], of_seen[mine], selection(m[i, o] / n[i])[0])
        if o != home and not all_of_it[home]:
            seen, of_seen = np.array([(y @ p) * math.sqrt(ty * tp) * k / m[o, home]]), np.array([ty * tp * k / m[o, home] ** 2])
            (shift_y[o],), (shift_yv[o],) = shrunk_shift(seen, of_seen, selection(m[home, o] / n[home])[0])
    return shift, shift_v, shift_y, shift_yv


def column_shifts(r):
    """The same for every column and every other party, in standard deviations: (column, party, shift, its standard error)."""
    Z, P = prepared(r)
    m, found = overlaps(r)[0], []
    for j in range(r.p):
        i = r.of_party[j]
        variance = max((r.B - r.spurious)[j, j], 3 * r.eta[j])
        t = r.n[i] / r.k / r.rate[j] + (r.noise[j] / r.rate[j]) ** 2 / variance
        for o in range(len(r.parties)):
            if o != i and r.share[i, o][0] < 1:
                both = t * (r.n[o] / r.k + r.noise_p[o] ** 2)
                cosine = Z[:, j] @ P[:, o] / math.sqrt((Z[:, j] @ Z[:, j]) * (P[:, o] @ P[:, o]))
                found.append((j, o, cosine * math.sqrt(both) * r.k / m[i, o], math.sqrt(both * r.k) / m[i, o]))
    return found


def lost(l):
    """What the label's people are like: by how much less features vary among them."""
    theta = np.array([selection(l.m[b, l.home] / l.n[b])[1] for b in l.block])
    found = l.shift[l.home] * np.sqrt(theta)
    return found * min(1.0, math.sqrt(MOST_SELECTED / max(found @ found, 1e-300)))


def learn(r, label, features, rows=None, barrier=base.PREDICTING, select=True):
    l, gone = look(r, label, features, rows, select)
    return base.believe(l, barrier, gone if gone is not None and gone.any() else None)


def linearise(l, H):
    """As in the reference, with every product over its own people."""
    k, d, t, own, apart = l.k, l.d, l.t, l.own, l.apart
    inverse, w, explained, P = base.solve(l, H)
    theta = np.where(apart, base.WIDE / (base.WIDE + l.V), 0)
    selected = np.outer(l.lost, l.lost)
    read = np.eye(d) + theta * l.K - selected
    b = w + inverse @ (l.c - read @ w)
    w2 = w * w + np.diag(P)
    y = np.where(own, 0.0, 1 / l.m_ay)
    u, extra = theta * w / l.m_ab, (theta / l.m_ab) ** 2 * np.diag(P)
    with_label = np.where(own, l.n[l.home], l.m_ay) / k * l.means  # of what a bucket holds
    between = np.where(apart, l.m_ab / k * (H + selected), 0)

    def rows_of(t, ty):
        total = y * y * ty - 2 * y * (u @ with_label) + np.sum((u @ (between + np.diag(t))) * u, 1)
        return k * t * (np.maximum(total, 0) + extra @ t)

    # Where an overlap is hardly known, neither is the error of what is divided by it: E[1/m^2] instead of 1/m^2.
    of_blocks = np.where(apart, l.m_sd[np.ix_(l.block, l.block)], 0).max(1, initial=0)
    spread = np.exp(2 * np.where(own, of_blocks, l.m_sd[l.block, l.home]) ** 2)
    D, Dm = rows_of(t, l.ty) * spread + l.unmoved_y + (theta**2 * l.unmoved) @ w2, rows_of(l.t_mix, l.ty_mix) * spread
    same = ~apart
    local = l.eta**2 * l.size * (np.where(own, 1 / l.sy**2, 0) + same @ (w2 * l.size) + w2 * l.size)
    hidden = (1 - theta) ** 2 * ((theta * l.K) ** 2 + theta * l.V)
    unknown = hidden * np.outer(w, w)
    unknown[np.diag_indices(d)] = hidden @ w2
    unknown = unknown + (read - H) @ P @ (read - H).T
    rho = np.where(np.outer(~own, ~own), l.cosines, 0)
    rho[np.diag_indices(d)] = 1.0
    of_rows = rho * np.sqrt(np.outer(D, D))
    share = np.minimum(Dm / np.maximum(D, 1e-300), 1)
    # People: those shared with the label's party; what is not shared does not cancel.
    people = np.where(own, l.n[l.home], l.m_ay)
    cancels = np.mean(np.minimum(people / l.n[l.block], 1)) * l.rate_y
    sampling = H / np.sqrt(np.outer(people, people)) / l.rate_y * (1 - explained * cancels)
    return SimpleNamespace(
        H=H, inverse=inverse, w=w, b=b, explained=explained, of_rows=of_rows, of_mixing=share[:, None] * of_rows,
        unknown=unknown, local=np.diag(local), sampling=sampling,
    )  # fmt: skip


def as_factor(sd):
    """Sd of a factor whose logarithm has this one."""
    return math.sqrt(math.expm1(sd**2)) * math.exp(sd**2 / 2)


def others(r, l, label, features):
    """What else is not known: overlaps, values that are missing at the same people of two parties, and what selection does beyond its
    correction: (sd, effect on c, effect on Hw) of each."""
    found, w = [], l.w
    missed = (1 - r.rate) / r.rate
    of_block = {b: np.mean([missed[j] for j in features if r.of_party[j] == b]) for b in sorted(set(l.block))}
    whole = l.H + np.outer(l.lost, l.lost)
    for b in of_block:
        mine = l.block == b
        sd = math.sqrt(l.m_sd[b, l.home] ** 2 + DEPENDENT**2 * of_block[b] * missed[label])
        if b != l.home and sd > 0:
            found.append((as_factor(sd), mine * l.means, np.zeros(l.d)))
        for o in of_block:
            sd = math.sqrt(l.m_sd[b, o] ** 2 + DEPENDENT**2 * of_block[b] * of_block[o])
            if o < b and sd > 0:
                pair = np.outer(mine, l.block == o)
                found.append((as_factor(sd), np.zeros(l.d), np.where(pair | pair.T, whole, 0) @ w))
    if l.lost.any():
        found.append((SELECTION_DOUBT, np.zeros(l.d), -l.lost * (l.lost @ w)))
    return found


def fit(r, label, features, level=0.95, select=True):
    def learner(*args, **named):
        return learn(*args, **named, select=select)

    return base.fit(r, label, features, level, learner, linearise, others if select else others)


def slopes_of(r, f, label, features):
    """Weights to predict with, estimates, lower and upper ends, all in the units of U."""
    scale = base.attenuation(r) * r.scale
    ratio = scale[label] / scale[features]
    return f.weights * ratio, f.b * ratio, f.low * ratio, f.high * ratio


def moved_by(l, parties):
    """Products of the means of the label and of the parties' parts of the prediction over the people that two of them share."""

    def part(b, o):
        mine = l.block == b
        return l.w[mine] @ l.shift[o, mine], l.w[mine] ** 2 @ l.shift_v[o, mine]

    mean, variance = 0.0, 0.0
    for b in parties:
        products = [(-1, times(*part(b, o), *part(o, b))) for o in parties if o < b]
        if b != l.home:
            products.append((1, times(*part(b, l.home), l.shift_y[b], l.shift_yv[b])))
        for sign, (product, unknown) in products:
            mean, variance = mean + 2 * sign * product, variance + 4 * unknown
    return mean, variance


def r_squared(r, label, features, level=0.95, folds=5):
    """As in the reference; every product between parties over its own overlap, about the means there."""
    k, features, home = r.k, list(features), r.of_party[label]
    B = r.B - r.spurious
    sy2 = max(B[label, label], 3 * r.eta[label])
    of = r.of_party[features]
    own = of == home
    within = np.where(of[:, None] == of[None, :], B[np.ix_(features, features)], 0)
    with_label = B[features, label]
    at = [home] + sorted(set(of))
    Z, _ = prepared(r)
    gram = Z.T @ Z / k
    m = overlaps(r)[0]
    # A row's score is x'Nx for x = (label, sums of the parties), with products over the people that two parties share.
    N = (-1 + np.eye(len(at))) / m[np.ix_(at, at)]
    N[0] = N[:, 0] = [0] + [0.0 if b == home else 1 / m[b, home] for b in at[1:]]
    fold = np.arange(k) % folds
    scores, local, squares, of_gram, moved, of_moved = np.zeros(k), 0.0, 0.0, 0.0, 0.0, 0.0
    for f in range(folds):
        held = fold == f
        l = learn(r, label, features, np.flatnonzero(~held))
        w = l.A.T @ l.w * l.sy
        X = np.zeros((r.p, len(at)))
        X[label, 0] = 1
        for i, b in enumerate(at[1:], 1):
            X[np.array(features)[of == b], i] = w[of == b]
        x = Z[held] @ X
        scores[held] = np.einsum("ri,ij,rj->r", x, N, x)
        share = held.mean()
        S = N @ (X.T @ gram @ X)
        of_gram += share * 2 * np.trace(S @ S)
        local += share * (2 * w[own] @ with_label[own] - w @ within @ w + (l.w @ l.lost) ** 2 * l.sy**2)
        squares += share * (w @ w)
        mean, unknown = moved_by(l, at[1:])
        moved, of_moved = moved + share * mean * sy2, of_moved + share * unknown * sy2**2
    estimate = (local + scores.sum() - moved) / sy2
    whole = fit(r, label, features)
    of_moments = 4 * r.eta[label] ** 2 * (squares if own.any() else 0) + 2 * max(r.eta) ** 2 * squares**2
    n = float(np.min(m[home, at])) * r.rate[label]
    of_sampling = 4 * sy2**2 * max(estimate, 0) * (1 - min(estimate, 1)) ** 2 / n
    variance = (2 * k * max(of_gram, scores.var(ddof=1)) + of_moments + of_sampling + of_moved) / sy2**2
    variance += whole.r2_variance + 2 * (estimate * r.eta[label] / sy2) ** 2
    # Weights from four fifths of the rows miss a quarter more than those from all.
    estimate += whole.r2_shift + whole.missed / (folds - 1)
    lost = max(estimate, 0) * (1 - base.box_factor(r)[label] ** -2)
    return estimate - lost / 2, math.sqrt(variance + lost**2 / 12), student.ppf(0.5 + level / 2, max(k - 1, 3))
