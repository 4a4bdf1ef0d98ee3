"""Writes shapes.json: cells of columns, and boxes of the first stage narrowed by noised counts.

Needs nothing but Python. All numbers are doubles that JSON holds exactly.
"""

import json
import math
import random

from reference import cells, histogram, narrowed

COLUMNS = [(-1.0, 1.0, None), (0.0, 4.0, None), (18.0, 100.0, None), (-3.0, 1000.0, 2.5), (0.0, 4000.0, 100.0), (-1e-7, 1.0, None)]


def values(random, kind, lo, hi, n):
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    if kind == "narrow":
        centre, sd = mid + half * random.uniform(-0.9, 0.9), half * 10 ** random.uniform(-4, -1)
        return [random.gauss(centre, sd) for _ in range(n)]
    if kind == "skewed":
        scale = half * 10 ** random.uniform(-3, -0.3)
        return [lo + scale * math.exp(random.gauss(0, 1)) for _ in range(n)]
    if kind == "zeros":
        return [0.0 if random.random() < 0.7 else abs(random.gauss(0, half / 50)) for _ in range(n)]
    return [random.uniform(lo, hi) for _ in range(n)]


def case(seed):
    rng = random.Random(seed)
    lo, hi, typical = rng.choice(COLUMNS)
    n = rng.choice([300, 3000, 12000])
    x = values(rng, rng.choice(["narrow", "skewed", "zeros", "even"]), lo, hi, n)
    sigma = rng.choice([3, 20, 100])
    intervals, zero = cells(lo, hi, typical)
    counts = [count + round(rng.gauss(0, sigma)) for count in histogram(x, lo, hi, typical)]
    u = [(min(max(v, lo), hi) - (lo + hi) / 2) / ((hi - lo) / 2) for v in x]
    mean = sum(u) / n + rng.gauss(0, sigma / n)
    square_error, error = 2.0 * sigma / n, 1.5 * sigma / n
    variance = min(max(sum(v * v for v in u) / n - mean * mean + rng.gauss(0, square_error), 0.0), 1.0)
    growth = rng.choice([1.0, 1.3])
    reach = 3 * growth * math.sqrt(variance + square_error) + 2 * error
    first = (mean, error, variance, square_error, max(mean - reach, -1.0), min(mean + reach, 1.0))
    people, people_sigma = max(float(n + round(rng.gauss(0, sigma))), 1.0), float(sigma + 1)
    low, high = narrowed(first, intervals, zero, [float(c) for c in counts], float(sigma), people, people_sigma, growth)
    return {
        "lo": lo, "hi": hi, "typical": typical, "counts": counts, "sigma": float(sigma), "people": people,
        "people_sigma": people_sigma, "growth": growth, "first": first, "box": [low, high],
    }  # fmt: skip


if __name__ == "__main__":
    columns = [{"lo": lo, "hi": hi, "typical": typical, "cells": cells(lo, hi, typical)[0], "zero": cells(lo, hi, typical)[1]} for lo, hi, typical in COLUMNS]
    with open("shapes.json", "w") as file:
        json.dump({"columns": columns, "boxes": [case(seed) for seed in range(120)]}, file, indent=None, separators=(",", ":"))
        file.write("\n")
