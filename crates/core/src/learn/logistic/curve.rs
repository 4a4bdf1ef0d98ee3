//! The logistic curve over bell-shaped log odds: means, slopes, and what gives a mean.

/// Nodes of the trapezoidal rule, in standard deviations: for a smooth function under a bell it is
/// exact to rounding once steps are this short (Trefethen and Weideman 2014).
const REACH: f64 = 7.0;
const STEP: f64 = 0.25;
/// Log odds beyond this are as good as certain.
const MOST: f64 = 40.0;

/// 1/(1 + e⁻ᵗ).
pub(super) fn sigmoid(t: f64) -> f64 {
    1.0 / (1.0 + (-t).exp())
}

/// Log odds of a probability.
pub(super) fn logit(share: f64) -> f64 {
    (share / (1.0 - share)).ln()
}

/// Points under a standard bell with their weights, which sum to one.
pub(super) fn nodes() -> impl Iterator<Item = (f64, f64)> {
    let steps = (REACH / STEP) as i32;
    let height = STEP / (2.0 * std::f64::consts::PI).sqrt();
    (-steps..=steps).map(move |at| {
        let z = f64::from(at) * STEP;
        (z, height * (-0.5 * z * z).exp())
    })
}

/// What the curve does over log odds that are bell-shaped: the mean of it and of its first three
/// derivatives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Curve {
    pub(super) mean: f64,
    pub(super) slope: f64,
    pub(super) bend: f64,
    pub(super) third: f64,
}

impl Curve {
    pub(super) fn over(centre: f64, variance: f64) -> Self {
        let spread = variance.max(0.0).sqrt();
        let mut curve = Self { mean: 0.0, slope: 0.0, bend: 0.0, third: 0.0 };
        for (z, weight) in nodes() {
            let s = sigmoid(centre + spread * z);
            let slope = s * (1.0 - s);
            curve.mean += weight * s;
            curve.slope += weight * slope;
            curve.bend += weight * slope * (1.0 - 2.0 * s);
            curve.third += weight * slope * (1.0 - 6.0 * slope);
        }
        curve
    }

    /// The centre at which bell-shaped log odds of this variance have the mean probability `share`,
    /// with the curve there.
    pub(super) fn with_mean(share: f64, variance: f64) -> (f64, Self) {
        let target = logit(share);
        // Newton's method on the log odds of the mean, which are nearly linear in the centre.
        let mut centre = target * (1.0 + variance * std::f64::consts::PI / 8.0).sqrt();
        let mut curve = Self::over(centre, variance);
        for _ in 0..40 {
            let step = (target - logit(curve.mean)) * curve.mean * (1.0 - curve.mean) / curve.slope;
            centre = (centre + step).clamp(-MOST, MOST);
            curve = Self::over(centre, variance);
            if step.abs() < 1e-12 {
                break;
            }
        }
        (centre, curve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_bell_is_the_curve_itself() {
        let curve = Curve::over(1.2, 0.0);
        let s = sigmoid(1.2);
        assert!((curve.mean - s).abs() < 1e-11);
        assert!((curve.slope - s * (1.0 - s)).abs() < 1e-11);
    }

    /// Against sums over a grid that is forty times as fine.
    #[test]
    fn means_are_exact() {
        for (centre, variance) in [(0.3, 0.5), (-4.0, 3.0), (2.0, 12.0)] {
            let fine = (-40_000..=40_000).map(|at| f64::from(at) / 4000.0);
            let (mut mean, mut slope, mut total) = (0.0, 0.0, 0.0);
            for z in fine {
                let weight = (-0.5_f64 * z * z).exp();
                let s = sigmoid(centre + f64::sqrt(variance) * z);
                (mean, slope, total) = (mean + weight * s, slope + weight * s * (1.0 - s), total + weight);
            }
            let curve = Curve::over(centre, variance);
            assert!((curve.mean - mean / total).abs() < 1e-9, "{centre} {variance}");
            assert!((curve.slope - slope / total).abs() < 1e-9, "{centre} {variance}");
        }
    }

    #[test]
    fn the_centre_gives_back_the_mean() {
        for share in [0.001, 0.05, 0.5, 0.9] {
            for variance in [0.0, 1.0, 20.0] {
                let (_, curve) = Curve::with_mean(share, variance);
                assert!((curve.mean / share - 1.0).abs() < 1e-9, "{share} {variance}");
            }
        }
    }
}
