"""The product of a random matrix of signs with a table in memory: NumPy in float32, block by block."""

import numpy as np
from peer import arguments, clock, serve

BLOCK = 8192  # rows at a time: a multiple of 8, and k × BLOCK signs fit memory easily

given = arguments()
n, d, k = given["n"], given["d"], given["k"]
rng = np.random.default_rng(1)
table = rng.integers(-(1 << 14), (1 << 14) + 1, size=(n, d)).astype(np.float32)

# The signs of every byte: taking rows of this is the fastest way found to draw signs.
SIGNS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1


def signs(count):
    """k × count fair signs."""
    if given["draw"] == "integers":
        return rng.integers(0, 2, size=(k, count), dtype=np.int8).astype(np.float32) * 2 - 1
    in_bytes = -(-count // 8)
    random = np.frombuffer(rng.bytes(k * in_bytes), dtype=np.uint8)
    return SIGNS_OF_BYTE.take(random, axis=0).reshape(k, 8 * in_bytes)[:, :count]


def mix():
    sums = np.zeros((k, d), dtype=np.float32)
    for start in range(0, n, BLOCK):
        rows = table[start : start + BLOCK]
        sums += signs(len(rows)) @ rows
    return sums


def run():
    seconds, _ = clock(mix)
    return {"seconds": seconds}


serve(run)
