"""ristretto255 after RFC 9496, in plain Python integers. For checking, not for secrets."""

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def is_negative(x):
    return x % P & 1


def absolute(x):
    x %= P
    return P - x if x & 1 else x


def sqrt_ratio(u, v):
    """(was u/v a square, its non-negative root or that of i·u/v)"""
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    correct, flipped, flipped_i = check == u % P, check == -u % P, check == -u * SQRT_M1 % P
    if flipped or flipped_i:
        r = r * SQRT_M1 % P
    return correct or flipped, absolute(r)


INVSQRT_A_MINUS_D = sqrt_ratio(1, -1 - D)[1]
SQRT_AD_MINUS_ONE = 25063068953384623474111414158702152701244531502492656460079210482610430750235
ONE_MINUS_D_SQ = (1 - D * D) % P
D_MINUS_ONE_SQ = (D - 1) ** 2 % P

IDENTITY = (0, 1, 1, 0)


def add(p, q):
    (x1, y1, z1, t1), (x2, y2, z2, t2) = p, q
    a, b = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = t1 * 2 * D * t2 % P, z1 * 2 * z2 % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def negate(p):
    return (-p[0] % P, p[1], p[2], -p[3] % P)


def total(points):
    result = IDENTITY
    for point in points:
        result = add(result, point)
    return result


_tables = {}


def times(scalar, point):
    """scalar · point, with a table of the point's multiples if it is met often."""
    scalar %= ORDER
    if point not in _tables and len(_tables) < 4000:
        rows, base = [], point
        for _ in range(64):
            row = [IDENTITY]
            for _ in range(15):
                row.append(add(row[-1], base))
            rows.append(row)
            base = add(row[-1], base)
        _tables[point] = rows
    if point in _tables:
        result = IDENTITY
        for row in _tables[point]:
            if scalar & 15:
                result = add(result, row[scalar & 15])
            scalar >>= 4
        return result
    return once(scalar, point)


def once(scalar, point):
    """scalar · point for a point that is met once."""
    scalar %= ORDER
    row = [IDENTITY]
    for _ in range(15):
        row.append(add(row[-1], point))
    result = IDENTITY
    for digit in f"{scalar:064x}":
        for _ in range(4):
            result = add(result, result)
        result = add(result, row[int(digit, 16)])
    return result


def equal(p, q):
    return (p[0] * q[1] - p[1] * q[0]) % P == 0 or (p[1] * q[1] - p[0] * q[0]) % P == 0


def encode(point):
    x, y, z, t = point
    u1, u2 = (z + y) * (z - y) % P, x * y % P
    _, inverse = sqrt_ratio(1, u1 * u2 * u2 % P)
    den1, den2 = inverse * u1 % P, inverse * u2 % P
    z_inverse = den1 * den2 * t % P
    if is_negative(t * z_inverse):
        x, y, den = y * SQRT_M1 % P, x * SQRT_M1 % P, den1 * INVSQRT_A_MINUS_D % P
    else:
        den = den2
    if is_negative(x * z_inverse):
        y = -y % P
    return absolute(den * (z - y)).to_bytes(32, "little")


def decode(data):
    """A point, or nothing if the encoding is not canonical."""
    s = int.from_bytes(data, "little")
    if s >= P or s & 1:
        return None
    ss = s * s % P
    u1, u2 = (1 - ss) % P, (1 + ss) % P
    u2_squared = u2 * u2 % P
    v = (-(D * u1 * u1) - u2_squared) % P
    square, inverse = sqrt_ratio(1, v * u2_squared % P)
    den_x = inverse * u2 % P
    den_y = inverse * den_x * v % P
    x = absolute(2 * s * den_x)
    y = u1 * den_y % P
    t = x * y % P
    if not square or is_negative(t) or y == 0:
        return None
    return (x, y, 1, t)


def _map(data):
    t = int.from_bytes(data, "little") % 2**255
    r = SQRT_M1 * t * t % P
    u = (r + 1) * ONE_MINUS_D_SQ % P
    v = (-1 - r * D) * (r + D) % P
    square, s = sqrt_ratio(u, v)
    s, c = (s, -1) if square else (-absolute(s * t) % P, r)
    n = (c * (r - 1) * D_MINUS_ONE_SQ - v) % P
    w0, w1 = 2 * s * v % P, n * SQRT_AD_MINUS_ONE % P
    w2, w3 = (1 - s * s) % P, (1 + s * s) % P
    return (w0 * w3 % P, w2 * w1 % P, w1 * w3 % P, w0 * w2 % P)


def from_uniform(data):
    return add(_map(data[:32]), _map(data[32:]))


BASE = decode(bytes.fromhex("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"))


def check():
    """Test vectors of RFC 9496, appendix A."""
    five = "e882b131016b52c1d3337080187cf768423efccbb517bb495ab812c4160ff44e"
    assert encode(times(5, BASE)).hex() == five and encode(once(5, BASE)).hex() == five
    import hashlib

    label = b"Ristretto is traditionally a short shot of espresso coffee"
    expected = "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46"
    assert encode(from_uniform(hashlib.sha512(label).digest())).hex() == expected
    for bad in ("00" * 31 + "80", "01" + "00" * 31, "ed" + "ff" * 30 + "7f", "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371"):
        assert decode(bytes.fromhex(bad)) is None, bad


check()
