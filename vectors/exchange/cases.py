"""The exchanges that vectors are about, the same for both programs."""

import reference as x

CASES = [
    {
        "name": "two-by-one",
        "people": 4,
        "attempt": 7,
        "sender": {"index": 1, "columns": 2, "norm": 300},
        "recipient": {"index": 3, "columns": 1, "norm": 200},
        "sigma": 9,
        "sender_rows": [[10, -14], [0, 0], [-17, 3], [5, 5]],
        "recipient_rows": [[14], [-14], [0], [3]],
        "noise": [[-11, 25]],
    },
    {
        "name": "one-by-three",
        "people": 3,
        "attempt": 0,
        "sender": {"index": 0, "columns": 1, "norm": 1},
        "recipient": {"index": 2, "columns": 3, "norm": 75},
        "sigma": 4,
        "sender_rows": [[1], [-1], [0]],
        "recipient_rows": [[5, 5, 5], [-5, 0, 7], [0, 0, 0]],
        "noise": [[3], [0], [-7]],
    },
]


def terms_of(case):
    """Contract, releases and nonces are bytes that repeat: 1; 2 and 3; 4 and 5."""
    party = lambda who, releases, nonce: (
        who["index"],
        who["columns"],
        who["norm"],
        bytes([releases]) * 32,
        bytes([nonce]) * 32,
    )
    parties = [party(case["sender"], 2, 4), party(case["recipient"], 3, 5)]
    return x.Terms(bytes([1]) * 32, case["attempt"], case["people"], parties, [case["sigma"]])
