//! Made-up people, and what stands for them when rows are mixed.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use potluck_core::encoding::{RowEncoder, Values};
use potluck_core::mixing::{MixingKey, SubjectDigest};
use potluck_core::stage::{Stage, Statistic};

/// Made-up values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Numbers; NaN is missing.
    Numbers(Vec<f64>),
    /// Level codes, counted from 0; [`potluck_core::encoding::MISSING_LEVEL`] is missing.
    Levels(Vec<u32>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Levels(codes) => codes.len(),
        }
    }

    fn batch(&self, rows: Range<usize>) -> Values<'_> {
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
    /// Who each party's rows are, by position among everybody.
    members: Option<Vec<Vec<u32>>>,
    first: OnceLock<FirstSums>,
}

/// Exact sums of every party's first stage, and how they were encoded and summed.
struct FirstSums {
    of: Vec<(RowEncoder, Statistic)>,
    sums: Vec<Vec<i64>>,
}

impl People {
    /// So many people, whom every party holds; every column has a value for each, which may be
    /// missing.
    pub fn new(rows: usize, parties: Vec<Vec<Column>>) -> Self {
        assert!(parties.iter().flatten().all(|column| column.len() == rows), "one value a person");
        Self { rows, parties, members: None, first: OnceLock::new() }
    }

    /// So many people, some of whom each party holds: those at these positions, one a row of its
    /// columns.
    pub fn some_at_each(rows: usize, parties: Vec<(Vec<u32>, Vec<Column>)>) -> Self {
        for (members, columns) in &parties {
            assert!(columns.iter().all(|column| column.len() == members.len()), "one value a person");
            assert!(members.iter().all(|&member| (member as usize) < rows), "members are people");
        }
        let (members, parties) = parties.into_iter().unzip();
        Self { rows, parties, members: Some(members), first: OnceLock::new() }
    }

    /// How many they are, at all parties together.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many a party holds.
    pub fn rows_of(&self, party: usize) -> usize {
        self.members.as_ref().map_or(self.rows, |members| members[party].len())
    }

    /// Whether every party holds everybody.
    pub fn are_everywhere(&self) -> bool {
        self.members.is_none()
    }

    /// What stands for some of a party's people.
    pub(crate) fn subjects<'a>(
        &self,
        party: usize,
        rows: Range<usize>,
        everybody: &'a Subjects,
    ) -> Cow<'a, [SubjectDigest]> {
        let digests = everybody.digests();
        match &self.members {
            None => Cow::Borrowed(&digests[rows]),
            Some(members) => {
                Cow::Owned(members[party][rows].iter().map(|&at| digests[at as usize]).collect())
            }
        }
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
