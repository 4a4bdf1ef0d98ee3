//! Who is where, as releases of parties that hold different people tell: what each two parties have
//! in common, and how the people whom they share differ from all of a party's
//! (docs/LEARNERS.md#different-people).

use potluck_core::learn::{self, OverlapConcern, column_shifts};
use serde::Serialize;

use crate::Error;
use crate::dataset::PublicDataset;
use crate::findings::{FindingKind, Sentence};
use crate::fit::Material;

/// Standard errors from which on a shift is spoken of: one chance in 16,000 for each.
const CLEARLY: f64 = 4.0;

/// What clear shifts mean for a fit.
pub const SHIFTS_MEAN: &str = "Coefficients are about the people of the label's party. A fit allows for such shifts as far as who is shared depends on the features; if it depends on the label beyond them, no interval shows it.";

/// Who is where.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct People {
    /// What each two parties have in common.
    pub overlaps: Vec<Overlap>,
    /// Of every column, for each other party, how the people shared with it differ.
    pub shifts: Vec<Shift>,
}

/// What two parties have in common. Shares are of the people of the smaller one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overlap {
    /// The parties.
    pub parties: [String; 2],
    /// The share that their own releases show.
    pub share: f64,
    /// Its 95% interval.
    pub interval: [f64; 2],
    /// The share that fits take, given all parties and what the study declares.
    pub taken: f64,
    /// The number of people that this is.
    pub people: f64,
    /// The least and the largest share that the study declares.
    pub declared: [f64; 2],
    /// What is wrong with it, if something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<FindingKind>,
}

/// By how much the mean of a column over the people whom its party shares with another differs from
/// that over all of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// The encoded column.
    pub column: String,
    /// Its party.
    pub party: String,
    /// The other party.
    pub shared_with: String,
    /// The difference in standard deviations of the column.
    pub shift: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The difference in original units.
    pub difference: f64,
    /// Whether it stands clear of its noise.
    pub clear: bool,
}

/// What a public dataset says; nothing where all parties hold the same people by the study's
/// definition.
pub fn of_dataset(dataset: &PublicDataset) -> Result<Option<People>, Error> {
    let material = Material::new(dataset)?;
    let names: Vec<&str> = dataset.parties().map(|(party, _)| party).collect();
    if !material.has_presence() {
        return Ok(None);
    }
    let evidence = material.evidence()?;
    let definition = dataset.study().definition();
    let shift = |found: learn::ColumnShift| {
        let (column, party) = material.column(found.column);
        let spread =
            material.unit(found.column) * evidence.covariance[(found.column, found.column)].max(0.0).sqrt();
        Shift {
            column,
            party: party.to_owned(),
            shared_with: names[found.party].to_owned(),
            shift: found.shift,
            standard_error: found.standard_error,
            difference: found.shift * spread,
            clear: found.shift.abs() > CLEARLY * found.standard_error,
        }
    };
    let overlap = |found: &learn::Overlap| {
        let parties = [names[found.parties.0], names[found.parties.1]];
        Overlap {
            declared: definition.overlap(parties[0], parties[1]),
            parties: parties.map(str::to_owned),
            share: found.observed.clamp(0.0, 1.0),
            interval: [found.interval.lower, found.interval.upper],
            taken: found.share,
            people: found.people,
            finding: found.concern().map(kind),
        }
    };
    Ok(Some(People {
        overlaps: evidence.people.overlaps().iter().map(overlap).collect(),
        shifts: column_shifts(&evidence).into_iter().map(shift).collect(),
    }))
}

/// What may be wrong with an overlap, as findings name it.
pub(crate) fn kind(concern: OverlapConcern) -> FindingKind {
    match concern {
        OverlapConcern::Nobody => FindingKind::NobodyInCommon,
        OverlapConcern::Unseen => FindingKind::OverlapUnseen,
        OverlapConcern::Undeclared => FindingKind::OverlapUndeclared,
    }
}

impl People {
    /// What is wrong with overlaps, in words: what stands above everything else.
    pub fn alarms(&self) -> Vec<Sentence> {
        let mut wrong: Vec<&Overlap> =
            self.overlaps.iter().filter(|overlap| overlap.finding.is_some()).collect();
        wrong.sort_by_key(|overlap| overlap.finding);
        wrong.into_iter().filter_map(Overlap::alarm).collect()
    }

    /// Which shared people clearly differ from all of their party's, in words.
    pub fn differences(&self) -> Vec<Sentence> {
        let mut told: Vec<(&str, &str, Vec<&Shift>)> = Vec::new();
        for shift in self.shifts.iter().filter(|shift| shift.clear) {
            match told
                .iter_mut()
                .find(|(party, with, _)| (*party, *with) == (&*shift.party, &*shift.shared_with))
            {
                Some((.., of)) => of.push(shift),
                None => told.push((&shift.party, &shift.shared_with, vec![shift])),
            }
        }
        told.into_iter()
            .map(|(party, with, mut shifts)| {
                shifts.sort_by(|a, b| b.shift.abs().total_cmp(&a.shift.abs()));
                let start = Sentence::default()
                    .words("The people whom ")
                    .name(party)
                    .words(" shares with ")
                    .name(with)
                    .words(" differ from all of its own: ");
                let mut sentence = start;
                for (at, shift) in shifts.iter().take(MOST_SHIFTS).enumerate() {
                    let before = if at > 0 { ", " } else { "" };
                    let direction = if shift.shift > 0.0 { "higher" } else { "lower" };
                    let size = format!(" is {:.2} standard deviations {direction}", shift.shift.abs());
                    sentence = sentence.words(before).name(&shift.column).words(&size);
                }
                let more = shifts.len().saturating_sub(MOST_SHIFTS);
                if more > 0 {
                    sentence.words(&format!(", and {more} more columns differ."))
                } else {
                    sentence.words(".")
                }
            })
            .collect()
    }
}

/// Columns that a sentence about shifts names.
const MOST_SHIFTS: usize = 4;

impl Overlap {
    /// "north and south have 41% of the smaller one's people in common …", where something is
    /// wrong.
    fn alarm(&self) -> Option<Sentence> {
        let [one, other] = &self.parties;
        let both = Sentence::default().name(one).words(" and ").name(other);
        let [low, high] = self.interval.map(percent);
        Some(match self.finding? {
            FindingKind::NobodyInCommon => both.words(&format!(
                " have hardly anybody in common, at most {high} of the smaller one's people: do their ids match?"
            )),
            FindingKind::OverlapUndeclared => both.words(&format!(
                " have {low} to {high} of the smaller one's people in common, but the study declares {}: do their ids match?",
                declared(self.declared)
            )),
            _ => Sentence::default()
                .words("Privacy noise hides whether ")
                .name(one)
                .words(" and ")
                .name(other)
                .words(" have anybody in common."),
        })
    }
}

/// What a study declares of an overlap, in words.
pub fn declared([least, largest]: [f64; 2]) -> String {
    match (least, largest) {
        (least, _) if least >= 1.0 => "all".to_owned(),
        (least, largest) if least <= 0.0 && largest >= 1.0 => "nothing".to_owned(),
        (least, largest) if largest >= 1.0 => format!("at least {}", percent(least)),
        (least, largest) => format!("{} to {}", percent(least), percent(largest)),
    }
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}
