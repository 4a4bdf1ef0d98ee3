"""Tries an installed Python package in an empty folder: two parties release, anyone joins and fits."""

import numpy as np

import potluck
from potluck import Categorical, Numeric


class Table:
    """A table without pandas or pyarrow: the package needs NumPy only."""

    def __init__(self, path, **columns):
        self.path = path
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")


people = 20_000
random = np.random.default_rng(1)
age, smoker = random.uniform(20, 90, people), random.random(people) < 0.25
pressure = 95 + 0.45 * age + 7 * smoker + random.normal(0, 9, people)
tables = {
    "north": Table("north.csv", id=range(people), age=age, smoker=np.where(smoker, "yes", "no")),
    "south": Table("south.csv", id=range(people), pressure=pressure),
}
study = potluck.Study.new(
    name="blood pressure", rows=people, epsilon=2.0, delta=1e-6,
    parties={
        "north": [Numeric("age", 18, 100), Categorical("smoker", ["no", "yes"])],
        "south": [Numeric("pressure", 80, 200)],
    },
).seal()  # fmt: skip
releases = []
for party, table in tables.items():
    ledger = potluck.Ledger(f"{party}.ledger")
    ledger.init("patients", epsilon=2.0, delta=1e-6)
    releases.append(potluck.release(study, party, table.path, ledger=ledger, accept_low_accuracy=True))
regression = potluck.LinearRegression().fit(potluck.join(study, releases), "pressure")
print(regression.summary())
assert np.isfinite(regression.coef_).all()
assert np.isfinite(regression.predict("north.csv")).all() and len(regression.predict("north.csv")) == people
print("the package works:", potluck.__version__, potluck.__file__)
