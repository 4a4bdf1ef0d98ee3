"""A calibrated release by the Python package, of a Parquet file or of the same table in memory. It is ours, not a peer's."""

import tempfile

import potluck
import pyarrow.parquet as pq
from peer import arguments, clock, serve

given = arguments()
study = potluck.Study.parse(given["study"])
data = pq.read_table(given["table"]) if given["in_memory"] else given["table"]


def publish(folder):
    ledger = potluck.Ledger(f"{folder}/ledger.sqlite")
    ledger.init("survey", study.epsilon, study.delta)
    return potluck.release(
        study,
        given["party"],
        data,
        id=given["id"],
        ledger=ledger,
        out=f"{folder}/release.parquet",
        tmp_dir=folder,
        threads=given["threads"],
        accept_low_accuracy=True,
        progress=False,
    )


def run():
    with tempfile.TemporaryDirectory(dir=given["folder"]) as folder:
        seconds, _ = clock(lambda: publish(folder))
    return {"seconds": seconds}


serve(run)
