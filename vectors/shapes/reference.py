"""Shapes of numeric columns: the bins of a histogram, and what it adds to the first round of a calibrated release.

Everything that a verifier recomputes is + - * / sqrt and comparisons of doubles, in the order written here.
`edges`, `cells`, `histogram` and `narrowed` are what crates/core/src/calibrated/bins.rs and shape.rs compute, to the bit.
"""

import math

GRID = 32  # steps of the uniform grid on [0, 1]
FINEST = 16  # bins about an anchor end at 2^-FINEST
SEPARATE = 2.0**-17  # edges are at least this far apart
TINY = 2.0**-30  # no edge is nearer to 0 than this

RUNS = (1, 2, 4, 8)  # lengths of runs of cells that may stand out
BESIDE = (1, 2)  # lengths of runs beside those marked that people who are missed may be in
CLEAR, WEAK = 4.0, 1.5  # noise deviations by which a run stands out anywhere, and beside others where people are missed
SEEN = 0.5  # share of the people who are not zeros that cells which stand out hold at least
MISSED = 2.5  # noise deviations by which people outside the marked cells are noticed
TAILS = 3.0  # the same of second moments outside the hull
REACH, WIDER = 3.0, 20.0  # half-width of the box in standard deviations, and what noise adds to it
NEED = 0.15  # noise of squares, as a share of the variance, that a box may leave rather than cut tails
DOUBT = 2.0  # what the histogram's variance is off by, of itself, when it is weighed against that of the sums
PAYS, EASY = 1.5, 1.0  # the box is narrowed only if it becomes narrower by this factor, larger where the sums see a spread


def edges(lo, hi, typical=None):
    """Edges between bins, in u = (clamp(x, lo, hi) - mid) / half; the outermost bins end at -1 and 1."""
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    anchors = [-1.0, 0.0, 1.0]
    for x in (0.0, typical):
        if x is not None and lo <= x <= hi:
            anchor = (x - mid) / half
            if all(abs(anchor - other) >= 2.0**-FINEST for other in anchors):
                anchors.append(anchor)
    found = [i / GRID for i in range(1 - GRID, GRID)]
    for anchor in anchors:
        step = 1 / GRID
        while step > 2.0**-FINEST:
            step = step / 2
            found += [anchor - step, anchor + step]
    kept = []
    for edge in sorted(found):
        if -1 < edge < 1 and abs(edge) >= TINY and (not kept or edge - kept[-1] >= SEPARATE):
            kept.append(edge)
    return kept


def cells(lo, hi, typical=None):
    """Intervals of the counts in order; if 0 can occur, the exact zeros are a cell without width after the bin they lie in."""
    e = edges(lo, hi, typical)
    found = list(zip([-1.0] + e, e + [1.0]))
    zero = None
    if lo <= 0 <= hi:
        z = (0 - (lo + hi) / 2) / ((hi - lo) / 2)
        zero = 1 + sum(edge <= z for edge in e)
        found.insert(zero, (z, z))
    return found, zero


def histogram(x, lo, hi, typical=None):
    """Count of each cell; x without missing values."""
    e = edges(lo, hi, typical)
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    counts = [0] * (len(e) + 1)
    zeros = 0
    for value in x:
        if value == 0 and lo <= 0 <= hi:
            zeros += 1
        else:
            u = (min(max(value, lo), hi) - mid) / half
            counts[sum(edge <= u for edge in e)] += 1
    if lo <= 0 <= hi:
        counts.insert(cells(lo, hi, typical)[1], zeros)
    return counts


def best_run(counts, taken, starts, lengths):
    """The run of cells not taken that stands out most: its sum over the root of its length, where it starts, its length."""
    best = (0.0, 0, 0)
    for length in lengths:
        root = math.sqrt(length)
        for at in starts(length):
            if at < 0 or at + length > len(counts) or True in taken[at : at + length]:
                continue
            total = 0.0
            for count in counts[at : at + length]:
                total += count
            if total / root > best[0]:
                best = (total / root, at, length)
    return best


def marked(counts, zero, sigma, people, people_sigma):
    """Cells that hold people: the run that stands out most, again and again. None if too many people are not found."""
    taken = [False] * len(counts)
    inside, size = 0.0, 0
    while True:
        clear, at, length = best_run(counts, taken, lambda length: range(len(counts) - length + 1), RUNS)
        if clear <= CLEAR * sigma:
            break
        for cell in range(at, at + length):
            taken[cell] = True
            inside += counts[cell]
        size += length
    zeros = 0.0 if zero is None else counts[zero]
    seen = inside - zeros if zero is not None and taken[zero] else inside
    if inside == 0 or seen < SEEN * (people - zeros):
        return None
    while people - inside > MISSED * math.sqrt(size * sigma * sigma + people_sigma * people_sigma):
        start, stop = taken.index(True), len(taken) - taken[::-1].index(True)
        weak, at, length = best_run(counts, taken, lambda length: (start - length, stop), BESIDE)
        if weak <= WEAK * sigma:
            break
        for cell in range(at, at + length):
            taken[cell] = True
            inside += counts[cell]
        size += length
    return taken


def narrowed(first, intervals, zero, counts, sigma, people, people_sigma, growth):
    """The box of the first round, narrowed by the histogram where the round's sums leave it much too wide.

    first: mean, error, variance (without inflation), noise of squares, low, high of the first round's sums.
    """
    mean, error, variance, square_error, low, high = first
    taken = marked(counts, zero, sigma, people, people_sigma)
    if taken is None:
        return low, high
    start, stop = taken.index(True), len(taken) - taken[::-1].index(True)
    left, right = intervals[start][0], intervals[stop - 1][1]
    if not left < right:
        return low, high
    within = list(zip(intervals[start:stop], counts[start:stop]))
    inside = total = 0.0
    for (a, b), count in within:
        inside += count
        total += count * ((a + b) / 2)
    inside = max(inside, people / 4)
    m = min(max(total / inside, left), right)
    sides = [0.0, 0.0]
    of_mean = of_squares = 0.0
    for (a, b), count in within:
        d = (a + b) / 2 - m
        square = d * d + (b - a) * (b - a) / 12
        sides[d > 0] += count * square
        of_mean += d * d
        of_squares += square * square
    below, above = max(sides[0] / inside, 0.0), max(sides[1] / inside, 0.0)
    v = below + above
    e = sigma * math.sqrt(of_mean) / inside
    nu = sigma * math.sqrt(of_squares) / inside
    # What the sums say of the squares that the hull misses.
    doubt = square_error * square_error + 4 * mean * mean * error * error
    if variance + (mean - m) * (mean - m) - v > TAILS * math.sqrt(doubt + nu * nu):
        return low, high
    trust = DOUBT * v * DOUBT * v / (DOUBT * v * DOUBT * v + doubt)
    more = max(variance - v, 0.0) * trust + nu
    wide = max(REACH + WIDER * math.sqrt(sigma / people), math.sqrt(NEED / square_error)) * growth
    a = max(low, min(left, m - wide * math.sqrt(2 * below + more) - 2 * e))
    b = min(high, max(right, m + wide * math.sqrt(2 * above + more) + 2 * e))
    return (a, b) if a < b and (PAYS + EASY * variance / math.sqrt(doubt)) * (b - a) < high - low else (low, high)
