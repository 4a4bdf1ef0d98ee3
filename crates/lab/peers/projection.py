"""A sparse sketch of the rows of a table in memory: scikit-learn or SciPy. Neither knows ids or files."""

import numpy as np
from peer import arguments, clock, serve

given = arguments()
k = given["k"]
table = np.random.default_rng(1).uniform(-1.0, 1.0, size=(given["n"], given["d"]))


def scikit_learn():
    from sklearn.random_projection import SparseRandomProjection

    # It projects columns, so the table lies on its side. One entry a subject on average, as ours has one.
    projection = SparseRandomProjection(n_components=k, density=1 / k, random_state=1)
    return lambda: projection.fit_transform(table.T)


def scipy():
    from scipy.linalg import clarkson_woodruff_transform

    return lambda: clarkson_woodruff_transform(table, k, rng=1)


sketch = {"scikit-learn": scikit_learn, "scipy": scipy}[given["by"]]()


def run():
    seconds, _ = clock(sketch)
    return {"seconds": seconds}


serve(run)
