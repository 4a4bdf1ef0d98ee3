//! Which values of a row are there: columns in groups that are present or missing together.

/// The presence groups of a party's columns: one that all columns share which are never missing,
/// if there are such columns, and one for each other column
/// (docs/PRIVACY.md#presence).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// For each raw column, its group.
    of_column: Vec<usize>,
    count: usize,
    /// Whether the first group is that of the columns that are never missing.
    shared: bool,
}

impl Presence {
    /// The groups of columns that may or may not be missing.
    pub fn new(may_miss: &[bool]) -> Self {
        let shared = may_miss.iter().any(|may| !may);
        let mut count = usize::from(shared);
        let mut group = |&may: &bool| {
            count += usize::from(may);
            if may { count - 1 } else { 0 }
        };
        let of_column = may_miss.iter().map(&mut group).collect();
        Self { of_column, count, shared }
    }

    /// G: how many groups there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The group of a raw column.
    pub fn group(&self, column: usize) -> usize {
        self.of_column[column]
    }

    /// Whether the values of a raw column may be missing. Where they may not, a value that is
    /// missing nevertheless counts as present.
    pub fn may_miss(&self, column: usize) -> bool {
        !(self.shared && self.of_column[column] == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_are_never_missing_share_the_first_group() {
        let presence = Presence::new(&[true, false, true, false]);
        assert_eq!([0, 1, 2, 3].map(|column| presence.group(column)), [1, 0, 2, 0]);
        assert_eq!([0, 1, 2, 3].map(|column| presence.may_miss(column)), [true, false, true, false]);
        assert_eq!(presence.count(), 3);
        let each = Presence::new(&[true, true]);
        assert_eq!((each.count(), each.group(0), each.may_miss(0)), (2, 0, true));
        assert_eq!(Presence::new(&[false, false]).count(), 1);
    }
}
