"""How a peer talks to the lab: the first line in says what is given, each further one asks for a run.

The answer to each is one line of JSON.
"""

import json
import sys
import time


def arguments():
    """What the lab gives, as one JSON object."""
    return json.loads(sys.stdin.readline())


def clock(work):
    """Seconds that `work` takes, and what it returns."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def serve(run):
    """`run` does the work once and returns a dictionary with `seconds`."""
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(run()), flush=True)
