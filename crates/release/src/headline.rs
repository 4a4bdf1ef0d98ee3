//! The sentence to take home from a fit, and what must be said with it: the same in the terminal,
//! in reports and in notebooks.

use crate::findings::Sentence;
use crate::model::{Coefficient, Estimate, Model};

/// As many names as a headline bears.
const FEW: usize = 6;

impl Estimate {
    /// Whether the interval excludes 0.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

impl Model {
    /// The sentence to take home, and what must be said with it.
    pub fn headline(&self) -> Sentence {
        let all = self.coefficients.len();
        let unsure = self.of_which(Coefficient::has_unsure_interval);
        let cut = self.of_which(Coefficient::is_about_cut_values);
        let said = match (unsure.len(), all) {
            (0, _) => self.outcome(),
            (1, 1) => self.outcome().words(" Do not rely on its interval."),
            (1, _) => {
                self.outcome().words(" Do not rely on the interval of ").names(&unsure, "and").words(".")
            }
            (some, all) if some == all => self.outcome().words(" Do not rely on any interval here."),
            _ => self.outcome().words(" Do not rely on the intervals of ").names(&unsure, "and").words("."),
        };
        match (cut.len(), all) {
            (0, _) => said,
            (1, 1) => said.words(" It is about cut values."),
            (some, all) if some == all => said.words(" All coefficients are about cut values."),
            _ => said.words(" About cut values: ").names(&cut, "and").words("."),
        }
    }

    /// Names of the features of whose coefficients something holds.
    pub fn of_which(&self, holds: impl Fn(&Coefficient) -> bool) -> Vec<String> {
        self.coefficients.iter().filter(|one| holds(one)).map(|one| one.term.name()).collect()
    }

    /// Names of the features whose intervals exclude 0, and of the others.
    pub fn clear_and_unclear(&self) -> (Vec<String>, Vec<String>) {
        let clear = |one: &Coefficient| one.value.excludes_zero();
        (self.of_which(clear), self.of_which(|one| !clear(one)))
    }

    /// How many coefficients differ from 0, and which.
    fn outcome(&self) -> Sentence {
        let level = format!("{}%", (1e6 * self.level).round() / 1e4);
        let (clear, unclear) = self.clear_and_unclear();
        let said = Sentence::default();
        match (clear.len(), unclear.len()) {
            (0, 1) => said.words(&format!("The coefficient cannot be told from 0 at the {level} level.")),
            (1, 0) => said.words(&format!("The coefficient differs from 0 at the {level} level.")),
            (0, all) => said
                .words(&format!("None of the {all} coefficients can be told from 0 at the {level} level.")),
            (all, 0) => said.words(&format!("All {all} coefficients differ from 0 at the {level} level.")),
            (some, others) => {
                let differ = if some == 1 { "differs" } else { "differ" };
                let all = some + others;
                let said =
                    said.words(&format!("{some} of {all} coefficients {differ} from 0 at the {level} level"));
                let said = if some <= FEW { said.words(": ").names(&clear, "and") } else { said };
                said.words(".")
            }
        }
    }

    /// What to know of features that the others say nearly all of, a sentence for each column.
    pub fn collinear(&self) -> Vec<Sentence> {
        let mut said = Vec::new();
        let mut known: Vec<[&str; 2]> = Vec::new();
        for one in &self.diagnostics.collinear {
            let pair = [one.feature.as_str(), one.closest.as_str()];
            // Two that say nearly all of each other are one matter.
            if known.iter().any(|[feature, closest]| [*closest, *feature] == pair) {
                continue;
            }
            known.push(pair);
            let others = format!(
                ": {:.0}% of how it varies. Its coefficient is what is left when all others are held fixed, so its interval is wide; leave one of them out, or read them together. It goes most with ",
                100.0 * one.by_others
            );
            let sentence = Sentence::default()
                .words("The other features say nearly all of ")
                .name(&one.feature)
                .words(&others)
                .name(&one.closest)
                .words(&format!(" (correlation {:.2}).", one.correlation));
            let of_column = |level: &str| {
                one.feature.split_once('=').is_some_and(|(column, _)| {
                    level.strip_prefix(column).is_some_and(|rest| rest.starts_with('='))
                })
            };
            said.push(if of_column(&one.closest) {
                sentence.words(" Levels of one column do so where few people have the level that they are compared with.")
            } else {
                sentence
            });
        }
        said
    }
}
