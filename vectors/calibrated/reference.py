"""The calibrated release and its learner in floating point: what the Rust learner is checked against.

For checking only; not safe for real data (float noise, no ledger). The release is that of the design. The learner starts
from the design's (section 4.7) and improves it; docs/LEARNERS.md explains every step and names what was gained.

release(U, parties, mu, rng): U is n x p; numeric columns mapped to [-1, 1] by public bounds, levels 0/1. parties is a list of
[(columns, kind), ...] with kind "num" (one column) or "cat" (all levels of a column; one column if there are two levels).
"""

import math
from types import SimpleNamespace

import numpy as np
import scipy.sparse
from scipy.optimize import brentq
from scipy.stats import norm
from scipy.stats import t as student

B2 = (11 + 5 * math.sqrt(5)) / 8
TAU = 0.5
GROWTH_START = 200.0

CENTRE_DOUBT = 0.05  # by how much, in standard deviations, clipping may move a mean
PI = (1.0, 0.5, 0.25, 0.1)  # shares of features with an effect
LARGEST_EFFECT = 0.3  # largest prior variance of one effect
SHARED = 0.5  # prior probability that effects elsewhere are like those in the label's party
NOTHING = 0.1  # prior probability that no feature elsewhere has an effect
UPPER = 0.8  # which quantile of the prior variance of correlations the intervals use
BETWEEN = (1 / 12, 1 / 8)  # loss of a correlation between parties beyond the loss of spread: mean and sd, per unit of clipping
WITHIN = (0.3, 0.25)  # the same within a party
RARE = (1.0, 0.5)  # the same for what a rare level loses
SPURIOUS = 0.5  # sd of the correction for covariances that the ball makes up
MOST = 0.98  # largest share of the label that one party explains


def mu_of(epsilon, delta=1e-5):
    def excess(s):
        return norm.cdf(1 / (2 * s) - epsilon * s) - math.exp(epsilon) * norm.cdf(-1 / (2 * s) - epsilon * s) - delta

    return 1 / brentq(excess, 1e-3, 1e5)


# ---------------------------------------------------------------- release


def ball(x, radius):
    return x * np.minimum(1, radius / np.maximum(np.linalg.norm(x, axis=1), 1e-12))[:, None]


def standardise(u, numeric, change, mu, rng):
    """One round: mean, spread, noise of the mean, share of the variance that is not noise."""
    n, d = u.shape
    of_sum = math.sqrt(change) / mu
    of_square = of_sum / math.sqrt(B2)
    mean = (u.sum(0) + rng.normal(0, of_sum, d)) / n
    square = ((u**2).sum(0) + rng.normal(0, of_square, d)) / n
    mean = np.clip(mean, np.where(numeric, -1, 0), 1)
    inflation = np.where(numeric, of_square, of_sum) / n
    variance = np.where(numeric, np.clip(square - mean * mean, 0, 1), mean * (1 - mean)) + inflation
    return mean, np.sqrt(variance), of_sum / n, 1 - inflation / variance


def box(mean, sd, error, numeric, reach):
    reach = np.where(numeric, reach, np.inf)
    low = np.maximum(np.where(numeric, -1.0, 0.0), mean - reach * sd - 2 * error)
    return low, np.minimum(1.0, mean + reach * sd + 2 * error)


def release(U, parties, mu, rng):
    n, p = U.shape
    widest = max(sum(len(columns) for columns, _ in party) for party in parties)
    local = float(np.clip((GROWTH_START * widest / (n * mu)) ** 2, 0.05, 0.5))
    mu_1, mu_2, mu_3, mu_4 = (mu * math.sqrt(share) for share in (local / 4, local / 4, local / 2, 1 - local))
    names = "noise centre scale low high mean eta resolved cap mean_error centre_error s1 r1 s2 r2 numeric".split()
    r = SimpleNamespace(n=n, p=p, parties=[], B=np.zeros((p, p)), **{name: np.zeros(p) for name in names})
    r.spurious, r.believe_all = np.zeros((p, p)), False
    V = np.empty((n, p))
    for party in parties:
        P = [j for columns, _ in party for j in columns]
        r.parties.append(P)
        u, d = U[:, P], len(P)
        numeric = np.concatenate([np.full(len(columns), kind == "num") for columns, kind in party])
        change = sum(4 if kind == "num" else 1 if len(columns) == 1 else 2 for columns, kind in party)
        effective = d - sum(kind != "num" and len(columns) > 1 for columns, kind in party)
        growth = max(1.0, math.sqrt(mu * math.sqrt(n / effective) / GROWTH_START))
        m1, s1, e1, r1 = standardise(u, numeric, change, mu_1, rng)
        low, high = box(m1, s1, e1, numeric, 3 * growth)
        a = np.where(numeric, (low + high) / 2, 0.0)
        h = np.where(numeric, np.maximum((high - low) / 2, 1e-6), 1.0)
        m2, s2, e2, r2 = standardise(np.clip((u - a) / h, -1, 1), numeric, change, mu_2, rng)
        centre, scale, error = a + h * m2, np.maximum(h * s2, 1e-6), h * e2
        low, high = box(centre, scale, error, numeric, 3 * growth)
        r.s1[P], r.r1[P], r.s2[P], r.r2[P], r.numeric[P] = s1, r1, scale, r2, numeric
        resolved = np.where(numeric, r2, r2 * (scale / 0.5) ** 2)
        scale = np.where(numeric, scale, 0.5)
        reach = math.sqrt(np.sum((np.maximum(high - centre, centre - low) / scale) ** 2))
        R = min(growth * math.sqrt(effective), max(math.sqrt(effective), reach))
        x = ball((np.clip(u, low, high) - centre) / scale, R)
        off = (1 + TAU**2) * R * R / mu_3
        N = np.triu(rng.normal(0, off, (d, d)), 1)
        N = N + N.T + np.diag(rng.normal(0, math.sqrt(2) * off, d))
        of_mean = off / (TAU * R)
        mean = np.clip((x.sum(0) + rng.normal(0, of_mean, d)) / n, (low - centre) / scale, (high - centre) / scale)
        r.B[np.ix_(P, P)] = (x.T @ x + N) / n - np.outer(mean, mean)
        V[:, P] = ball(x - mean, R)
        r.noise[P], r.eta[P], r.resolved[P], r.cap[P] = 2 * R / mu_4, off / n, resolved, np.where(numeric, 1.5, 2.0)
        r.centre[P], r.scale[P], r.low[P], r.high[P], r.mean[P] = centre, scale, low, high, mean
        r.centre_error[P], r.mean_error[P] = error, of_mean / n
        r.spurious[np.ix_(P, P)] = spurious(party, P, centre, resolved, R)
    r.k = int(min(n, max(3 * p, n / np.median(r.noise) ** 2)))
    signs = (rng.choice([-1.0, 1.0], n), (rng.integers(0, r.k, n), np.arange(n)))
    r.Z = scipy.sparse.csr_matrix(signs, shape=(r.k, n)) @ V + rng.normal(0, 1, (r.k, p)) * r.noise
    return r


def from_rows(Z, n, noise):
    """Mixed rows alone: every column its own party, no centre, no moments."""
    k, p = Z.shape
    zero = np.zeros(p)
    variance = np.maximum(((Z**2).sum(0) - k * noise**2) / n, 0)
    return SimpleNamespace(
        n=n, k=k, p=p, parties=[[j] for j in range(p)], Z=Z, noise=noise, B=np.diag(variance),
        eta=(variance * n / k + noise**2) * math.sqrt(k) / n, resolved=zero, cap=zero + 1, numeric=zero + 1,
        centre=zero, scale=zero + 1, low=zero - 1, high=zero + 1, mean=zero, centre_error=zero, mean_error=zero,
        s1=zero + 1, s2=zero + 1, r1=zero + 1, r2=zero + 1, spurious=np.zeros((p, p)), believe_all=True,
    )  # fmt: skip


# ---------------------------------------------------------------- what clipping did


def spurious(party, P, centre, resolved, R):
    """Covariances that the ball makes up between independent levels of different columns: their tails are cut together."""
    place = {j: i for i, j in enumerate(P)}
    cases, mean, variance = [], [], []  # of each column: values with probabilities, or none; mean and variance of |x|^2
    for columns, kind in party:
        own = [place[j] for j in columns]
        if kind == "num":
            size = min(max(resolved[own[0]], 0.0), 1.0)
            cases.append(None)
            mean.append(size)
            variance.append(2 * size * size)
            continue
        share = np.clip(centre[own], 0, 1)
        share = share / max(share.sum(), 1.0)
        values = np.vstack([np.eye(len(own)), np.zeros((1, len(own)))])
        chance = np.append(share, 1 - share.sum())
        x = (values - centre[own]) / 0.5
        size = (x**2).sum(1)
        cases.append((own, x, chance, size))
        mean.append(chance @ size)
        variance.append(chance @ size**2 - (chance @ size) ** 2)
    found = np.zeros((len(P), len(P)))
    for a in range(len(cases)):
        for b in range(a):
            if cases[a] is None or cases[b] is None:
                continue
            (own_a, x_a, chance_a, size_a), (own_b, x_b, chance_b, size_b) = cases[a], cases[b]
            others = [c for c in range(len(cases)) if c not in (a, b)]
            m, s = sum(mean[c] for c in others), math.sqrt(3 * sum(variance[c] for c in others))
            product, left, right = np.zeros((len(own_a), len(own_b))), np.zeros(len(own_a)), np.zeros(len(own_b))
            for rest, weight in ((max(m - s, 0.0), 1 / 6), (m, 2 / 3), (m + s, 1 / 6)):
                for i in range(len(chance_a)):
                    for j in range(len(chance_b)):
                        chance = weight * chance_a[i] * chance_b[j]
                        f = min(1.0, R / math.sqrt(max(size_a[i] + size_b[j] + rest, 1e-300)))
                        product += chance * f * f * np.outer(x_a[i], x_b[j])
                        left += chance * f * x_a[i]
                        right += chance * f * x_b[j]
            made_up = product - np.outer(left, right)
            found[np.ix_(own_a, own_b)] = made_up
            found[np.ix_(own_b, own_a)] = made_up.T
    return found


def box_factor(r):
    """Standard deviation before the box over that after it, shrunk by its own noise (prior sd 0.1)."""
    r1, r2 = np.maximum(r.r1, 0.1), np.maximum(r.r2, 0.1)
    log = np.clip(0.5 * np.log(r1 * r.s1**2 / (r2 * r.s2**2)), 0, 0.4)
    error = (((1 - r1) / r1) ** 2 + ((1 - r2) / r2) ** 2) / 4
    return np.where(r.numeric > 0, np.exp(log * 0.01 / (0.01 + error)), 1.0)


def attenuation(r):
    """Standard deviation before clipping over that after it: ball, shrunk by its own noise (prior sd 0.2), times box."""
    ball_part = np.clip(np.sqrt(np.maximum(r.resolved, 0) / np.maximum(r.B.diagonal(), 3 * r.eta)), 1, r.cap)
    return np.exp(np.log(ball_part) * 0.04 / (0.04 + scale_error(r))) * box_factor(r)


def scale_error(r):
    """Relative variance of scale times attenuation."""
    r2 = np.maximum(r.r2, 0.1)
    of_moments = 2 * (r.eta / np.maximum(r.B.diagonal(), 3 * r.eta)) ** 2
    return (of_moments + ((1 - r2) / r2) ** 2) / 4


def believable_variance(r):
    """Variance of each column, from the second round and the moments, shrunk towards 0 as far as neither knows it."""
    if r.believe_all:
        return np.full(r.p, np.inf)
    round_precision = 1 / np.maximum(((1 - r.r2) * (r.s2 / r.scale) ** 2) ** 2, 1e-300)
    moment_precision = 1 / (2 * r.eta**2)
    precision = round_precision + moment_precision
    found = np.maximum((r.resolved * round_precision + r.B.diagonal() * moment_precision) / precision, 0)
    return found**3 / (found**2 + 1 / precision)


def kurtosis(r):
    """Excess kurtosis of a level."""
    share = np.clip(r.centre, 0, 1)
    q = np.maximum(share * (1 - share), 0.01)
    return np.where(r.numeric > 0, 0.0, np.maximum((1 - 6 * q) / q, 0))


def centres(r):
    """Mean of each column: what was standardised by, and the moments' correction as far as noise and clipping let it be believed."""
    doubt = (r.scale * r.mean_error) ** 2 + (CENTRE_DOUBT * r.scale) ** 2 * np.clip(r.resolved, 0, 1)
    trust = r.centre_error**2 / (r.centre_error**2 + doubt + 1e-30)
    return r.centre + trust * r.scale * r.mean


# ---------------------------------------------------------------- learner


def shrinkage(x, v, grid):
    """Posterior factors of x ~ N(theta, v), theta ~ N(0, g), g averaged over a grid by its likelihood."""
    s = grid[:, None] + v
    log = -0.5 * np.sum(np.log(s) + x * x / s, 1)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    return weight @ (grid[:, None] / s)


def sparse_means(x, v, own_x, own_v):
    """Posterior means of x ~ N(theta, v), theta ~ pi N(0, g) + (1 - pi) at 0, (pi, g) averaged over a grid."""

    def likelihood(x, v, pi, g):
        slab = math.log(pi) - 0.5 * (np.log(g + v) + x * x / (g + v))
        if pi == 1:
            return slab, slab
        return slab, np.logaddexp(slab, math.log(1 - pi) - 0.5 * (np.log(v) + x * x / v))

    prior, here, there, means = [], [], [], []
    for pi in PI:
        for g in min(2 / (len(x) * pi), LARGEST_EFFECT) * np.geomspace(1e-2, 1, 16):
            slab, both = likelihood(x, v, pi, g)
            prior.append(pi)
            here.append(both.sum())
            there.append(likelihood(own_x, own_v, pi, g)[1].sum())
            means.append(np.exp(slab - both) * g / (g + v) * x)
    prior = np.append(np.array(prior) / sum(prior) * (1 - NOTHING), NOTHING)
    here.append(-0.5 * np.sum(np.log(v) + x * x / v))
    there.append(-0.5 * np.sum(np.log(own_v) + own_x * own_x / own_v))
    means.append(0 * x)
    here, there = np.array(here), np.array(there)
    like = np.exp(there - there.max())
    weight = prior * np.exp(here - here.max()) * (1 - SHARED + SHARED * like / (prior @ like))
    return weight / weight.sum() @ np.array(means)


def cap(means, block):
    for b in set(block):
        of_party = block == b
        explained = means[of_party] @ means[of_party]
        if explained > MOST:
            means[of_party] *= math.sqrt(MOST / explained)
    return means


def learn(r, label, features, rows=None):
    """Posterior mean weights of whitened features, and all that intervals need."""
    B = r.B - r.spurious
    Z = r.Z if rows is None else r.Z[rows]
    k = len(Z)
    n, d = r.n * k / r.k, len(features)
    place = {j: i for i, j in enumerate(features)}
    sy = math.sqrt(max(B[label, label], 3 * r.eta[label]))
    ty = n / k + r.noise[label] ** 2 / sy**2
    A = np.zeros((d, d))
    lam, t, c, eta = np.zeros((4, d))
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
        values = np.maximum(values, 2 * e * math.sqrt(q))
        rows_, columns = slice(at, at + q), [place[j] for j in P]
        A[rows_, columns] = (vectors / np.sqrt(values)).T
        lam[rows_], t[rows_], block[rows_], eta[rows_] = values, n / k + r.noise[P[0]] ** 2 / values, b, e
        if label in members:
            own[rows_] = True
            c[rows_] = A[rows_, columns] @ B[P, label] / sy
        at += q
    F = Z[:, features] @ A.T
    F = F / np.sqrt((F * F).sum(0))
    y = Z[:, label] / np.linalg.norm(Z[:, label])
    apart = block[:, None] != block[None, :]
    root = np.sqrt(t)
    K = np.where(apart, (F.T @ F) * np.outer(root, root) * k / n, 0)
    V = np.outer(t, t) * k / n**2
    c = np.where(own, c, (F.T @ y) * root * math.sqrt(ty) * k / n)
    v = np.where(own, eta**2 / lam * (1 / sy**2 + 1 / lam), t * ty * k / n**2)
    factors = shrinkage(c, v, 2 / d * np.geomspace(1e-2, 1, 16))
    means = cap(c * factors, block)

    # Correlations between parties, about nothing or about what the label implies.
    identity, resolved, prior, upper, Kbar = np.eye(d), np.zeros((d, d)), 0.0, 0.0, np.zeros((d, d))
    if apart.any():
        pairs = np.triu(apart)
        implied = np.where(apart, np.outer(means, means), 0)
        grid = 1 / d * np.geomspace(1e-3, 1, 16)
        s = grid[:, None] + V[pairs]
        logs = [-0.5 / (1 + 2 * d / k) * np.sum(np.log(s) + (K - i * implied)[pairs] ** 2 / s, 1) for i in (0, 1)]
        weight = np.exp(np.array(logs) - np.max(logs))
        weight /= weight.sum()
        of_grid = weight.sum(0)
        prior = float(of_grid @ grid)
        upper = grid[min(np.searchsorted(np.cumsum(of_grid), UPPER), len(grid) - 1)]
        about = weight[1].sum() * implied
        K = K - about
        g = prior / 2
        resolved = np.where(apart, g / (g + V), 0)

        def objective(M):
            try:
                L = np.linalg.cholesky(identity + M)
            except np.linalg.LinAlgError:
                return np.inf
            return 0.5 * np.sum(((M - K) ** 2 / V)[pairs]) - np.log(np.diag(L)).sum() / g

        M = resolved * K
        M = M * min(1, 0.9 / max(-np.linalg.eigvalsh(M)[0], 1e-9))
        value = objective(M)
        for _ in range(30):
            step = resolved * (K + V / g * np.where(apart, np.linalg.inv(identity + M) + M, 0)) - M
            length = 1.0
            while length > 1e-3 and not objective(M + length * step) < value:
                length *= 0.5
            if length <= 1e-3:
                break
            M = M + length * step
            before, value = value, objective(M)
            if before - value < 1e-4 * (1 + abs(before)):
                break
        Kbar = M + about

    # Covariances of other parties' features with the label, given those of its own party.
    other = ~own
    if other.any():
        base = Kbar[np.ix_(other, own)] @ means[own]
        spread = np.where(apart, (prior / 2) * V / (prior / 2 + V), 0)
        error = v[other] + spread[np.ix_(other, own)] @ means[own] ** 2
        means = means.copy()
        means[other] = base + sparse_means(c[other] - base, error, c[own], v[own])
        means = cap(means, block)

    implied = np.where(apart, np.outer(means, means), 0)
    rest = identity - np.where(apart, 0, np.outer(means, means))
    L = np.linalg.cholesky(rest)
    X = np.linalg.solve(L, np.linalg.solve(L, Kbar - implied).T)
    smallest = np.linalg.eigvalsh((X + X.T) / 2)[0]
    trust = min(1, MOST / max(-smallest, 1e-9))
    H = identity + implied + trust * (Kbar - implied)
    w = np.linalg.solve(H, means)
    return SimpleNamespace(
        n=n, k=k, d=d, sy=sy, ty=ty, A=A, lam=lam, t=t, eta=eta, block=block, own=own, apart=apart, cosines=F.T @ F,
        c=c, v=v, factors=factors, means=means, K=K, V=V, resolved=resolved, upper=upper, trust=trust, H=H, w=w,
    )  # fmt: skip


def doubts(r, l, label, features):
    """Unknown losses of correlations by clipping: (mean, sd, effect on c of b, effect on H) for each."""
    e = attenuation(r) - 1
    ef, ey, numeric = e[features], e[label], r.numeric > 0
    A, H, own, d = l.A, l.H, l.own, l.d
    inverse = np.linalg.inv(A)
    G = inverse @ inverse.T
    sd = np.sqrt(np.diag(G))
    cross = np.where(l.apart, H - np.eye(d), 0)
    cross = cross * (1 - np.minimum(cross**2, 1))
    c = np.clip(H @ l.w, -1, 1)
    far = ((1 - c**2) * ~own)[:, None]
    found = []
    for j in range(d):
        E = np.outer(A[:, j], inverse[j]) * ef[j]
        N = E @ cross
        found.append((BETWEEN[0] * numeric[features[j]], BETWEEN[1], far * (E @ H), N + N.T))
    found.append((BETWEEN[0] * numeric[label], BETWEEN[1], far * H * ey, np.zeros((d, d))))
    for b in sorted(set(l.block)):
        P = [j for j in range(d) if np.any(A[l.block == b, j] != 0)]
        mine = own[l.block == b][0]
        S, N = np.zeros((d, d)), np.zeros((d, d))
        for i in P:
            for j in P:
                if i != j:
                    S[i, j] = G[i, j] * (ef[i] + ef[j]) * (1 - min((G[i, j] / (sd[i] * sd[j])) ** 2, 1))
            if mine:
                N[i, i] = (ef[i] + ey) * (1 - min(((r.B - r.spurious)[features[i], label] / (l.sy * sd[i])) ** 2, 1))
        if len(P) > 1 or mine:
            found.append((*WITHIN, A @ N @ inverse @ H, A @ S @ A.T))
    excess = kurtosis(r)
    r_label = np.clip(inverse @ c / sd, -1, 1)
    loss = np.minimum((ey * excess[features] + ef * excess[label]) * r_label**2 / 3, 0.5)
    found.append((*RARE, (~own)[:, None] * ((A * loss) @ inverse @ H), np.zeros((d, d))))
    return found


def made_up(r, l, label, features):
    """For each party, what the covariances that its ball made up do to c and to Hw."""
    effects = []
    for P in r.parties:
        mine = np.isin(features, P)
        inside = r.spurious[np.ix_(features, features)] * np.outer(mine, mine)
        with_label = r.spurious[features, label] * mine / l.sy
        if np.any(inside) or np.any(with_label):
            effects.append((l.A @ with_label, l.A @ inside @ l.A.T @ l.w))
    return effects


def fit(r, label, features, level=0.95):
    """Weights to predict with, and unshrunk ones with intervals and the parts of their variances; in standardised units."""
    l = learn(r, label, features)
    n, k, d, t, ty, w, H, own, apart = l.n, l.k, l.d, l.t, l.ty, l.w, l.H, l.own, l.apart
    theta = l.resolved * l.trust
    inverse = np.linalg.inv(H)
    explained = float(np.clip(l.means @ w, 0, 1))
    # The second moment of w: shrunk weights understate what errors in H are multiplied by.
    P = (inverse * (l.v * l.factors)) @ inverse
    P *= min(1, 0.5 * (1 - explained) / max(np.trace(P @ H), 1e-300))
    w2 = w * w + np.diag(P)
    total = (n / k) * (H - np.eye(d)) + np.diag(t)
    D, Dm, local = np.zeros((3, d))
    for a in range(d):
        u, counts, same = theta[a] * w, 0.0 if own[a] else 1.0, l.block == l.block[a]
        extra = theta[a] ** 2 * np.diag(P)
        D[a] = k / n**2 * t[a] * (max(counts * ty - 2 * counts * (n / k) * (u @ l.means) + u @ total @ u, 0) + extra @ t)
        Dm[a] = (max(counts - 2 * counts * (u @ l.means) + u @ H @ u, 0) + extra.sum()) / k
        local[a] = l.eta[a] ** 2 / l.lam[a] * (
            (1 / l.sy**2 if own[a] else 0) + np.sum(w2[same] / l.lam[same]) + w2[a] / l.lam[a]
        )
    share = np.minimum(Dm / np.maximum(D, 1e-300), 1)
    g = l.upper
    size = (g / (g + l.V) * l.K) ** 2 + g * l.V / (g + l.V) if g > 0 else 0 * l.K
    hidden = np.where(apart, (1 - theta) ** 2 * size, 0)

    def hidden_covariance(hidden):
        S = hidden * np.outer(w, w)
        S[np.diag_indices(d)] = hidden @ w2
        return S

    of_mixing = np.minimum(np.outer(n / k / t, n / k / t), 1)
    rho = np.where(np.outer(~own, ~own), l.cosines, 0)
    rho[np.diag_indices(d)] = 1.0
    back = l.A.T * l.sy
    found = doubts(r, l, label, features)
    J = [inverse @ (N_c - N_h) for _, _, N_c, N_h in found]
    T = back @ (np.eye(d) + sum(mean * j for (mean, *_), j in zip(found, J)))
    b = T @ (inverse @ l.c)
    q = ((T + 2 * RARE[0] * back @ J[-1]) @ inverse).T  # the loss of rare levels is cubic in c

    def variance(S):
        return np.sum(q * (S @ q), 0)

    scaled = q * np.sqrt(D)[:, None]
    sketch = np.sum(scaled * (rho @ scaled), 0)
    sketch_mixing = np.clip(np.sum((share[:, None] * scaled) * (rho @ scaled), 0), 0, sketch)
    unseen = variance(hidden_covariance(hidden))
    unseen_mixing = np.clip(variance(hidden_covariance(hidden * of_mixing)), 0, unseen)
    # Where noise hides the spread of a column, little of what seems to go with it can be believed.
    believed = np.minimum(1.0, believable_variance(r) / np.maximum(r.B.diagonal(), 3 * r.eta))
    weights = believed[features] * believed[label] * (T @ w)
    of_scale = scale_error(r)
    parts = np.array([
        (sketch - sketch_mixing) + (unseen - unseen_mixing) + variance(np.diag(local))
        + weights**2 * (of_scale[features] + of_scale[label]),
        sketch_mixing + unseen_mixing,
        variance(H) * (1 - explained) / n,
        sum((sd * (back @ (j @ w))) ** 2 for (_, sd, *_), j in zip(found, J))
        + sum((SPURIOUS * (back @ (inverse @ (on_c - on_hw)))) ** 2 for on_c, on_hw in made_up(r, l, label, features)),
    ])  # fmt: skip
    se = np.sqrt(parts.sum(0))
    reach = student.ppf(0.5 + level / 2, max(k - 1, 3)) * se
    losses = [(mean, sd, 2 * w @ (N_c @ w) - w @ N_h @ w) for mean, sd, N_c, N_h in found]
    losses += [(0.0, SPURIOUS, 2 * w @ on_c - w @ on_hw) for on_c, on_hw in made_up(r, l, label, features)]
    return SimpleNamespace(
        weights=weights, b=b, se=se, low=b - reach, high=b + reach, parts=parts / parts.sum(0), explained=explained,
        r2_shift=sum(mean * x for mean, _, x in losses), r2_variance=sum((sd * x) ** 2 for _, sd, x in losses),
    )  # fmt: skip


def original(r, weights, label, features):
    """Slopes and intercept in the units of U."""
    scale = attenuation(r) * r.scale
    slopes = weights * scale[label] / scale[features]
    centre = centres(r)
    return slopes, centre[label] - centre[features] @ slopes


def predict(r, weights, U, label, features):
    slopes, intercept = original(r, weights, label, features)
    inputs = np.clip(U[:, features], r.low[features], r.high[features])
    return np.clip(intercept + inputs @ slopes, r.low[label], r.high[label])


def r_squared(r, label, features, level=0.95, folds=5):
    """Explained share of the label's variance on fresh data, by cross-fitting; its standard error; the quantile."""
    n, k = r.n, r.k
    features = list(features)
    B = r.B - r.spurious
    sy2 = max(B[label, label], 3 * r.eta[label])
    party = np.zeros(r.p, int)
    for b, P in enumerate(r.parties):
        party[P] = b
    of = party[features]
    own = of == party[label]
    within = np.where(of[:, None] == of[None, :], B[np.ix_(features, features)], 0)
    with_label = B[features, label]
    parties = sorted(set(of))
    gram = r.Z.T @ r.Z / k
    # A row's score is x'Nx for x = (label, sums of the parties).
    N = -1 + np.eye(len(parties) + 1)
    N[0] = N[:, 0] = [0] + [0.0 if b == party[label] else 1.0 for b in parties]
    fold = np.arange(k) % folds
    scores, local, squares, of_gram = np.zeros(k), 0.0, 0.0, 0.0
    for f in range(folds):
        held = fold == f
        l = learn(r, label, features, np.flatnonzero(~held))
        w = l.A.T @ l.w * l.sy
        X = np.zeros((r.p, len(parties) + 1))
        X[label, 0] = 1
        for i, b in enumerate(parties):
            X[np.array(features)[of == b], i + 1] = w[of == b]
        x = r.Z[held] @ X
        scores[held] = np.einsum("ri,ij,rj->r", x, N, x)
        share = held.mean()
        S = N @ (X.T @ gram @ X)
        of_gram += share * 2 * np.trace(S @ S)
        local += share * (2 * w[own] @ with_label[own] - w @ within @ w)
        squares += share * (w @ w)
    estimate = (local + scores.sum() / n) / sy2
    whole = fit(r, label, features)
    of_moments = 4 * r.eta[label] ** 2 * (squares if own.any() else 0) + 2 * max(r.eta) ** 2 * squares**2
    of_sampling = 4 * sy2**2 * max(estimate, 0) * (1 - min(estimate, 1)) ** 2 / n
    variance = (2 * k * max(of_gram, scores.var(ddof=1)) / n**2 + of_moments + of_sampling) / sy2**2
    variance += whole.r2_variance + 2 * (estimate * r.eta[label] / sy2) ** 2
    estimate += whole.r2_shift
    lost = max(estimate, 0) * (1 - box_factor(r)[label] ** -2)
    return estimate - lost / 2, math.sqrt(variance + lost**2 / 12), student.ppf(0.5 + level / 2, max(k - 1, 3))
