//! What standard errors to expect of coefficients, as a range: nobody may look at what decides
//! them, so three cases are assumed, from columns that suit a release to ones that are hard on it
//! (docs/LEARNERS.md#planning). Held against releases of real tables and of drawn populations by
//! `cargo run --release -p potluck-lab -- forecast`.

use super::kept_by_ball;
use crate::accounting::Mu;
use crate::calibrated::{Layout, Plan};
use crate::encoding::Encoder;

/// An effect is resolved if its interval excludes 0 in four cases of five: it is as large as so
/// many standard errors, Φ⁻¹(0.975) + Φ⁻¹(0.8).
pub const RESOLVED: f64 = 2.801_585;
/// How often.
pub const POWER: f64 = 0.8;
/// No effect is larger, in standard deviations of the label for one of the feature, unless features
/// are nearly collinear.
pub const LARGEST_EFFECT: f64 = 1.0;

/// Share of the label that features are taken to explain.
const EXPLAINED: f64 = 0.5;
/// Prior variance of a correlation between parties, as the learner has it for reading.
const WIDE: f64 = 0.25;
/// Standard deviations of what clipping takes from a correlation, over the loss of spread: between
/// parties, and twice as much within one.
const CLIPPED: f64 = 0.125;
/// Errors of estimates over what their intervals say, on the median: the range holds both.
const ERROR_OF_INTERVAL: f64 = 0.8;
/// Kinds of labels looked at where it may be any.
const MOST_LABELS: usize = 16;
/// Studies with more kinds of columns get no forecast: it must be quick.
pub const MOST_KINDS: usize = 200;
/// Steps of the search for numbers of people: so many for a factor of ten.
const STEPS: i32 = 20;
/// From 10² to 10¹².
const DECADES: std::ops::Range<i32> = 2..12;

/// What may be true of the people's columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Case {
    /// Columns suit the release.
    Good,
    /// As tables are.
    Typical,
    /// Columns are hard on it.
    Hard,
}

/// What is assumed of columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed {
    /// Standard deviation of a number over half of its public range.
    pub spread: f64,
    /// How many people have a level; as many as have each other one if none.
    pub share: Option<f64>,
    /// How much of a feature the other features explain.
    pub by_others: f64,
}

impl Case {
    /// All, from the best to the worst.
    pub const ALL: [Self; 3] = [Self::Good, Self::Typical, Self::Hard];

    /// What is assumed in this case.
    pub fn assumed(self) -> Assumed {
        match self {
            Self::Good => Assumed { spread: 0.577, share: Some(0.5), by_others: 0.0 },
            Self::Typical => Assumed { spread: 0.2, share: None, by_others: 0.5 },
            Self::Hard => Assumed { spread: 0.05, share: Some(0.05), by_others: 6.0 / 7.0 },
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Good => {
                "numbers spread evenly over their public ranges, half of the people have each level, no feature says anything of another"
            }
            Self::Typical => {
                "public ranges are ten standard deviations wide, levels are equally common, the other features explain half of each"
            }
            Self::Hard => {
                "public ranges are forty standard deviations wide (loose bounds, heavy tails), at most 5% of the people have each level, the other features explain 86% of each"
            }
        }
    }
}

/// What a case makes of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range<T> {
    /// In the good case.
    pub good: T,
    /// In the typical one.
    pub typical: T,
    /// In the hard one.
    pub hard: T,
}

impl<T> Range<T> {
    /// What each case makes of it.
    pub fn of(each: impl Fn(Case) -> T) -> Self {
        Self { good: each(Case::Good), typical: each(Case::Typical), hard: each(Case::Hard) }
    }
}

/// What kind of column it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// One of so many levels.
    Level(usize),
}

impl Kind {
    fn of(encoder: &Encoder) -> Self {
        match encoder {
            Encoder::Numeric(_) => Self::Number,
            Encoder::Categorical(levels) => Self::Level(levels.get()),
        }
    }

    /// How many features a column of this kind makes: a level less than it has.
    fn features(self) -> usize {
        match self {
            Self::Number => 1,
            Self::Level(levels) => levels - 1,
        }
    }
}

/// Columns of one party and kind: all that is public of them is alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alike {
    /// The party, counted from 0.
    pub party: usize,
    /// What they are.
    pub kind: Kind,
    /// How many there are.
    pub columns: usize,
}

impl Alike {
    /// Groups the columns of all parties.
    pub fn of(parties: &[Layout]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (party, layout) in parties.iter().enumerate() {
            for encoder in layout.encoders() {
                let kind = Kind::of(encoder);
                match all.iter_mut().find(|of| of.party == party && of.kind == kind) {
                    Some(of) => of.columns += 1,
                    None => all.push(Self { party, kind, columns: 1 }),
                }
            }
        }
        all
    }
}

/// How a party's columns are released.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scales {
    /// Variance of the noise in a mixed row.
    mixed: f64,
    /// How its columns were standardised, if they were.
    standardised: Option<Standardised>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Standardised {
    /// ρ.
    growth: f64,
    /// Noise in a mean and in a mean square of a round, in units of its window.
    sum_error: f64,
    square_error: f64,
    /// What the ball leaves of the variance of bell-shaped rows.
    kept: f64,
    /// Noise in an entry of the local covariance.
    local: f64,
}

impl Scales {
    /// Variance of a column in published units, without noise.
    fn signal(&self, kind: Kind, case: Case) -> f64 {
        let Assumed { spread, share, .. } = case.assumed();
        let of_levels = |levels: usize| {
            let equal = 1.0 / levels as f64;
            let share =
                share.map_or(equal, |share| if case == Case::Hard { share.min(equal) } else { share });
            share * (1.0 - share)
        };
        let Some(Standardised { growth, sum_error, square_error, kept, .. }) = self.standardised else {
            return match kind {
                Kind::Number => spread * spread,
                Kind::Level(levels) => of_levels(levels),
            };
        };
        // What spreads evenly hardly reaches beyond the ball.
        let kept = if case == Case::Good { 1.0 } else { kept };
        match kind {
            Kind::Number => {
                let variance = spread * spread;
                // The second round sees the box that the first one leaves.
                let reach = 3.0 * growth * (variance + square_error).sqrt() + 2.0 * sum_error;
                let window = reach.min(1.0);
                kept * variance / (variance + window * window * square_error)
            }
            // Levels are published in units of ½.
            Kind::Level(levels) => kept * 4.0 * of_levels(levels),
        }
    }

    /// What clipping takes of a spread, as a share of what is left.
    fn lost(&self) -> f64 {
        self.standardised.map_or(0.0, |of| of.kept.powf(-0.5) - 1.0)
    }
}

/// How a study is released, as far as standard errors go.
#[derive(Clone, Debug, PartialEq)]
pub struct Released {
    rows: f64,
    k: f64,
    columns: Vec<Alike>,
    parties: Vec<Scales>,
}

impl Released {
    /// A calibrated release.
    pub fn calibrated(plan: &Plan, parties: &[Layout]) -> Self {
        let scales = |layout: &Layout| {
            let width = layout.effective_width() as f64;
            let norm = plan.largest_norm(layout);
            let growth = norm / width.sqrt();
            let rows = layout.rows().unwrap_or(plan.rows()) as f64;
            let square_error = plan.round_error(layout);
            Scales {
                mixed: (2.0 * norm / plan.stage_mu(3)).powi(2),
                standardised: Some(Standardised {
                    growth,
                    sum_error: 2.77_f64.sqrt() * square_error,
                    square_error,
                    kept: kept_by_ball(width, growth),
                    local: 1.25 * norm * norm / (plan.stage_mu(2) * rows),
                }),
            }
        };
        Self {
            rows: plan.rows() as f64,
            k: plan.k() as f64,
            columns: Alike::of(parties),
            parties: parties.iter().map(scales).collect(),
        }
    }

    /// A release of mixed rows alone: k rows, with the standard deviation of each party's noise.
    pub fn mixed(rows: u64, k: u64, parties: &[Layout], noise: &[f64]) -> Self {
        let scales = |&noise: &f64| Scales { mixed: noise * noise, standardised: None };
        Self {
            rows: rows as f64,
            k: k as f64,
            columns: Alike::of(parties),
            parties: noise.iter().map(scales).collect(),
        }
    }

    /// The columns that are alike.
    pub fn columns(&self) -> &[Alike] {
        &self.columns
    }

    /// Where a column of a party stands among them.
    pub fn position(&self, party: usize, encoder: &Encoder) -> Option<usize> {
        self.columns.iter().position(|of| of.party == party && of.kind == Kind::of(encoder))
    }

    /// What the standard error of a coefficient of these columns will be, in standard deviations of
    /// the label for one of the feature: with a label among others of its kind, or with any label.
    pub fn standard_error(&self, feature: usize, label: Option<usize>) -> Range<f64> {
        let with = |label: usize, case: Case| self.in_case(feature, label, case);
        if let Some(label) = label {
            return Range::of(|case| with(label, case));
        }
        // One column of its kind cannot be both.
        let possible = |&label: &usize| {
            self.columns[label].kind.features() == 1 && (label != feature || self.columns[label].columns > 1)
        };
        let mut labels: Vec<usize> = (0..self.columns.len()).filter(possible).collect();
        if labels.is_empty() {
            labels = (0..self.columns.len()).collect();
        }
        let labels: Vec<usize> = labels.iter().copied().step_by(labels.len().div_ceil(MOST_LABELS)).collect();
        let all = |case: Case| labels.iter().map(move |&label| with(label, case));
        let columns: usize = labels.iter().map(|&label| self.columns[label].columns).sum();
        let logarithm = |(&label, error): (&usize, f64)| self.columns[label].columns as f64 * error.ln();
        let logarithms: f64 = labels.iter().zip(all(Case::Typical)).map(logarithm).sum();
        Range {
            good: all(Case::Good).fold(f64::INFINITY, f64::min),
            typical: (logarithms / columns as f64).exp(),
            hard: all(Case::Hard).fold(0.0, f64::max),
        }
    }

    /// The learner's variance of one coefficient (docs/LEARNERS.md#intervals-of-posterior), with
    /// what is assumed of columns in place of what is found.
    fn in_case(&self, feature: usize, label: usize, case: Case) -> f64 {
        let (n, k) = (self.rows, self.k);
        let signal = |at: usize| {
            let Alike { party, kind, .. } = self.columns[at];
            self.parties[party].signal(kind, case)
        };
        let noise = |at: usize| self.parties[self.columns[at].party].mixed / signal(at);
        let spread = |at: usize| n / k + noise(at);
        let (own, of_label) = (self.columns[feature].party, self.columns[label].party);
        // All features but this one, with how many there are.
        let others = || {
            self.columns.iter().enumerate().map(|(at, of)| {
                let itself = usize::from(at == feature) + usize::from(at == label);
                (at, (of.columns * of.kind.features()).saturating_sub(itself) as f64)
            })
        };
        let count = others().map(|(_, count)| count).sum::<f64>().max(1.0);
        let apart = others().filter(|(at, _)| self.columns[*at].party != of_label);
        let apart = apart.map(|(_, count)| count).sum::<f64>() + f64::from(own != of_label);
        let effect = EXPLAINED / count;
        let rest = 1.0 - EXPLAINED;
        let inflation = 1.0 / (1.0 - case.assumed().by_others);
        let carried = inflation * inflation;

        let local = |at: usize, other: usize| {
            let noise = self.parties[self.columns[at].party].standardised.map_or(0.0, |of| of.local);
            noise * noise / (signal(at) * signal(other))
        };
        let beside = own == of_label && self.parties[own].standardised.is_some();
        let main = if beside {
            local(feature, label) * carried
        } else {
            let passed: f64 = others().map(|(at, count)| count * effect * noise(at)).sum();
            let scale = k / (n * n);
            let equation = (n / k) * rest + noise(label) + passed;
            scale * ((n / k) * inflation + noise(feature) * carried) * equation
        };
        let crossed = |(at, count): (usize, f64)| {
            if self.columns[at].party == own && self.parties[own].standardised.is_some() {
                return count * effect * local(feature, at) * carried;
            }
            let variance = k / (n * n) * spread(feature) * spread(at);
            let theta = WIDE / (WIDE + variance);
            let unknown = if self.columns[at].party == of_label {
                0.0
            } else {
                // At most half of what features leave open.
                let most = 0.5 * rest / apart.max(1.0);
                (k / (n * n) * spread(at) * spread(label)).min(most)
            };
            if case == Case::Good {
                // Correlations that are not there carry nothing.
                return if beside { count * effect * theta * theta * variance } else { 0.0 };
            }
            let read = (unknown + if beside { effect } else { 0.0 }) * theta * theta * variance;
            let open = (effect + unknown) * (1.0 - theta).powi(2) * theta * variance;
            count * (read + open) * carried
        };
        let crossed: f64 = others().map(crossed).sum();
        let clipped = if case == Case::Good {
            0.0
        } else {
            let within = if beside { 2.0 } else { 1.0 };
            let lost = self.parties[own].lost() + self.parties[of_label].lost();
            (within * CLIPPED * lost).powi(2) * effect * carried
        };
        let sampling = rest * inflation / n;
        let error = (main + crossed + clipped + sampling).sqrt();
        if case == Case::Good { ERROR_OF_INTERVAL * error } else { error }
    }
}

/// How many people it takes to resolve effects of different sizes by a calibrated release: the
/// release of these columns at this privacy for growing numbers of people.
#[derive(Clone, Debug)]
pub struct Crowds(Vec<(u64, Released)>);

impl Crowds {
    /// Of these columns at this privacy.
    pub fn new(mu: Mu, parties: &[Layout]) -> Self {
        let released = |step: i32| {
            let rows = 10_f64.powf(f64::from(step) / f64::from(STEPS)).round() as u64;
            let plan = Plan::new(rows, mu, parties, None).ok()?;
            Some((rows, Released::calibrated(&plan, parties)))
        };
        Self((DECADES.start * STEPS..=DECADES.end * STEPS).filter_map(released).collect())
    }

    /// The smallest number of people, with two digits, from which on an effect of this size is
    /// resolved; nothing if that takes more than anybody has.
    pub fn to_resolve(&self, effect: f64, feature: usize, label: Option<usize>) -> Range<Option<u64>> {
        Range::of(|case| {
            let fails = |(_, released): &(u64, Released)| {
                RESOLVED * case.pick(&released.standard_error(feature, label)) > effect
            };
            let (rows, _) = self.0.get(self.0.partition_point(fails))?;
            let digit = 10_u64.pow(rows.ilog10().saturating_sub(1));
            Some(rows.div_ceil(digit) * digit)
        })
    }
}

impl Case {
    /// What this case makes of it.
    pub fn pick<T: Copy>(self, range: &Range<T>) -> T {
        match self {
            Self::Good => range.good,
            Self::Typical => range.typical,
            Self::Hard => range.hard,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::accounting::{Delta, Epsilon};
    use crate::encoding::{Bounds, LevelCount};

    fn layouts() -> Vec<Layout> {
        let number = || Encoder::Numeric(Bounds::new(0.0, 1.0).unwrap());
        let levels = |count| Encoder::Categorical(LevelCount::new(count).unwrap());
        vec![Layout::new(vec![number(), number()]), Layout::new(vec![levels(5), number()])]
    }

    fn mu(epsilon: f64) -> Mu {
        Mu::analytic(Epsilon::new(epsilon).unwrap(), Delta::new(1e-6).unwrap()).unwrap()
    }

    fn released(epsilon: f64, rows: u64) -> Released {
        Released::calibrated(&Plan::new(rows, mu(epsilon), &layouts(), None).unwrap(), &layouts())
    }

    #[test]
    fn a_harder_case_is_never_easier_whatever_the_label() {
        for rows in [1_000, 100_000, 10_000_000] {
            let released = released(1.0, rows);
            for feature in 0..released.columns().len() {
                for label in [None, Some(0), Some(2)] {
                    let Range { good, typical, hard } = released.standard_error(feature, label);
                    assert!(0.0 < good && good <= typical && typical <= hard, "{rows} {feature} {label:?}");
                }
            }
        }
    }

    #[test]
    fn a_column_beside_the_label_is_known_best() {
        let released = released(1.0, 100_000);
        // Groups in order: two numbers of the first party, levels and a number of the second.
        let with = |label| released.standard_error(0, Some(label)).typical;
        assert!(with(0) < with(2));
    }

    #[test]
    fn effects_are_resolved_by_as_many_people_as_it_says_and_by_no_fewer() {
        let crowds = Crowds::new(mu(1.0), &layouts());
        let effect = 0.1;
        let needed = crowds.to_resolve(effect, 0, Some(2));
        for case in Case::ALL {
            let rows = case.pick(&needed).unwrap();
            let at = |rows: u64| case.pick(&released(1.0, rows).standard_error(0, Some(2)));
            assert!(RESOLVED * at(rows) <= effect && RESOLVED * at(rows / 2) > effect, "{case:?} {rows}");
        }
        assert!(needed.good < needed.typical && needed.typical < needed.hard);
    }
}
