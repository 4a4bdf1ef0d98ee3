"""Checks the messages that the crate made, in rust/, and that each of a set of changes to them is refused.

Standard library only. Run: python check.py.
"""

import pathlib
import struct

import reference as x
from cases import CASES, terms_of

RUST = pathlib.Path(__file__).parent / "rust"


def refusal(check, *arguments):
    try:
        check(*arguments)
    except x.Refused as refused:
        return str(refused)
    return None


def flipped(message, at, bit=1):
    return message[:at] + bytes([message[at] ^ bit]) + message[at + 1 :]


def starts(lengths):
    at, result = 0, {}
    for name, length in lengths:
        result[name] = (at, length)
        at += length
    return result


def other_point(message, at):
    moved = x.add(x.decode(message[at : at + 32]), x.G)
    return message[:at] + x.encode(moved) + message[at + 32 :]


def changes(message, lengths, points):
    """(what, message, names of checks that may refuse it)"""
    yield "one byte less", message[:-1], {"length"}
    yield "one byte more", message + b"\0", {"length"}
    yield "header", flipped(message, 3), {"header"}
    for name, (at, length) in starts(lengths).items():
        if name in points:
            yield f"another point in {name}", other_point(message, at + length - 32), {"norm", "openings", "outputs"}
            bad = message[:at] + b"\xff" * 32 + message[at + 32 :]
            yield f"no point in {name}", bad, {"point"}
        elif name != "header":
            yield f"a bit in {name}", flipped(message, at), {"norm", "openings", "outputs"}
            bad = message[: at + length - 32] + b"\xff" * 32 + message[at + length :]
            yield f"no scalar in {name}", bad, {"scalar"}


def main():
    for case in CASES:
        terms, index = terms_of(case), case["recipient"]["index"]
        offer, reply, result = (
            (RUST / f"{case['name']}.{kind}").read_bytes() for kind in ("offer", "reply", "result")
        )
        H, ciphertexts = x.verify_offer(terms, offer)
        x.verify_reply(terms, index, offer, H, ciphertexts, reply)
        values = x.read_result(terms, index, offer, reply, result)
        pairs = list(zip(case["sender_rows"], case["recipient_rows"]))
        columns = case["recipient"]["columns"]
        for place, value in enumerate(values):
            exact = sum(v[place // columns] * y[place % columns] for v, y in pairs)
            assert abs(value - exact) <= 10 * case["sigma"], "products and two noises"
        for what, changed, expected in changes(offer, x.offer_lengths(terms), {"keys", "masks", "rows", "norm"}):
            found = refusal(x.verify_offer, terms, changed)
            assert found in expected, f"offer, {what}: {found}"
        points = {"masks", "rows", "outputs", "noise", "norm", "output mask"}
        for what, changed, expected in changes(reply, x.reply_lengths(terms, columns), points):
            found = refusal(x.verify_reply, terms, index, offer, H, ciphertexts, changed)
            assert found in expected, f"reply, {what}: {found}"
        beyond = result[:-8] + struct.pack("<q", terms.range(index) + 1)
        for what, changed, expected in [
            ("one byte less", result[:-1], "length"),
            ("another reply", flipped(result, 150), "header"),
            ("out of range", beyond, "range"),
        ]:
            found = refusal(x.read_result, terms, index, offer, reply, changed)
            assert found == expected, f"result, {what}: {found}"
        print(f"{case['name']}: accepted, and all changes refused")


if __name__ == "__main__":
    main()
