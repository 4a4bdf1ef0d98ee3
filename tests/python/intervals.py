"""How often the intervals of a real program hold the truth: seals a study, releases, joins and fits, again and again with
new keys and noise, on people that are made up and on the public tables. Several programs may be named to compare them.

    target/venv/bin/python tests/python/intervals.py --data DIR --repeats 20 target/ci/potluck

The truth is least squares on the same rows. A coefficient with a finding is counted apart; one of tails is about values as
they were cut, and is held against least squares on these rows cut to what the fit says was kept (what the ball cut besides
is not known from outside). --details prints a line a coefficient too.
"""

import argparse
import functools
import json
import math
import pathlib
import shutil
import subprocess
import tempfile

import numpy
import pyarrow
import pyarrow.csv
import pyarrow.parquet

EPSILON, DELTA = 1.0, 1e-6


class Table:
    """Numeric columns by party, with public bounds, and the label."""

    def __init__(self, name, parties, label, values, bounds=None):
        self.name, self.parties, self.label, self.values = name, parties, label, values
        self.bounds = bounds or {column: around(values[column]) for column in values}
        self.rows = len(values[label])

    def slopes(self, kept):
        """Least squares on all rows, columns cut to what is kept of them."""
        features = [column for columns in self.parties.values() for column in columns if column != self.label]
        cut = {column: numpy.clip(self.values[column], *kept.get(column, (None, None))) for column in self.values}
        matrix = numpy.column_stack([cut[column] for column in features] + [numpy.ones(self.rows)])
        return dict(zip(features, numpy.linalg.lstsq(matrix, cut[self.label], rcond=None)[0]))

    def truth(self):
        """Slopes of all rows, with what standardises each."""
        spread = self.values[self.label].std()
        return {column: (slope, self.values[column].std() / spread) for column, slope in self.slopes({}).items()}


def around(values):
    """Bounds that anyone might set: what the values span, and a tenth more."""
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def pair(n, second, random):
    """Ten bell-shaped features in five parties, the label alone; two of different parties correlate by 0.7."""
    x = random.normal(size=(n, 10))
    x[:, 2] = 0.7 * x[:, 0] + math.sqrt(1 - 0.49) * x[:, 2]
    y = x[:, 0] + second * x[:, 2] + random.normal(size=n)
    parties = {f"p{i}": [f"x{2 * i}", f"x{2 * i + 1}"] for i in range(5)} | {"label": ["y"]}
    values = {f"x{j}": x[:, j] for j in range(10)} | {"y": y}
    bounds = {column: (-4.0, 4.0) for column in values} | {"y": (-8.0, 8.0)}
    return Table(f"r = 0.7, effects 1 and {second}", parties, "y", values, bounds)


def confounded(n, random):
    """A feature beside the label without an effect; its cause, which has one, sits at another party."""
    cause = random.normal(size=n)
    beside = 0.7 * cause + math.sqrt(1 - 0.49) * random.normal(size=n)
    other = random.normal(size=n)
    values = {"cause": cause, "other": other, "beside": beside, "y": cause + random.normal(size=n)}
    bounds = {column: (-4.0, 4.0) for column in values} | {"y": (-8.0, 8.0)}
    parties = {"first": ["cause"], "second": ["other"], "label": ["beside", "y"]}
    return Table("own-party confounder", parties, "y", values, bounds)


def public_tables(folder):
    """The public tables' numeric columns, dealt as their owners might hold them."""
    described = {
        "insurance.csv": ("charges", {"clinic": ["bmi", "children"], "register": ["age"], "insurer": ["charges"]}),
        "bike_hour.csv": (
            "cnt",
            {"weather": ["temp", "hum", "windspeed"], "calendar": ["hr", "workingday"], "rental": ["cnt"]},
        ),
        "diamonds.csv": ("price", {"lab": ["carat", "depth", "table"], "shop": ["x", "price"]}),
        "randhie.csv": (
            "mdvis",
            {"insurer": ["lncoins", "idp"], "clinic": ["physlm", "disea", "hlthg"], "register": ["mdvis"]},
        ),
        "california_housing.csv": (
            "value",
            {"map": ["lat", "lon"], "census": ["age", "rooms", "income"], "market": ["value"]},
        ),
        "sgemm_product.csv.gz": (
            "Run1 (ms)",
            {"tiles": ["MWG", "NWG", "KWG"], "threads": ["MDIMC", "NDIMC"], "runs": ["Run1 (ms)"]},
        ),
    }
    names = ["lon", "lat", "age", "rooms", "bedrooms", "population", "households", "income", "value"]
    for file, (label, parties) in described.items():
        if not (folder / file).exists():
            print(f"skipped: {file} is not in the folder")
            continue
        options = pyarrow.csv.ReadOptions(column_names=names if file.startswith("california") else None)
        table = pyarrow.csv.read_csv(folder / file, read_options=options)
        values = {
            column: table[column].to_numpy().astype(float) for columns in parties.values() for column in columns
        }
        yield Table(file.partition(".")[0], parties, label, values)


def study_text(table):
    """The draft of a study of this table."""
    text = f'format = 1\n[study]\nname = "intervals"\nrows = {table.rows}\nid = "integer"\n'
    text += f"[privacy]\nepsilon = {EPSILON}\ndelta = {DELTA}\n"
    for party, columns in table.parties.items():
        text += f'[[party]]\nname = "{party}"\n'
        for column in columns:
            low, high = table.bounds[column]
            text += f'[[party.column]]\nname = "{column}"\nlo = {low}\nhi = {high}\n'
    return text


def run(program, *arguments):
    command = [program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


@functools.cache
def budget_option(program):
    """What version 0.1 calls a budget."""
    return "--budget" if "--budget" in run(program, "ledger", "init", "--help") else "--table"


def fitted(program, table, folder):
    """One model of a fresh release."""
    study = folder / "study.toml"
    study.write_text(study_text(table))
    run(program, "study", "seal", study)
    releases = []
    for party in table.parties:
        ledger, out = folder / f"{party}.ledger", folder / f"{party}.parquet"
        budget = [budget_option(program), "t", "--epsilon", EPSILON, "--delta", DELTA]
        run(program, "ledger", "init", "--ledger", ledger, *budget)
        data = ["--data", folder.parent / f"{party}.parquet", "--ledger", ledger, "--out", out]
        run(program, "release", study, "--party", party, *data, "--yes", "--accept-low-accuracy")
        releases.append(out)
    public = folder / "public.parquet"
    run(program, "join", study, *releases, "--out", public)
    return json.loads(run(program, "fit", public, "--label", table.label, "--json"))


def measured(programs, table, repeats):
    """For each program and feature, the coefficients that it found."""
    found = {program: {column: [] for column in table.truth()} for program in programs}
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        for party, columns in table.parties.items():
            private = {"id": numpy.arange(table.rows)} | {column: table.values[column] for column in columns}
            pyarrow.parquet.write_table(pyarrow.table(private), place / f"{party}.parquet")
        for repeat in range(repeats):
            for at, program in enumerate(programs):
                folder = place / f"{repeat}-{at}"
                folder.mkdir()
                model = fitted(program, table, folder)
                kept = {column_of(one): one["kept"] for one in model["coefficients"] if one.get("kept")}
                if model.get("label_kept"):
                    kept[table.label] = model["label_kept"]
                slopes = table.slopes(kept)
                for one in model["coefficients"]:
                    found[program][column_of(one)].append(one | {"cut": slopes[column_of(one)]})
                shutil.rmtree(folder)
    return found


def column_of(coefficient):
    return coefficient["term"]["numeric"]["column"]


def holds(coefficient, slope):
    return coefficient["value"]["low"] <= slope <= coefficient["value"]["high"]


def is_about_cut_values(coefficient):
    return any("tails" in finding["kind"] for finding in coefficient.get("findings", []))


def share(values):
    return f"{numpy.mean(values):.2f}" if len(values) else "–"


def describe(table, program, found, details):
    """Prints a line about all coefficients, or a line for each."""
    truth = table.truth()
    held, clear, widths, lines, cut = [], [], [], [], []
    for column, readings in found.items():
        slope, unit = truth[column]
        all_held = [holds(one, slope) for one in readings]
        cut += [holds(one, one["cut"]) for one in readings if is_about_cut_values(one)]
        bare = [not one.get("findings") for one in readings]
        mean = unit * numpy.mean([one["value"]["estimate"] for one in readings])
        width = [unit * (one["value"]["high"] - one["value"]["low"]) / 2 for one in readings]
        kinds = sorted({finding["kind"] for one in readings for finding in one.get("findings", [])})
        of_bare = share([h for h, b in zip(all_held, bare) if b])
        lines.append(
            f"| {column} | {slope * unit:.3f} | {mean:.3f} | {numpy.median(width):.3f} | {share(all_held)} "
            f"| {1 - numpy.mean(bare):.2f} | {of_bare} | {', '.join(kinds)} |"
        )
        held, clear, widths = [*held, all_held], [*clear, bare], [*widths, *width]
    held, clear = numpy.array(held), numpy.array(clear)
    start = f"| {table.name} | {pathlib.Path(program).name} |"
    if details:
        for line in lines:
            print(start, line[2:], flush=True)
        return
    lowest = [of[b].mean() for of, b in zip(held, clear) if 2 * b.sum() > len(b)]
    print(
        f"{start} {len(held)} | {share(held)} | {held.mean(1).min():.2f} | {1 - clear.mean():.2f} | {share(held[clear])} "
        f"| {f'{min(lowest):.2f}' if lowest else '–'} | {share(cut)} | {numpy.median(widths):.3f} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", help="potluck binaries to compare")
    parser.add_argument("--data", type=pathlib.Path, help="folder with the public tables")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rows", type=int, default=100_000, help="people who are made up")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--details", action="store_true", help="a line for each coefficient")
    arguments = parser.parse_args()
    random = numpy.random.default_rng(arguments.seed)
    tables = [pair(arguments.rows, second, random) for second in (-0.7, 0.0)] + [confounded(arguments.rows, random)]
    if arguments.data:
        tables += public_tables(arguments.data)
    print(f"{arguments.repeats} releases a table and program. In standard deviations; half-widths are medians.\n")
    if arguments.details:
        print("| table | program | feature | truth | mean estimate | half-width | holds | finding | without: holds | findings |")
        print("|---|---|---|---|---|---|---|---|---|---|")
    else:
        print("| table | program | coefficients | holds | lowest | finding | without: holds | lowest | cut values: holds | half-width |")
        print("|---|---|---|---|---|---|---|---|---|---|")
    for table in tables:
        for program, found in measured(arguments.programs, table, arguments.repeats).items():
            describe(table, program, found, arguments.details)


if __name__ == "__main__":
    main()
