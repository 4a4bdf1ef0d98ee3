"""Least squares of the last column on the others: NumPy."""

import numpy as np
from peer import arguments, clock, serve

given = arguments()
columns = np.array(given["columns"])
features, label = np.ascontiguousarray(columns[:-1].T), columns[-1]


def run():
    seconds, found = clock(lambda: np.linalg.lstsq(features, label))
    return {"seconds": seconds, "weights": found[0].tolist()}


serve(run)
