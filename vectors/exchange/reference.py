"""The exchange of docs/EXCHANGE.md in plain Python: proves, verifies, opens. Standard library only.

Written from that document, not from the crate. Every equation is checked on its own, with no random weights.
"""

import hashlib
import math
import secrets
import struct

from ristretto import BASE, IDENTITY, ORDER, add, decode, encode, equal, from_uniform, negate, once, times, total

MASK_BITS, SUM_LIMIT, GRID, REPETITIONS = 120, 1 << 121, 16, 128
G = BASE


class Refused(Exception):
    """A check of docs/EXCHANGE.md fails; its name is the message."""


def require(holds, check):
    if not holds:
        raise Refused(check)


# ---------- terms, generators, transcript


class Terms:
    def __init__(self, contract, attempt, people, parties, scales, repetitions=REPETITIONS):
        """`parties`: (index, columns, norm, releases, nonce), the sender first."""
        self.people, self.parties, self.scales, self.repetitions = people, parties, scales, repetitions
        self.sender, self.recipients = parties[0], parties[1:]
        self.bytes = b"potluck exchange terms 1" + contract
        self.bytes += struct.pack("<IQHHHH", attempt, people, GRID, repetitions, MASK_BITS, len(parties))
        for index, columns, norm, releases, nonce in parties:
            self.bytes += struct.pack("<HHI", index, columns, norm) + releases + nonce
        self.bytes += b"".join(struct.pack("<Q", scale) for scale in scales)
        self.hash = hashlib.sha512(self.bytes).digest()

    def recipient(self, index):
        return next((party, scale) for party, scale in zip(self.recipients, self.scales) if party[0] == index)

    def range(self, index):
        party, scale = self.recipient(index)
        square = self.people**2 * self.sender[2] * party[2]
        return math.isqrt(square - 1) + 1 + 17 * scale + 2


def point(name):
    return from_uniform(hashlib.sha512(b"potluck exchange 1 generator " + name.encode()).digest())


G2, B = point("G'"), point("B")
F = [point(f"F{k}") for k in range(1, 5)]


def L(columns):
    return [point(f"L{k}") for k in range(1, columns + 1)]


def item(label, data):
    return bytes([len(label)]) + label.encode() + struct.pack("<Q", len(data)) + data


class Transcript:
    def __init__(self, role, terms, columns):
        self.state = hashlib.shake_256()
        self.item("potluck exchange 1", role.encode())
        self.item("terms", terms.bytes)
        self.item("generators", b"".join(map(encode, [G, G2, B, *F, *L(columns)])))

    def item(self, label, data):
        self.state.update(item(label, data))

    def challenge(self, name, length):
        copy = self.state.copy()
        copy.update(item("challenge", name.encode()))
        return copy.digest(length)

    def scalars(self, name, count):
        data = self.challenge(name, 64 * count)
        return [int.from_bytes(data[64 * i : 64 * i + 64], "little") % ORDER for i in range(count)]

    def bits(self, people):
        data = self.challenge("bits", 16 * people)
        return [int.from_bytes(data[16 * i : 16 * i + 16], "little") for i in range(people)]


# ---------- encodings


def scalar_bytes(value):
    return (value % ORDER).to_bytes(32, "little")


def integer_bytes(value):
    return value.to_bytes(16, "little", signed=True)


class Reader:
    def __init__(self, data):
        self.data = data

    def take(self, count):
        taken, self.data = self.data[:count], self.data[count:]
        return taken

    def point(self):
        result = decode(self.take(32))
        require(result is not None, "point")
        return result

    def scalar(self):
        result = int.from_bytes(self.take(32), "little")
        require(result < ORDER, "scalar")
        return result

    def sum(self):
        result = int.from_bytes(self.take(16), "little", signed=True)
        require(abs(result) < SUM_LIMIT, "sum too large")
        return result

    def many(self, read, count):
        return [read() for _ in range(count)]


def sections(data, lengths):
    result, at = {}, 0
    for name, length in lengths:
        result[name] = data[at : at + length]
        at += length
    return result


def offer_lengths(terms):
    d, n, r = terms.sender[1], terms.people, terms.repetitions
    return [
        ("header", 72),
        ("keys", 32 * d),
        ("masks", r * 32 * (d + 2)),
        ("rows", n * 32 * (2 * d + 6)),
        ("norm", 64),
        ("responses", n * 32 * (d + 6)),
        ("closing", 32),
        ("sums", r * (64 + 16 * (d + 4))),
    ]


def reply_lengths(terms, columns):
    d, o, n, r = columns, terms.sender[1], terms.people, terms.repetitions
    return [
        ("header", 138),
        ("masks", r * 32),
        ("rows", n * 64),
        ("outputs", 32 * d * (o + 2)),
        ("noise", 64 * d * (o + 1)),
        ("norm", 64),
        ("output mask", 32),
        ("responses", n * 32 * (d + 5)),
        ("closing", 32),
        ("openings", 64 * d * (o + 1)),
        ("sums", r * (32 + 16 * (d + 4))),
    ]


def combine(scalars, points):
    return total(times(scalar, point) for scalar, point in zip(scalars, points))


def bit(word, k):
    return word >> k & 1


def same(left, right, check):
    require(equal(left, right), check)


# ---------- offer


def offer_challenges(terms, part):
    transcript = Transcript("offer", terms, 0)
    for name in ("keys", "masks", "rows"):
        transcript.item(name, part[name])
    rho = transcript.scalars("rho", terms.people)
    transcript.item("norm", part["norm"])
    return rho, transcript.scalars("e", 1)[0], transcript.bits(terms.people)


def four_squares(number):
    for a in range(math.isqrt(number), -1, -1):
        for b in range(math.isqrt(number - a * a), -1, -1):
            for c in range(math.isqrt(number - a * a - b * b), -1, -1):
                rest = number - a * a - b * b - c * c
                if math.isqrt(rest) ** 2 == rest:
                    return [a, b, c, math.isqrt(rest)]


def uniform():
    return secrets.randbelow(ORDER)


def prove_offer(terms, rows):
    """(message, keys) for the sender's rows."""
    d, norm = terms.sender[1], terms.sender[2]
    keys = [(uniform(), uniform()) for _ in range(d)]
    H = [add(times(a, G), times(b, G2)) for a, b in keys]
    part = {"header": b"PLXC-OF1" + terms.hash, "keys": b"".join(map(encode, H))}
    full = [row + four_squares(norm - sum(x * x for x in row)) for row in rows]
    blinds = [(uniform(), uniform()) for _ in rows]
    masks = [(uniform(), [uniform() for _ in range(d + 4)], uniform()) for _ in rows]
    encrypt = lambda x, r: [times(r, G), times(r, G2)] + [add(times(x[j], G), times(r, H[j])) for j in range(d)]
    commit = lambda u, t: add(combine(u, F), times(t, B))
    points = []
    for z, (r, t), (q, w, o) in zip(full, blinds, masks):
        points += [*encrypt(z[:d], r), commit(z[d:], t), *encrypt(w[:d], q), commit(w[d:], o)]
    part["rows"] = b"".join(map(encode, points))
    hats = [(uniform(), [secrets.randbits(MASK_BITS) for _ in range(d + 4)], uniform()) for _ in range(terms.repetitions)]
    points = []
    for r, z, t in hats:
        points += [times(r, G), *encrypt(z[:d], r)[2:], commit(z[d:], t)]
    part["masks"] = b"".join(map(encode, points))
    beta, gamma = uniform(), uniform()
    part["norm"] = b""
    rho, _, _ = offer_challenges(terms, part)
    part["norm"] = norm_section(rho, full, [w for _, w, _ in masks], beta, gamma)
    _, e, bits = offer_challenges(terms, part)
    part["responses"] = b"".join(
        b"".join(map(scalar_bytes, [e * r + q, *(e * x + y for x, y in zip(z, w)), e * t + o]))
        for z, (r, t), (q, w, o) in zip(full, blinds, masks)
    )
    part["closing"] = scalar_bytes(e * beta + gamma)
    part["sums"] = b""
    for k, (r, z, t) in enumerate(hats):
        chosen = [s for s in range(len(rows)) if bit(bits[s], k)]
        part["sums"] += scalar_bytes(r + sum(blinds[s][0] for s in chosen))
        part["sums"] += b"".join(integer_bytes(z[c] + sum(full[s][c] for s in chosen)) for c in range(d + 4))
        part["sums"] += scalar_bytes(t + sum(blinds[s][1] for s in chosen))
    return b"".join(part[name] for name, _ in offer_lengths(terms)), keys


def norm_section(rho, full, masks, beta, gamma):
    cross = sum(p * sum(x * y for x, y in zip(z, w)) for p, z, w in zip(rho, full, masks))
    square = sum(p * sum(y * y for y in w) for p, w in zip(rho, masks))
    e1, e0 = add(times(2 * cross, G), times(beta, B)), add(times(square, G), times(gamma, B))
    return encode(e1) + encode(e0)


def check_norm(part, rho, e, responses, norm):
    reader = Reader(part["norm"])
    e1, e0 = reader.point(), reader.point()
    closing = Reader(part["closing"]).scalar()
    left = sum(p * (sum(f * f for f in row) - e * e * norm) for p, row in zip(rho, responses))
    same(add(times(left, G), times(closing, B)), add(once(e, e1), e0), "norm")


def verify_offer(terms, message):
    """(H, ciphertexts of every row), or Refused."""
    d, norm = terms.sender[1], terms.sender[2]
    lengths = offer_lengths(terms)
    require(len(message) == sum(length for _, length in lengths), "length")
    part = sections(message, lengths)
    require(part["header"] == b"PLXC-OF1" + terms.hash, "header")
    rho, e, bits = offer_challenges(terms, part)
    reader = Reader(part["keys"])
    H = reader.many(reader.point, d)
    reader, answers = Reader(part["rows"]), Reader(part["responses"])
    rows = [(reader.many(reader.point, d + 3), reader.many(reader.point, d + 3)) for _ in range(terms.people)]
    responses = [(answers.scalar(), answers.many(answers.scalar, d + 4), answers.scalar()) for _ in range(terms.people)]
    masks, sums = Reader(part["masks"]), Reader(part["sums"])
    repetitions = [
        (masks.many(masks.point, d + 2), sums.scalar(), sums.many(sums.sum, d + 4), sums.scalar())
        for _ in range(terms.repetitions)
    ]
    check_norm(part, rho, e, [f for _, f, _ in responses], norm)
    opened = lambda x, r: [add(times(x[j], G), times(r, H[j])) for j in range(d)]
    for (commitments, firsts), (r, f, t) in zip(rows, responses):
        lefts = [times(r, G), times(r, G2), *opened(f[:d], r), add(combine(f[d:], F), times(t, B))]
        for left, commitment, first in zip(lefts, commitments, firsts):
            same(left, add(once(e, commitment), first), "openings")
    for k, (mask, r, z, t) in enumerate(repetitions):
        lefts = [times(r, G), *opened(z[:d], r), add(combine(z[d:], F), times(t, B))]
        for column, (left, first) in enumerate(zip(lefts, mask)):
            place = 0 if column == 0 else column + 1
            chosen = total(rows[s][0][place] for s in range(terms.people) if bit(bits[s], k))
            same(left, add(first, chosen), "openings")
    return H, [commitments[: d + 2] for commitments, _ in rows]


# ---------- reply


def reply_challenges(terms, index, offer_hash, keys, part):
    party, _ = terms.recipient(index)
    transcript = Transcript("reply", terms, party[1])
    transcript.item("offer", offer_hash)
    transcript.item("pair", struct.pack("<HH", terms.sender[0], index))
    transcript.item("keys", keys)
    for name in ("masks", "rows", "outputs", "noise"):
        transcript.item(name, part[name])
    rho = transcript.scalars("rho", terms.people)
    width = terms.sender[1] + 2
    gamma = transcript.scalars("gamma", party[1] * width)
    gamma = [gamma[width * l : width * l + width] for l in range(party[1])]
    transcript.item("norm", part["norm"])
    transcript.item("output mask", part["output mask"])
    return rho, gamma, transcript.scalars("e", 1)[0], transcript.bits(terms.people)


def prove_reply(terms, index, offer, H, ciphertexts, rows, noise):
    """The reply with given noise, noise[l][j]."""
    (_, d, norm, _, _), _ = terms.recipient(index)
    o, bases = terms.sender[1], L(d) + F
    offer_hash, keys = hashlib.sha512(offer).digest(), b"".join(map(encode, H))
    part = {"header": b"PLXC-RE1" + terms.hash + offer_hash + struct.pack("<H", index)}
    full = [row + four_squares(norm - sum(y * y for y in row)) for row in rows]
    blinds = [uniform() for _ in rows]
    masks = [([uniform() for _ in range(d + 4)], uniform()) for _ in rows]
    commit = lambda z, t: add(combine(z, bases), times(t, B))
    part["rows"] = b"".join(encode(commit(z, t)) + encode(commit(w, q)) for z, t, (w, q) in zip(full, blinds, masks))
    hats = [([secrets.randbits(MASK_BITS) for _ in range(d + 4)], uniform()) for _ in range(terms.repetitions)]
    part["masks"] = b"".join(encode(commit(z, t)) for z, t in hats)
    values = [[uniform(), *noise[l]] for l in range(d)]
    hide = lambda v: [times(v[0], G), times(v[0], G2)] + [add(times(v[0], H[j]), times(v[j + 1], G)) for j in range(o)]
    outputs = [
        add(total(times(full[s][l], c[p]) for s, c in enumerate(ciphertexts)), hide(values[l])[p])
        for l in range(d)
        for p in range(o + 2)
    ]
    part["outputs"] = b"".join(map(encode, outputs))
    draw = lambda: [[uniform() for _ in range(o + 1)] for _ in range(d)]
    value_blinds, value_masks, mask_blinds = draw(), draw(), draw()
    pedersen = lambda v, t: encode(add(times(v, G), times(t, B)))
    both = ((values, value_blinds), (value_masks, mask_blinds))
    part["noise"] = b"".join(pedersen(x, y) for v, t in both for vs, ts in zip(v, t) for x, y in zip(vs, ts))
    beta, gamma_blind = uniform(), uniform()
    part["norm"] = part["output mask"] = b""
    rho, gamma, _, _ = reply_challenges(terms, index, offer_hash, keys, part)
    part["norm"] = norm_section(rho, full, [w for w, _ in masks], beta, gamma_blind)
    mask = total(
        times(sum(gamma[l][p] * masks[s][0][l] for l in range(d)), c[p])
        for s, c in enumerate(ciphertexts)
        for p in range(o + 2)
    )
    mask = add(mask, total(times(gamma[l][p], hide(value_masks[l])[p]) for l in range(d) for p in range(o + 2)))
    part["output mask"] = encode(mask)
    _, _, e, bits = reply_challenges(terms, index, offer_hash, keys, part)
    part["responses"] = b"".join(
        b"".join(map(scalar_bytes, [*(e * x + y for x, y in zip(z, w)), e * t + q]))
        for z, t, (w, q) in zip(full, blinds, masks)
    )
    part["closing"] = scalar_bytes(e * beta + gamma_blind)
    part["openings"] = b"".join(
        scalar_bytes(e * values[l][p] + value_masks[l][p]) + scalar_bytes(e * value_blinds[l][p] + mask_blinds[l][p])
        for l in range(d)
        for p in range(o + 1)
    )
    part["sums"] = b""
    for k, (z, t) in enumerate(hats):
        chosen = [s for s in range(len(rows)) if bit(bits[s], k)]
        part["sums"] += b"".join(integer_bytes(z[c] + sum(full[s][c] for s in chosen)) for c in range(d + 4))
        part["sums"] += scalar_bytes(t + sum(blinds[s] for s in chosen))
    return b"".join(part[name] for name, _ in reply_lengths(terms, d))


def verify_reply(terms, index, offer, H, ciphertexts, message):
    """outputs[l][p], or Refused."""
    (_, d, norm, _, _), _ = terms.recipient(index)
    o, bases = terms.sender[1], L(d) + F
    lengths = reply_lengths(terms, d)
    require(len(message) == sum(length for _, length in lengths), "length")
    part = sections(message, lengths)
    offer_hash = hashlib.sha512(offer).digest()
    require(part["header"] == b"PLXC-RE1" + terms.hash + offer_hash + struct.pack("<H", index), "header")
    rho, gamma, e, bits = reply_challenges(terms, index, offer_hash, b"".join(map(encode, H)), part)
    reader, answers = Reader(part["rows"]), Reader(part["responses"])
    rows = [(reader.point(), reader.point()) for _ in range(terms.people)]
    responses = [(answers.many(answers.scalar, d + 4), answers.scalar()) for _ in range(terms.people)]
    reader = Reader(part["outputs"])
    outputs = [reader.many(reader.point, o + 2) for _ in range(d)]
    reader, opened = Reader(part["noise"]), Reader(part["openings"])
    values, firsts = ([reader.many(reader.point, o + 1) for _ in range(d)] for _ in range(2))
    z = [[(opened.scalar(), opened.scalar()) for _ in range(o + 1)] for _ in range(d)]
    mask = Reader(part["output mask"]).point()
    reader, sums = Reader(part["masks"]), Reader(part["sums"])
    repetitions = [(reader.point(), sums.many(sums.sum, d + 4), sums.scalar()) for _ in range(terms.repetitions)]
    check_norm(part, rho, e, [f for f, _ in responses], norm)
    commit = lambda f, t: add(combine(f, bases), times(t, B))
    for (commitment, first), (f, t) in zip(rows, responses):
        same(commit(f, t), add(once(e, commitment), first), "openings")
    for l in range(d):
        for p in range(o + 1):
            value, blind = z[l][p]
            same(add(times(value, G), times(blind, B)), add(once(e, values[l][p]), firsts[l][p]), "openings")
    for k, (first, entries, t) in enumerate(repetitions):
        chosen = total(rows[s][0] for s in range(terms.people) if bit(bits[s], k))
        same(commit(entries, t), add(first, chosen), "openings")
    left = add(total(once(e * gamma[l][p], outputs[l][p]) for l in range(d) for p in range(o + 2)), mask)
    right = IDENTITY
    for (f, _), c in zip(responses, ciphertexts):
        for p in range(o + 2):
            right = add(right, once(sum(gamma[l][p] * f[l] for l in range(d)), c[p]))
    for l in range(d):
        q = z[l][0][0]
        right = add(right, add(times(gamma[l][0] * q, G), times(gamma[l][1] * q, G2)))
        for j in range(o):
            hidden = add(times(q, H[j]), times(z[l][j + 1][0], G))
            right = add(right, once(gamma[l][j + 2], hidden))
    same(left, right, "outputs")
    return outputs


# ---------- result


def open_reply(keys, outputs, limit):
    """S + η_j without the sender's noise, values[j][l]: for tests, which know both sides."""
    values = []
    for j, (a, b) in enumerate(keys):
        row = []
        for output in outputs:
            hidden = add(once(a, output[0]), once(b, output[1]))
            row.append(logarithm(add(output[j + 2], negate(hidden)), limit))
        values.append(row)
    return values


def logarithm(value, limit):
    up = down = IDENTITY
    for number in range(limit + 1):
        if equal(value, up):
            return number
        if equal(value, down):
            return -number
        up, down = add(up, G), add(down, negate(G))
    return None


def result_header(terms, index, offer, reply):
    hashes = terms.hash + hashlib.sha512(offer).digest() + hashlib.sha512(reply).digest()
    return b"PLXC-RS1" + hashes + struct.pack("<HH", terms.sender[0], index)


def read_result(terms, index, offer, reply, message):
    (_, d, _, _, _), _ = terms.recipient(index)
    count = terms.sender[1] * d
    header = result_header(terms, index, offer, reply)
    require(len(message) == len(header) + 8 * count, "length")
    require(message[: len(header)] == header, "header")
    values = struct.unpack(f"<{count}q", message[len(header) :])
    require(all(value == -(2**63) or abs(value) <= terms.range(index) for value in values), "range")
    return [None if value == -(2**63) else value for value in values]
