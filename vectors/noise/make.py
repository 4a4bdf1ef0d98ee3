#!/usr/bin/env python3
"""Makes the vectors beside this file: samples from independent exact samplers, and replays.

PyPI packages: gmpy2==2.3.2 opendp==0.16.0

    python -m venv venv && venv/bin/pip install gmpy2==2.3.2 opendp==0.16.0
    venv/bin/python vectors/noise/make.py            # all files; a few minutes
    venv/bin/python vectors/noise/make.py replay     # one of: mpfr opendp replay

mpfr.json and replay.json come out the same every time. opendp.json does not: OpenDP takes its entropy
from the operating system and cannot be seeded.
"""

import hashlib
import json
import pathlib
import struct
import sys
from bisect import bisect_right
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, floor

HERE = pathlib.Path(__file__).resolve().parent


def histogram(sigma, bin_width, values):
    """Counts of ⌊value / bin_width⌋, as a list that starts at bin `first_bin`."""
    counts = Counter(value // bin_width for value in values)
    first, last = min(counts), max(counts)
    return {
        "sigma": sigma,
        "bin_width": bin_width,
        "first_bin": first,
        "counts": [counts[b] for b in range(first, last + 1)],
    }


def write(name, content):
    """One histogram or replay a line, so that a change of one shows as one changed line."""
    lists = {k: v for k, v in content.items() if isinstance(v, list)}
    head = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in content.items() if k not in lists]
    body = [
        f" {json.dumps(k)}: [\n" + ",\n".join("  " + json.dumps(item) for item in v) + "\n ]"
        for k, v in lists.items()
    ]
    (HERE / name).write_text("{\n" + ",\n".join(head + body) + "\n}\n")


# MPFR: mpfr_nrandom, an exact normal deviate rounded correctly to the working precision. At 192 bits
# the second rounding, to an integer, can differ from rounding the real number with probability < 2^-130.


def make_mpfr():
    import gmpy2

    gmpy2.get_context().precision = 192
    histograms = []
    for seed, (sigma, bin_width) in enumerate([(1, 1), (3, 1), (17, 1), (1_000_003, 100_000)]):
        state = gmpy2.random_state(20160101 + seed)

        def sample():
            return int(gmpy2.rint_round(sigma * gmpy2.mpfr_nrandom(state)))

        histograms.append(histogram(sigma, bin_width, (sample() for _ in range(4_000_000))))
    write(
        "mpfr.json",
        {
            "source": "round(sigma * mpfr_nrandom) at 192 bits",
            "gmpy2": gmpy2.version(),
            "mpfr": gmpy2.mpfr_version(),
            "histograms": histograms,
        },
    )


# OpenDP: the discrete Gaussian of Canonne, Kamath & Steinke 2020, exact over the integers, by another
# algorithm. It is not the rounded Gaussian: its variance is sigma^2, not sigma^2 + 1/12. At sigma = 1000
# the two variances differ by 8e-8 of their size, 1/6000 of a standard error of 4 million samples.


def make_opendp():
    import opendp
    import opendp.prelude as dp

    dp.enable_features("contrib")
    sigma, block = 1000, 100_000
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    measurement = dp.m.make_gaussian(*space, scale=float(sigma))
    values = (value for _ in range(40) for value in measurement([0] * block))
    from importlib.metadata import version

    write(
        "opendp.json",
        {
            "source": "make_gaussian on i64: exact discrete Gaussian",
            "opendp": version("opendp"),
            "histograms": [histogram(sigma, 100, values)],
        },
    )


# Replays: the algorithm once more, on the same random words as the crate, but with deviates as exact
# fractions of unbounded integers, and thresholds from the decimal module. It reads ChaCha20 words as the crate does, so the answers must agree
# number by number.


def chacha20_words(key):
    """The 64-bit words of the ChaCha20 key stream: zero nonce, 64-bit block counter from 0."""
    constants = struct.unpack("<4I", b"expand 32-byte k")
    key_words = struct.unpack("<8I", key)
    rounds = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
              (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]  # fmt: skip
    mask = 0xFFFFFFFF
    counter = 0
    while True:
        start = [*constants, *key_words, counter & mask, counter >> 32, 0, 0]
        s = start.copy()
        for _ in range(10):
            for a, b, c, d in rounds:
                for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    s[x] = (s[x] + s[y]) & mask
                    v = s[z] ^ s[x]
                    s[z] = ((v << turn) | (v >> (32 - turn))) & mask
        out = [(x + y) & mask for x, y in zip(s, start)]
        for low, high in zip(out[::2], out[1::2]):
            yield low | high << 32
        counter += 1


class Bits:
    """Fetches 4 words, then 8, 16, 32, and 64 at a time from then on; leaves the rest when it goes."""

    def __init__(self, words, digit_bits):
        self.words, self.digit_bits = words, digit_bits
        self.fetch, self.fetched = 4, []
        self.word = self.left = 0

    def next_word(self):
        if not self.fetched:
            self.fetched = [next(self.words) for _ in range(self.fetch)]
            self.fetch = min(64, 2 * self.fetch)
        return self.fetched.pop(0)

    def take(self, count):
        if self.left < count:
            self.word, self.left = self.next_word(), 64
        taken = self.word % 2**count
        self.word //= 2**count
        self.left -= count
        return taken

    def digit(self):
        return self.next_word() if self.digit_bits == 64 else self.take(self.digit_bits)

    def below(self, n):
        while True:
            candidate = self.take((n - 1).bit_length())
            if candidate < n:
                return candidate


class Uniform:
    """A real number known to lie in [low, low + width); looking closer draws the next digit."""

    def __init__(self, bits):
        self.bits, self.low, self.width = bits, Fraction(0), Fraction(1)
        self.closer()

    def closer(self):
        self.width /= 2**self.bits.digit_bits
        self.low += self.bits.digit() * self.width

    def is_below(self, other):
        while True:
            if self.low + self.width <= other.low:
                return True
            if other.low + other.width <= self.low:
                return False
            # Whoever is known less well looks closer; of equals, self first.
            if self.width >= other.width:
                self.closer()
            if other.width > self.width:
                other.closer()

    def scale_and_round(self, sigma, k):
        """⌊σ(k + x)/16 + ½⌋"""
        half = Fraction(1, 2)
        scale = Fraction(sigma, 16)
        while True:
            lowest = floor(scale * (k + self.low) + half)
            if ceil(scale * (k + self.low + self.width) + half) - 1 == lowest:
                return lowest
            self.closer()


def thresholds():
    """T_k = Σ_{j≤k} e^(−j²/512) / Σ_j e^(−j²/512) for k up to 300, to 100 decimal places."""
    with localcontext(prec=120):
        terms = [(Decimal(-j * j) / 512).exp() for j in range(500)]
        total = sum(terms)
        return [Fraction(sum(terms[: k + 1]) / total) for k in range(301)]


THRESHOLDS = thresholds()
TOLERANCE = Fraction(1, 10**100)


def whole(bits):
    """How many thresholds a uniform deviate reaches."""
    u = Uniform(bits)
    while True:
        reached = bisect_right(THRESHOLDS, u.low)
        assert all(abs(u.low - t) > TOLERANCE for t in THRESHOLDS[max(reached - 1, 0) : reached + 1])
        if u.low + u.width <= THRESHOLDS[reached]:
            return reached
        u.closer()


def accept_fraction(k, denominator, x, bits):
    run, last = 0, x
    while True:
        case = bits.below(denominator)
        if case > 2 * k:
            return run % 2 == 0
        following = Uniform(bits)
        if not following.is_below(last):
            return run % 2 == 0
        if case == 2 * k and not Uniform(bits).is_below(x):
            return run % 2 == 0
        run, last = run + 1, following


def rounded_gaussian(sigma, bits):
    while True:
        k = whole(bits)
        x = Uniform(bits)
        trials = k // 256 + 1
        if all(accept_fraction(k, 512 * trials, x, bits) for _ in range(trials)):
            sign = -1 if bits.take(1) else 1
            return sign * x.scale_and_round(sigma, k)


def replay(sigma, digit_bits, share_bits, count):
    """`share_bits`: one buffer of bits for all samples, as add_noise has, or one a sample."""
    seed = hashlib.sha256(f"potluck noise {sigma} {digit_bits} {share_bits}".encode()).digest()
    words = chacha20_words(seed)
    bits = Bits(words, digit_bits)
    values = []
    for _ in range(count):
        if not share_bits:
            bits = Bits(words, digit_bits)
        value = rounded_gaussian(sigma, bits)
        values.append(max(-(2**53), min(2**53, value)) if share_bits else value)
    return {
        "sigma": sigma,
        "digit_bits": digit_bits,
        "seed": seed.hex(),
        "count": count,
        "first": values[:8],
        "sha256_of_le_i64": hashlib.sha256(struct.pack(f"<{count}q", *values)).hexdigest(),
    }


def make_replay():
    first_word = next(chacha20_words(bytes(32)))
    assert first_word == 0x903DF1A0ADE0B876, "ChaCha20 test vector, zero key and nonce"
    bulk = [(sigma, 64) for sigma in (1, 17, 1000, 2**20, 2**40, 2**53 - 1)]
    single = [(sigma, width) for width in (1, 2, 4, 8, 16, 32, 64)
              for sigma in (1, 3, 10, 2**20 + 1, 2**53 - 1)]  # fmt: skip
    write(
        "replay.json",
        {
            "source": "Algorithm N in exact fractions, on the ChaCha20 key stream of the seed",
            "add_noise_to_zeros": [replay(*case, True, 10_000) for case in bulk],
            "rounded_gaussian_in_digits": [replay(*case, False, 1_000) for case in single],
        },
    )


if __name__ == "__main__":
    makers = {"mpfr": make_mpfr, "opendp": make_opendp, "replay": make_replay}
    for name in sys.argv[1:] or makers:
        makers[name]()
