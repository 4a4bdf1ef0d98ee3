//! Correlations, read from regressions: the slope of one column on another in standard deviations
//! is their correlation, and beside further columns it is their partial correlation up to what
//! these leave of both spreads.

use super::{Concern, Evidence, Interval, LearnError, Level, Posterior, posterior};

/// A correlation with its interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Correlation {
    /// The estimate, between −1 and 1.
    pub estimate: f64,
    /// Its interval, cut off at −1 and 1.
    pub interval: Interval,
    /// What published numbers say against it.
    pub concerns: Vec<Concern>,
}

/// The correlation of two columns given further ones, with an interval of this level.
///
/// The slope is that of `one` on `other`; the posterior learner allows for everything that a
/// coefficient's interval allows for.
pub fn correlation(
    evidence: &Evidence<'_>,
    one: usize,
    other: usize,
    given: &[usize],
    level: Level,
) -> Result<Correlation, LearnError> {
    let with = |first: usize| -> Vec<usize> { std::iter::once(first).chain(given.iter().copied()).collect() };
    let fit = posterior(evidence, one, &with(other), level)?;
    let left = |column: usize| -> Result<f64, LearnError> {
        let seen = evidence.covariance[(column, column)].max(3.0 * evidence.covariance_noise[column]);
        if given.is_empty() {
            return Ok(seen.sqrt());
        }
        let explained = posterior(evidence, column, given, level)?.explained;
        Ok((seen * (1.0 - explained)).max(0.0).sqrt())
    };
    Ok(Correlation::of(&fit, left(other)? / left(one)?.max(f64::MIN_POSITIVE)))
}

impl Correlation {
    /// The first coefficient in units of what is left of both spreads.
    fn of(fit: &Posterior, unit: f64) -> Self {
        let within = |value: f64| (value * unit).clamp(-1.0, 1.0);
        let Interval { lower, upper } = fit.intervals[0];
        Self {
            estimate: within(fit.estimate.weights()[0]),
            interval: Interval { lower: within(lower), upper: within(upper) },
            concerns: fit.concerns[0].clone(),
        }
    }

    /// Whether the interval excludes 0.
    pub fn is_resolved(&self) -> bool {
        self.interval.lower > 0.0 || self.interval.upper < 0.0
    }
}
