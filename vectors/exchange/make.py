"""Makes python/: a whole exchange made by reference.py, for the crate to check.

Standard library only. Run: python make.py. New keys, masks and noise each time; the crate must accept any.
"""

import hashlib
import json
import pathlib

import reference as x
from cases import CASES, terms_of

HERE = pathlib.Path(__file__).parent


def main():
    (HERE / "python").mkdir(exist_ok=True)
    known = {"generators": {}, "exchanges": []}
    for name in ["G'", "B", "F1", "F2", "F3", "F4", "L1", "L2", "L10"]:
        known["generators"][name] = x.encode(x.point(name)).hex()
    for case in CASES:
        terms, index = terms_of(case), case["recipient"]["index"]
        offer, keys = x.prove_offer(terms, case["sender_rows"])
        H, ciphertexts = x.verify_offer(terms, offer)
        noise = case["noise"]
        reply = x.prove_reply(terms, index, offer, H, ciphertexts, case["recipient_rows"], noise)
        outputs = x.verify_reply(terms, index, offer, H, ciphertexts, reply)
        opened = x.open_reply(keys, outputs, 4000)
        pairs = list(zip(case["sender_rows"], case["recipient_rows"]))
        for j in range(case["sender"]["columns"]):
            for l in range(case["recipient"]["columns"]):
                assert opened[j][l] == sum(v[j] * y[l] for v, y in pairs) + noise[l][j]
        kept = b"potluck exchange sent offer 1" + terms.hash + hashlib.sha512(offer).digest()
        kept += b"".join(x.scalar_bytes(a) + x.scalar_bytes(b) for a, b in keys)
        (HERE / "python" / f"{case['name']}.offer").write_bytes(offer)
        (HERE / "python" / f"{case['name']}.reply").write_bytes(reply)
        part = x.sections(offer, x.offer_lengths(terms))
        rho, e, bits = x.offer_challenges(terms, part)
        reply_part = x.sections(reply, x.reply_lengths(terms, case["recipient"]["columns"]))
        keys_bytes = b"".join(map(x.encode, H))
        offer_hash = hashlib.sha512(offer).digest()
        _, gamma, reply_e, _ = x.reply_challenges(terms, index, offer_hash, keys_bytes, reply_part)
        known["exchanges"].append(
            {
                **case,
                "terms": terms.bytes.hex(),
                "range": terms.range(index),
                "kept": kept.hex(),
                "opened": opened,
                "rho": x.scalar_bytes(rho[-1]).hex(),
                "e": x.scalar_bytes(e).hex(),
                "bits": bits[-1].to_bytes(16, "little").hex(),
                "gamma": x.scalar_bytes(gamma[-1][-1]).hex(),
                "reply_e": x.scalar_bytes(reply_e).hex(),
            }
        )
    (HERE / "known.json").write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
