//! Made-up people, and what stands for them when rows are mixed.

use std::ops::Range;
use std::sync::OnceLock;

use potluck_core::encoding::{MISSING_LEVEL, RowEncoder, Values};
use potluck_core::mixing::{MixingKey, SubjectDigest};
use potluck_core::stage::{Stage, Statistic};

/// Made-up values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Numbers.
    Numbers(Vec<f64>),
    /// Level codes, counted from 0.
    Levels(Vec<u32>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Levels(codes) => codes.len(),
        }
    }

    /// The values of these people.
    fn of(&self, people: &[usize]) -> Self {
        match self {
            Self::Numbers(numbers) => Self::Numbers(people.iter().map(|&at| numbers[at]).collect()),
            Self::Levels(codes) => Self::Levels(people.iter().map(|&at| codes[at]).collect()),
        }
    }

    /// Takes the values away that are not `there`.
    pub(crate) fn without(&mut self, mut there: impl FnMut() -> bool) {
        match self {
            Self::Numbers(numbers) => {
                for number in numbers {
                    *number = if there() { *number } else { f64::NAN };
                }
            }
            Self::Levels(codes) => {
                for code in codes {
                    *code = if there() { *code } else { MISSING_LEVEL };
                }
            }
        }
    }

    pub(crate) fn batch(&self, rows: Range<usize>) -> Values<'_> {
        match self {
            Self::Numbers(numbers) => Values::Numbers(&numbers[rows]),
            Self::Levels(codes) => Values::Levels(&codes[rows]),
        }
    }
}

/// Made-up people: the columns of every party, in the order of their study.
pub struct People {
    rows: usize,
    parties: Vec<Vec<Column>>,
    /// Whom each party holds, in order; everybody if it is not said.
    held: Option<Vec<Vec<usize>>>,
    first: OnceLock<FirstSums>,
}

/// Exact sums of every party's first stage, and how they were encoded and summed.
struct FirstSums {
    of: Vec<(RowEncoder, Statistic)>,
    sums: Vec<Vec<i64>>,
}

impl People {
    /// So many people; every column has a value for each.
    pub fn new(rows: usize, parties: Vec<Vec<Column>>) -> Self {
        assert!(parties.iter().flatten().all(|column| column.len() == rows), "one value a person");
        Self { rows, parties, held: None, first: OnceLock::new() }
    }

    /// The same if each party holds some of them only, named in order.
    #[must_use]
    pub fn held_by(self, held: Vec<Vec<usize>>) -> Self {
        assert_eq!(held.len(), self.parties.len(), "it is known of every party");
        Self { held: Some(held), first: OnceLock::new(), ..self }
    }

    /// How many a party holds.
    pub fn rows_of(&self, party: usize) -> usize {
        self.held(party).map_or(self.rows, <[usize]>::len)
    }

    /// Whether every party holds everybody.
    pub fn are_everywhere(&self) -> bool {
        self.held.is_none()
    }

    /// Whom a party holds, if not everybody.
    pub(crate) fn held(&self, party: usize) -> Option<&[usize]> {
        self.held.as_ref().map(|held| held[party].as_slice())
    }

    /// Values of these people, column by column.
    pub(crate) fn of(&self, party: usize, people: &[usize]) -> Vec<Column> {
        self.parties[party].iter().map(|column| column.of(people)).collect()
    }

    /// How many they are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The columns of each party.
    pub fn parties(&self) -> &[Vec<Column>] {
        &self.parties
    }

    /// Values of some people, column by column.
    pub(crate) fn batch(&self, party: usize, rows: Range<usize>) -> Vec<Values<'_>> {
        self.parties[party].iter().map(|column| column.batch(rows.clone())).collect()
    }

    /// The sums of every party's first stage, kept for the next simulation: they are the same
    /// whatever the privacy.
    pub(crate) fn first_sums(&self, stages: &[Stage], compute: impl Fn() -> Vec<Vec<i64>>) -> Vec<Vec<i64>> {
        let kept = self.first.get_or_init(|| FirstSums {
            of: stages.iter().map(|stage| (stage.encoder.clone(), stage.statistic.clone())).collect(),
            sums: compute(),
        });
        let same = |(stage, of): (&Stage, &(RowEncoder, Statistic))| {
            stage.encoder == of.0 && stage.statistic == of.1
        };
        if stages.iter().zip(&kept.of).all(same) { kept.sums.clone() } else { compute() }
    }
}

/// What stands for people 0, 1, … under a mixing key.
pub struct Subjects {
    key: MixingKey,
    digests: Vec<SubjectDigest>,
}

impl Subjects {
    /// So many people under `key`.
    pub fn new(key: MixingKey, rows: usize) -> Self {
        let mut digests = Vec::with_capacity(rows);
        key.add_numbered(0..rows, &mut digests);
        Self { key, digests }
    }

    /// The mixing key, for the study to be sealed with.
    pub fn key(&self) -> &MixingKey {
        &self.key
    }

    /// One a person.
    pub fn digests(&self) -> &[SubjectDigest] {
        &self.digests
    }
}
