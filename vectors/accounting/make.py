"""Makes the known answers of potluck_core::accounting: delta.json, mu.json, classical.json, epsilon.json.

Needs Python 3.9 or newer and mpmath (made with 1.4.1). In a virtual environment, in this directory:

    pip install mpmath==1.4.1
    python3 make.py

It shares nothing with the Rust code: the curve is computed here as it is written in the papers,
delta = Phi(mu/2 - eps/mu) - exp(eps) Phi(-mu/2 - eps/mu), with mpmath's erfc at 150 digits, and inverted by bisection.
Strings of decimal digits are rounded to 60 significant digits. A number called a "float" below is the IEEE double
nearest to its decimal text, taken exactly; "numerator" means floor(mu * 2**32).
"""

import json
import math

from mpmath import erfc, exp, floor, log, mp, mpf, nstr, sqrt

mp.dps = 150
DIGITS = 60

EPSILONS = ["0.001", "0.01", "0.1", "0.3", "0.5", "1", "2", "3", "5", "10", "20", "50", "200", "1000"]
DELTAS = ["0.999999999999999", "0.9", "0.1", "0.01", "0.001", "1e-5", "1e-6", "1e-9", "1e-12", "1e-15", "1e-30", "1e-300", "1e-310"]
MUS = ["0.000001", "0.001", "0.02", "0.05", "0.1", "0.268", "0.5", "1", "2", "5", "10", "40"]


def phi(x):
    """The standard normal distribution function."""
    return erfc(-x / sqrt(mpf(2))) / 2


def curve(epsilon, mu):
    """delta(epsilon; mu)."""
    return phi(mu / 2 - epsilon / mu) - exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def bisect(low, high, is_low):
    """The number in [low, high] where is_low changes from true to false, to about 100 digits."""
    assert is_low(low) and not is_low(high)
    while high - low > mpf(10) ** -100 * high:
        middle = (low + high) / 2
        if is_low(middle):
            low = middle
        else:
            high = middle
    return low


def mu_for(epsilon, delta):
    """The mu with delta(epsilon; mu) = delta."""
    return bisect(mpf(2) ** -40, mpf(2) ** 7, lambda mu: curve(epsilon, mu) < delta)


def epsilon_for(mu, delta):
    """The epsilon with delta(epsilon; mu) = delta, or 0."""
    if curve(mpf(0), mu) <= delta:
        return mpf(0)
    return bisect(mpf(0), mu * mu / 2 + 45 * mu, lambda epsilon: curve(epsilon, mu) > delta)


def classical(epsilon, delta):
    """The mu of the classical calibration."""
    return epsilon / sqrt(2 * log(mpf("1.25") / delta))


def numerator(mu):
    return int(floor(mu * 2**32))


def below(text):
    """The float just below the float that the text reads as."""
    return mpf(math.nextafter(float(text), 0.0))


def digits(x):
    return nstr(x, DIGITS, min_fixed=0, max_fixed=0)


def delta_vectors():
    """delta at float epsilon and mu = numerator/2**32."""
    for epsilon in EPSILONS:
        for mu in MUS:
            n = numerator(mpf(mu))
            value = curve(mpf(float(epsilon)), mpf(n) / 2**32)
            if 1e-300 < value < 1 - 1e-15:
                yield {"epsilon": epsilon, "mu_numerator": n, "delta": digits(value)}


def mu_vectors():
    """mu at the decimal (epsilon, delta), and its numerator at the floats just below them."""
    for epsilon in EPSILONS:
        for delta in DELTAS:
            mu = mu_for(mpf(epsilon), mpf(delta))
            n = numerator(mu_for(below(epsilon), below(delta)))
            if n >= 1:
                yield {"epsilon": epsilon, "delta": delta, "mu": digits(mu), "numerator": n}


def classical_vectors():
    """The same for the classical calibration."""
    for epsilon in EPSILONS:
        if mpf(epsilon) <= 1:
            for delta in DELTAS:
                mu = classical(mpf(epsilon), mpf(delta))
                n = numerator(classical(below(epsilon), below(delta)))
                yield {"epsilon": epsilon, "delta": delta, "mu": digits(mu), "numerator": n}


def epsilon_vectors():
    """epsilon at decimal delta for `parties` parties that each spend mu = numerator/2**32."""
    for n in [1, 1000, numerator(mpf("0.001")), 1151271533, numerator(mpf("0.5")), 2**32, 3 * 2**32, 2**37]:
        for parties in [1, 2, 3, 6, 50]:
            for delta in ["0.1", "1e-5", "1e-9", "1e-15", "1e-30"]:
                mu = sqrt(mpf(parties)) * n / 2**32
                yield {
                    "mu_numerator": n,
                    "parties": parties,
                    "delta": delta,
                    "epsilon": digits(epsilon_for(mu, mpf(delta))),
                }


def write(name, vectors):
    rows = ",\n".join("  " + json.dumps(vector) for vector in vectors)
    with open(name, "w", encoding="ascii") as file:
        file.write("[\n" + rows + "\n]\n")


if __name__ == "__main__":
    write("delta.json", delta_vectors())
    write("mu.json", mu_vectors())
    write("classical.json", classical_vectors())
    write("epsilon.json", epsilon_vectors())
