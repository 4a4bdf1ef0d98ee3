//! Quantiles of Student's t distribution.
//!
//! The tail probability is a regularised incomplete beta function, P(|T| > t) = I_x(ν/2, ½) with x
//! = ν/(ν + t²) (Abramowitz & Stegun 1964, 26.7.1), evaluated by the continued fraction of
//! Algorithm 708 (DiDonato & Morris 1992). Nothing in it cancels as x nears 1, so one method serves
//! any ν.

use super::Level;

/// The t for which P(|T| ≤ t) is the level, with ν > 0 `degrees` of freedom.
pub fn two_sided_quantile(level: Level, degrees: usize) -> f64 {
    reach(1.0 - level.get(), degrees as f64)
}

/// The t for which P(|T| > t) is the tail.
fn reach(tail: f64, nu: f64) -> f64 {
    let mut high = 1.0;
    while two_sided_tail(high, nu) > tail {
        high *= 2.0;
    }
    let mut low = 0.0;
    // The tail falls in t: bisect until no double lies between (200 steps cover every level).
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if two_sided_tail(middle, nu) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// P(T ≤ t).
pub(super) fn distribution(t: f64, nu: f64) -> f64 {
    let tail = two_sided_tail(t.abs(), nu) / 2.0;
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The t for which P(T ≤ t) is the probability.
pub(super) fn quantile(probability: f64, nu: f64) -> f64 {
    let central = (2.0 * probability - 1.0).abs();
    let reach = if central > 0.0 { reach(1.0 - central, nu) } else { 0.0 };
    if probability < 0.5 { -reach } else { reach }
}

/// P(|T| > t) for t ≥ 0 and ν > 0.
pub fn two_sided_tail(t: f64, nu: f64) -> f64 {
    let a = nu / 2.0;
    let ratio = t * t / nu;
    let x = 1.0 / (1.0 + ratio);
    let y = ratio * x;
    // xᵃ·y^½ / B(a, ½); the logarithm of x is taken directly, since x is near 1 when ν is large.
    let front = (-a * ratio.ln_1p()).exp() * y.sqrt() * gamma_ratio(a) / std::f64::consts::PI.sqrt();
    // The fraction needs x below a/(a + b), that is t above 1; otherwise it takes the other tail.
    if a * y > 0.5 * x {
        front / continued_fraction(a, 0.5, x, y)
    } else {
        1.0 - front / continued_fraction(0.5, a, y, x)
    }
}

/// Γ(a + ½)/Γ(a), without the cancellation of two logarithms of Γ.
fn gamma_ratio(a: f64) -> f64 {
    let mut a = a;
    let mut factor = 1.0;
    while a < 100.0 {
        factor *= a / (a + 0.5);
        a += 1.0;
    }
    // Asymptotic series in 1/a (Tricomi & Erdélyi 1951); the first term left out is below 1e-16.
    let series = [
        1.0,
        -1.0 / 8.0,
        1.0 / 128.0,
        5.0 / 1024.0,
        -21.0 / 32768.0,
        -399.0 / 262_144.0,
        869.0 / 4_194_304.0,
    ];
    factor * a.sqrt() * series.iter().rev().fold(0.0, |sum, term| sum / a + term)
}

/// The continued fraction f of I_x(a, b) = xᵃyᵇ/(B(a, b)·f), y = 1 − x, by the modified Lentz
/// method.
fn continued_fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let distance = a * y - b * x + 1.0;
    let mut f = a * distance / (a + 1.0);
    let (mut c, mut d) = (f, 0.0);
    let mut m = 0.0;
    // Fewer than 200 terms are needed for any ν and t.
    while m < 1000.0 {
        m += 1.0;
        let odd = a + 2.0 * m - 1.0;
        let alpha = (a + m - 1.0) * (a + b + m - 1.0) * m * (b - m) * (x / odd).powi(2);
        let beta = m + m * (b - m) * x / odd + (a + m) * (distance + m * (1.0 + y)) / (odd + 2.0);
        d = 1.0 / (beta + alpha * d);
        c = beta + alpha / c;
        f *= c * d;
        if (c * d - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    f
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed step is a failed test
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_scipy() {
        let cases: serde_json::Value =
            serde_json::from_str(include_str!("../../../../vectors/learn/student.json")).unwrap();
        for case in cases["quantiles"].as_array().unwrap() {
            let level = Level::new(case["level"].as_f64().unwrap()).unwrap();
            let degrees = case["degrees"].as_u64().unwrap() as usize;
            let expected = case["quantile"].as_f64().unwrap();
            let found = two_sided_quantile(level, degrees);
            assert!((found / expected - 1.0).abs() < 1e-12, "{case}: {found}");
        }
    }

    #[test]
    fn one_and_two_degrees_have_closed_forms() {
        for level in [1e-6, 0.1, 0.5, 0.9, 0.95, 0.999, 1.0 - 1e-9] {
            let checked = Level::new(level).unwrap();
            // Both by the tail, 1 - level, which the quantile sees.
            let tail = 1.0 - level;
            let cauchy = 1.0 / (std::f64::consts::FRAC_PI_2 * tail).tan();
            let two = (1.0 - tail) * (2.0 / (tail * (2.0 - tail))).sqrt();
            assert!((two_sided_quantile(checked, 1) / cauchy - 1.0).abs() < 1e-9, "{level}");
            assert!((two_sided_quantile(checked, 2) / two - 1.0).abs() < 1e-9, "{level}");
        }
    }

    #[test]
    fn the_tail_falls_across_the_switch_of_the_continued_fraction() {
        for nu in [1.0, 2.0, 7.0, 100.0, 1e6] {
            let mut last = 1.0;
            for step in 1..4000 {
                let tail = two_sided_tail(f64::from(step) * 1e-3, nu);
                assert!(tail < last && tail > 0.0, "{nu} {step}");
                last = tail;
            }
        }
    }
}
