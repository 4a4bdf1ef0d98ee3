//! What is wrong in a study, all of it at once.

use std::fmt;

use super::reader::Node;
use crate::place::Place;
use crate::remedy::{Command, Problem, Voice};

/// Most mistakes that are kept: no reader gets through more, and a study may come from a stranger.
const MOST: usize = 100;

/// Something that is wrong in a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    line: Option<usize>,
    place: Place,
    problem: Problem,
}

impl Mistake {
    /// The line of the text where it is, from 1, if there is a text and the place is in it.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Where in the study it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What is wrong and what to do.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    fn in_words(&self, voice: &impl Voice) -> String {
        let line = self.line.map_or_else(String::new, |line| format!("line {line}: "));
        format!("{line}{}: {}", self.place, self.problem.in_words(voice))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(&Command))
    }
}

/// All that is wrong in a study, in the order of its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mistakes {
    kept: Vec<Mistake>,
    more: usize,
}

impl Mistakes {
    pub(crate) fn one(place: Place, problem: Problem) -> Self {
        Self { kept: vec![Mistake { line: None, place, problem }], more: 0 }
    }

    /// The mistakes.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.kept.iter()
    }

    /// All of them in words, each on a line of its own.
    pub fn in_words(&self, voice: &impl Voice) -> String {
        if let [only] = &self.kept[..] {
            return format!("study: {}", only.in_words(voice));
        }
        let lines: String = self.iter().map(|mistake| format!("\n  {}", mistake.in_words(voice))).collect();
        let more = if self.more > 0 { format!("\n  and {} more", self.more) } else { String::new() };
        format!("{} things in the study are wrong:{lines}{more}", self.kept.len() + self.more)
    }

    /// Notes a mistake, unless one is known of at this place or within it: what follows from that
    /// one is none.
    pub(super) fn note(&mut self, place: Place, problem: impl Into<Problem>) {
        if self.kept.len() == MOST {
            self.more += 1;
        } else if self.none_in(&place) {
            self.kept.push(Mistake { line: None, place, problem: problem.into() });
        }
    }

    /// Notes what is wrong with a value, if it is an error, and gives the value if it is none.
    pub(super) fn sound<T, E: fmt::Display>(&mut self, value: Result<T, E>, place: Place) -> Option<T> {
        value.map_err(|error| self.note(place, error.to_string())).ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether no mistake is known of at this place or within it.
    pub(super) fn none_in(&self, place: &Place) -> bool {
        !self.iter().any(|mistake| place.holds(&mistake.place))
    }

    /// The same mistakes in a study that stands within another, at `outer`.
    pub(super) fn within(mut self, outer: &Place) -> Self {
        for mistake in &mut self.kept {
            mistake.place = mistake.place.within(outer);
        }
        self
    }

    /// The same mistakes in the order of the text that was read, with their lines in it.
    pub(super) fn located(mut self, tree: &Node) -> Self {
        for mistake in &mut self.kept {
            mistake.line = tree.line_of(&mistake.place);
        }
        self.kept.sort_by(|one, other| (one.line, &one.place).cmp(&(other.line, &other.place)));
        self
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(&Command))
    }
}
