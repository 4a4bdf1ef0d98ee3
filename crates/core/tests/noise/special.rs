//! The distribution functions that the battery needs, from their series and continued fractions.
//!
//! Kept apart from the crate's own accounting on purpose: a test should not lean on what it tests
//! beside. Absolute errors are below 1e-13, relative errors of upper tails below 1e-11.

/// P(g ≥ x) for a standard normal g.
pub(crate) fn normal_upper_tail(x: f64) -> f64 {
    if x < 0.0 {
        return 1.0 - normal_upper_tail(-x);
    }
    let density = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    if x < 3.0 {
        // Marsaglia 2004: Φ(x) = ½ + φ(x)(x + x³/3 + x⁵/(3·5) + …)
        let (mut term, mut sum, mut odd) = (x, x, 1.0);
        while term > 1e-18 * sum {
            odd += 2.0;
            term *= x * x / odd;
            sum += term;
        }
        0.5 - density * sum
    } else {
        // Laplace: φ(x)/(x + 1/(x + 2/(x + 3/(x + …))))
        let fraction = (1..200).rev().fold(x, |tail, i| x + f64::from(i) / tail);
        density / fraction
    }
}

/// P(a ≤ g < b) for a standard normal g, a ≤ b; either may be infinite.
pub(crate) fn normal_between(a: f64, b: f64) -> f64 {
    // On the side where both tails are small, so that nothing cancels.
    if a + b < 0.0 {
        normal_upper_tail(-b) - normal_upper_tail(-a)
    } else {
        normal_upper_tail(a) - normal_upper_tail(b)
    }
}

/// P(|g| ≥ |z|).
pub(crate) fn normal_two_sided(z: f64) -> f64 {
    2.0 * normal_upper_tail(z.abs())
}

/// ln Γ(x) for x > 0, by Stirling's series after shifting x beyond 10.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

/// The regularised incomplete gamma functions (P(a, x), Q(a, x)), a > 0, x ≥ 0.
fn incomplete_gamma(a: f64, x: f64) -> (f64, f64) {
    if x == 0.0 {
        return (0.0, 1.0);
    }
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > 1e-17 * sum {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        (front * sum, 1.0 - front * sum)
    } else {
        // Lentz's method on the continued fraction of Q.
        let mut b = x + 1.0 - a;
        let (mut c, mut d) = (1e300, 1.0 / b);
        let mut value = d;
        for i in 1..100_000 {
            let numerator = -f64::from(i) * (f64::from(i) - a);
            b += 2.0;
            d = 1.0 / (numerator * d + b);
            c = b + numerator / c;
            let factor = c * d;
            value *= factor;
            if (factor - 1.0).abs() < 1e-15 {
                break;
            }
        }
        (1.0 - front * value, front * value)
    }
}

/// P(X ≥ statistic) for a χ² variable of that many degrees of freedom.
pub(crate) fn chi_square_upper_tail(statistic: f64, degrees: usize) -> f64 {
    incomplete_gamma(degrees as f64 / 2.0, statistic / 2.0).1
}

/// How unusual a Poisson count is, both ways: 2·min(P(X ≤ count), P(X ≥ count)), at most 1.
pub(crate) fn poisson_two_sided(count: usize, mean: f64) -> f64 {
    let at_least = if count == 0 { 1.0 } else { incomplete_gamma(count as f64, mean).0 };
    let at_most = incomplete_gamma(count as f64 + 1.0, mean).1;
    (2.0 * at_least.min(at_most)).min(1.0)
}

/// P(D ≥ distance) for Kolmogorov's distance of `n` samples, with Stephens' 1970 correction.
pub(crate) fn kolmogorov_upper_tail(distance: f64, n: usize) -> f64 {
    let root = (n as f64).sqrt();
    let t = (root + 0.12 + 0.11 / root) * distance;
    if t < 0.3 {
        return 1.0; // the alternating series needs many terms, and P > 0.9999
    }
    let term = |i: i32| (-2.0 * f64::from(i * i) * t * t).exp();
    (1..50).map(|i| if i % 2 == 1 { 2.0 } else { -2.0 } * term(i)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from SciPy 1.17.1: norm.sf, chi2.sf, poisson.cdf/sf, kstwobign.sf.
    #[test]
    fn agree_with_scipy() {
        for (value, scipy) in [
            (normal_upper_tail(0.5), 0.308_537_538_725_986_9),
            (normal_upper_tail(2.9), 0.001_865_813_300_384_037_5),
            (normal_upper_tail(3.1), 0.000_967_603_213_218_356_3),
            (normal_upper_tail(-1.0), 0.841_344_746_068_542_9),
            (normal_upper_tail(6.5), 4.016_000_583_859_088e-11),
            (normal_between(-6.5, -6.0), 9.464_276_391_991_037e-10),
            (chi_square_upper_tail(10.0, 10), 0.440_493_285_065_212_57),
            (chi_square_upper_tail(400.0, 255), 1.660_002_524_412_339_7e-8),
            (chi_square_upper_tail(1.0, 3), 0.801_251_956_901_200_9),
            (chi_square_upper_tail(200.0, 25), 3.067_349_163_473_132_7e-29),
            (poisson_two_sided(0, 12.5), 2.0 * 3.726_653_172_078_671_8e-6),
            (poisson_two_sided(130, 100.0), 2.0 * 0.002_282_093_054_316_954_4),
            (kolmogorov_upper_tail(0.002, 1_000_000), 0.000_669_637_059_301_017_2),
        ] {
            assert!((value / scipy - 1.0).abs() < 1e-11, "{value} against SciPy's {scipy}");
        }
    }
}
