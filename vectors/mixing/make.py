"""Makes mixing.json: subject id -> digest, sparse row and sign, Bernoulli signs.

Independent of the Rust code: SHA-256 from Python's hashlib, ChaCha12 from the randomgen package (its 20-round
stream is checked here against the cryptography package first).
Needs from PyPI: randomgen, cryptography. Run: python make.py > mixing.json
"""

import hashlib
import json

import randomgen
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms


def stream(key: bytes, rounds: int, length: int) -> bytes:
    generator = randomgen.ChaCha(key=int.from_bytes(key, "little"), counter=0, rounds=rounds)
    words = (int(word).to_bytes(8, "little") for word in generator.random_raw(-(-length // 8)))
    return b"".join(words)[:length]


def check_against_cryptography() -> None:
    key = bytes(range(32))
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
    assert stream(key, 20, 256) == cipher.update(bytes(256))


def subject(key: str, subject_id: str, k: int) -> dict:
    digest = hashlib.sha256(f"{key}:{subject_id}".encode()).hexdigest()
    bits = stream(bytes.fromhex(digest), 12, -(-k // 8))
    signs = "".join("+" if bits[i // 8] >> (i % 8) & 1 else "-" for i in range(k))
    return {
        "key": key,
        "id": subject_id,
        "k": k,
        "digest": digest,
        "row": int(digest[:15], 16) % k,
        "sign": 1 if int(digest[15], 16) < 8 else -1,
        "bernoulli": signs,
    }


def main() -> None:
    check_against_cryptography()
    keys = ["00" * 32, bytes(range(32)).hex(), hashlib.sha256(b"potluck").hexdigest()]
    ids = ["0", "7", "007", "-12", "9223372036854775807", "", " ", "Zoë", "日本", "a" * 200, "north:1"]
    sizes = [1, 2, 63, 64, 65, 1000]
    cases = [
        subject(key, subject_id, sizes[(i + j) % len(sizes)])
        for i, key in enumerate(keys)
        for j, subject_id in enumerate(ids)
    ]
    print(json.dumps(cases, ensure_ascii=False, indent=0))


main()
