//! Raw columns as the parties hold them, in memory.

use std::ops::Range;
use std::sync::OnceLock;

use potluck_core::calibrated::Layout;
use potluck_core::encoding::{Bounds, Encoder, LevelCount, Values};

/// A column as its party holds it.
pub(crate) enum Column {
    Numbers {
        bounds: Bounds,
        values: Vec<f64>,
    },
    /// Level codes, counted from 0.
    Levels {
        count: LevelCount,
        codes: Vec<u32>,
    },
}

impl Column {
    fn encoder(&self) -> Encoder {
        match self {
            Self::Numbers { bounds, .. } => Encoder::Numeric(*bounds),
            Self::Levels { count, .. } => Encoder::Categorical(*count),
        }
    }

    fn batch(&self, rows: Range<usize>) -> Values<'_> {
        match self {
            Self::Numbers { values, .. } => Values::Numbers(&values[rows]),
            Self::Levels { codes, .. } => Values::Levels(&codes[rows]),
        }
    }
}

/// The columns of all parties for the same subjects; encoded columns are counted party by party.
pub(crate) struct Holdings {
    rows: usize,
    parties: Vec<Vec<Column>>,
    first_sums: OnceLock<Vec<Vec<i64>>>,
}

impl Holdings {
    pub(crate) fn new(rows: usize, parties: Vec<Vec<Column>>) -> Self {
        Self { rows, parties, first_sums: OnceLock::new() }
    }

    /// The exact sums of every party's first stage, which are the same whatever the privacy.
    pub(crate) fn first_sums(&self, compute: impl FnOnce() -> Vec<Vec<i64>>) -> Vec<Vec<i64>> {
        self.first_sums.get_or_init(compute).clone()
    }

    /// Number of subjects.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// What is public about the columns of each party.
    pub(crate) fn layouts(&self) -> Vec<Layout> {
        let layout = |columns: &Vec<Column>| Layout::new(columns.iter().map(Column::encoder).collect());
        self.parties.iter().map(layout).collect()
    }

    /// Values of a batch of subjects, column by column.
    pub(crate) fn batch(&self, party: usize, rows: Range<usize>) -> Vec<Values<'_>> {
        self.parties[party].iter().map(|column| column.batch(rows.clone())).collect()
    }

    /// Middle and half-width of the public range of each encoded column; a level is 0 or 1.
    pub(crate) fn public_scales(&self) -> Vec<(f64, f64)> {
        let scales = |column: &Column| match column {
            Column::Numbers { bounds, .. } => vec![(bounds.midpoint(), bounds.half_width())],
            Column::Levels { count, .. } => vec![(0.0, 1.0); count.width()],
        };
        self.parties.iter().flatten().flat_map(scales).collect()
    }

    /// Every encoded column but the label. The levels of a column sum to one, so from the second column of more than
    /// two levels on the first level is left out, as in regressions without an intercept.
    pub(crate) fn features(&self, label: usize) -> Vec<usize> {
        let mut features = Vec::new();
        let mut at = 0;
        let mut whole_sets = 0;
        for column in self.parties.iter().flatten() {
            let width = column.encoder().width();
            whole_sets += usize::from(width > 1);
            let skip = usize::from(width > 1 && whole_sets > 1);
            features.extend((at + skip..at + width).filter(|&position| position != label));
            at += width;
        }
        features
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_second_set_of_levels_loses_its_first() {
        let levels = |count| Column::Levels { count: LevelCount::new(count).unwrap(), codes: vec![0; 2] };
        let number = Column::Numbers { bounds: Bounds::new(0.0, 4.0).unwrap(), values: vec![1.0, 2.0] };
        let holdings = Holdings::new(2, vec![vec![levels(3), number], vec![levels(2), levels(4)]]);
        assert_eq!(holdings.features(3), [0, 1, 2, 4, 6, 7, 8]);
        assert_eq!(holdings.public_scales()[3], (2.0, 2.0));
        assert_eq!(holdings.layouts()[1].width(), 5);
    }
}
