//! The columns of one party.

use super::bins;
use crate::encoding::{Bins, Encoder, Presence};

/// The columns of one party, and what is public of its table.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    encoders: Vec<Encoder>,
    /// For each encoded column, whether it is numeric rather than a level.
    numeric: Vec<bool>,
    /// In releases of format 2.
    cohort: Option<Cohort>,
}

/// What is public of a party's own people.
#[derive(Clone, Debug, PartialEq)]
struct Cohort {
    presence: Presence,
    /// Of each raw column, a value that it is near.
    typical: Vec<Option<f64>>,
    /// Nᵢ: about how many there are.
    rows: u64,
}

/// What is declared of a raw column in releases of format 2.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Declared {
    /// Whether its values may be missing.
    pub may_miss: bool,
    /// A value that it is near, if one is known.
    pub typical: Option<f64>,
}

impl Layout {
    /// Columns with these encodings, for releases of format 1: all parties have the same subjects,
    /// and what is missing is not told.
    pub fn new(encoders: Vec<Encoder>) -> Self {
        let kinds = |encoder: &Encoder| vec![matches!(encoder, Encoder::Numeric(_)); encoder.width()];
        let numeric = encoders.iter().flat_map(kinds).collect();
        Self { encoders, numeric, cohort: None }
    }

    /// The same for releases of format 2: the party has about `rows` subjects, and publishes how
    /// many values are there of columns that may be missing.
    pub fn of_cohort(encoders: Vec<Encoder>, declared: &[Declared], rows: u64) -> Self {
        assert_eq!(encoders.len(), declared.len(), "it is known of every column");
        let may_miss: Vec<bool> = declared.iter().map(|column| column.may_miss).collect();
        let typical = declared.iter().map(|column| column.typical).collect();
        let presence = Presence::new(&may_miss);
        Self { cohort: Some(Cohort { presence, typical, rows }), ..Self::new(encoders) }
    }

    /// The cells of each numeric column in order, in releases of format 2.
    pub fn bins(&self) -> Vec<Bins> {
        let Some(cohort) = &self.cohort else { return Vec::new() };
        let of = |(encoder, &typical): (&Encoder, &Option<f64>)| match *encoder {
            Encoder::Numeric(bounds) => Some(bins(bounds, typical)),
            Encoder::Categorical(_) => None,
        };
        self.encoders.iter().zip(&cohort.typical).filter_map(of).collect()
    }

    /// For each encoded column, whether it is that of a column with two levels.
    pub(super) fn two_levels(&self) -> Vec<bool> {
        let of = |encoder: &Encoder| vec![matches!(Kind::of(*encoder), Kind::TwoLevels); encoder.width()];
        self.encoders.iter().flat_map(of).collect()
    }

    /// The encoding of each column.
    pub(crate) fn encoders(&self) -> &[Encoder] {
        &self.encoders
    }

    /// For each encoded column, whether it is numeric rather than a level.
    pub(super) fn numeric(&self) -> &[bool] {
        &self.numeric
    }

    /// The presence groups of the columns, in releases of format 2.
    pub fn presence(&self) -> Option<&Presence> {
        self.cohort.as_ref().map(|cohort| &cohort.presence)
    }

    /// Nᵢ: about how many subjects the party has, in releases of format 2.
    pub fn rows(&self) -> Option<u64> {
        self.cohort.as_ref().map(|cohort| cohort.rows)
    }

    /// G: number of presence groups; 0 in releases of format 1.
    pub fn groups(&self) -> usize {
        self.presence().map_or(0, Presence::count)
    }

    /// The presence group of each encoded column.
    pub fn encoded_groups(&self) -> Vec<usize> {
        let Some(presence) = self.presence() else { return Vec::new() };
        let of_column = |(column, encoder): (usize, &Encoder)| vec![presence.group(column); encoder.width()];
        self.encoders.iter().enumerate().flat_map(of_column).collect()
    }

    /// d: number of encoded columns.
    pub fn width(&self) -> usize {
        self.numeric.len()
    }

    /// d_e: encoded columns that can vary on their own; the levels of a column sum to one.
    pub fn effective_width(&self) -> usize {
        let dependent = self.encoders.iter().filter(|encoder| encoder.width() > 1).count();
        self.width() - dependent
    }

    /// Encoded columns whose squares a standardisation round sums up.
    pub(super) fn squares(&self) -> Vec<usize> {
        (0..self.width()).filter(|&column| self.numeric[column]).collect()
    }

    /// Δ²: by how much replacing a subject can change a standardisation round, in units where Q is
    /// 1.
    ///
    /// # Privacy
    /// 4 for a numeric column, 2 for one with more than two levels, 1 for one with two: Lemma S,
    /// docs/PRIVACY.md#standardisation-stages-1-and-2; and Lemma S′,
    /// docs/PRIVACY.md#standardisation-with-counts-stage-2.
    pub(super) fn change_squared(&self) -> u128 {
        self.sum_over_columns(|kind| match kind {
            Kind::Numeric => 4,
            Kind::ManyLevels => 2,
            Kind::TwoLevels => 1,
        })
    }

    /// Δ₁²: by how much replacing a subject can change the shapes, in units where Q is 1.
    ///
    /// # Privacy
    /// 5 for a numeric column, 2 for one with more than two levels, 1 for one with two: Lemma S1,
    /// docs/PRIVACY.md#shapes-stage-1.
    pub(super) fn shapes_change_squared(&self) -> u128 {
        self.sum_over_columns(|kind| match kind {
            Kind::Numeric => 5,
            Kind::ManyLevels => 2,
            Kind::TwoLevels => 1,
        })
    }

    /// Weights of the counts of each presence group among the shapes, in hundredths.
    ///
    /// # Privacy
    /// The sums over the columns of a group of 73/100 for a numeric one, 1 for one with more than
    /// two levels, 3/4 for one with two: Lemma S1, docs/PRIVACY.md#shapes-stage-1.
    pub(super) fn shapes_count_weights(&self) -> Vec<u128> {
        self.group_weights(|kind| match kind {
            Kind::Numeric => 73,
            Kind::ManyLevels => 100,
            Kind::TwoLevels => 75,
        })
    }

    /// Weights of the counts of each presence group in a standardisation round, in hundredths.
    ///
    /// # Privacy
    /// The sums over the columns of a group of 23/100 for a numeric one, 1 for one with more than
    /// two levels, 3/4 for one with two: Lemma S′,
    /// docs/PRIVACY.md#standardisation-with-counts-stage-2.
    pub(super) fn round_count_weights(&self) -> Vec<u128> {
        self.group_weights(|kind| match kind {
            Kind::Numeric => 23,
            Kind::ManyLevels => 100,
            Kind::TwoLevels => 75,
        })
    }

    fn sum_over_columns(&self, of: impl Fn(Kind) -> u128) -> u128 {
        self.encoders.iter().map(|&encoder| of(Kind::of(encoder))).sum()
    }

    fn group_weights(&self, of: impl Fn(Kind) -> u128) -> Vec<u128> {
        let mut weights = vec![0; self.groups()];
        if let Some(presence) = self.presence() {
            for (column, &encoder) in self.encoders.iter().enumerate() {
                weights[presence.group(column)] += of(Kind::of(encoder));
            }
        }
        weights
    }
}

/// What kind of column it is, as far as its sensitivity goes.
#[derive(Clone, Copy)]
enum Kind {
    Numeric,
    TwoLevels,
    ManyLevels,
}

impl Kind {
    fn of(encoder: Encoder) -> Self {
        match encoder {
            Encoder::Numeric(_) => Self::Numeric,
            Encoder::Categorical(levels) if levels.width() > 1 => Self::ManyLevels,
            Encoder::Categorical(_) => Self::TwoLevels,
        }
    }
}
