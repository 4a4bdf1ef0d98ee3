//! What published numbers say against a coefficient or R²: each kind with its words, the same for
//! the command, reports, pages and Python.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::{Coefficient, Model, Term};

/// What stands above the findings of a fit.
pub const HEADING: &str = "Before you rely on these numbers";
/// As many names as a sentence bears.
const NAMES: usize = 12;

/// What kind of trouble a finding names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The parties of the label and of the feature have hardly anybody in common.
    NobodyInCommon,
    /// They do not have as many people in common as the study declares.
    OverlapUndeclared,
    /// Noise hides whether they have anybody in common.
    OverlapUnseen,
    /// The label is lopsided or has heavy tails; coefficients are about cut values.
    LabelTails,
    /// The feature is lopsided or has heavy tails; its coefficient is about cut values.
    FeatureTails,
    /// Noise hides the spread of the label.
    LabelUnresolved,
    /// Noise hides the spread of the feature.
    FeatureUnresolved,
    /// The releases cannot tell the feature's effect from that of columns of other parties.
    Confounders,
    /// Many labels are missing.
    LabelMissing,
    /// Many values of the feature are missing.
    FeatureMissing,
    /// Noise hides how rare the label is, or features tell nearly everybody apart: log odds are not
    /// bounded by what is known.
    OddsUnbounded,
    /// So few people have both level and label that noise hides them.
    LevelRare,
    /// The feature is not shaped like a bell, which log odds of a rare label do not forgive.
    FeatureShape,
}

impl FindingKind {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::LabelTails,
        Self::FeatureTails,
        Self::LabelUnresolved,
        Self::FeatureUnresolved,
        Self::Confounders,
        Self::NobodyInCommon,
        Self::OverlapUnseen,
        Self::OverlapUndeclared,
        Self::LabelMissing,
        Self::FeatureMissing,
        Self::OddsUnbounded,
        Self::LevelRare,
        Self::FeatureShape,
    ];

    /// Whether it is about log odds, which moments tell badly there.
    fn is_about_odds(self) -> bool {
        matches!(self, Self::OddsUnbounded | Self::LevelRare | Self::FeatureShape)
    }

    /// Whether it is about who is where: what a reader must know before anything else.
    pub fn is_about_people(self) -> bool {
        matches!(self, Self::NobodyInCommon | Self::OverlapUndeclared | Self::OverlapUnseen)
    }

    /// Its name in files and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::LabelTails => "label-tails",
            Self::FeatureTails => "feature-tails",
            Self::LabelUnresolved => "label-unresolved",
            Self::FeatureUnresolved => "feature-unresolved",
            Self::Confounders => "confounders",
            Self::NobodyInCommon => "nobody-in-common",
            Self::OverlapUnseen => "overlap-unseen",
            Self::OverlapUndeclared => "overlap-undeclared",
            Self::LabelMissing => "label-missing",
            Self::FeatureMissing => "feature-missing",
            Self::OddsUnbounded => "odds-unbounded",
            Self::LevelRare => "level-rare",
            Self::FeatureShape => "feature-shape",
        }
    }

    /// In a few words, for a column of a table.
    pub fn short(self) -> &'static str {
        match self {
            Self::LabelTails => "label cut",
            Self::FeatureTails => "feature cut",
            Self::LabelUnresolved => "label in noise",
            Self::FeatureUnresolved => "feature in noise",
            Self::Confounders => "open confounders",
            Self::NobodyInCommon => "nobody in common",
            Self::OverlapUnseen => "overlap in noise",
            Self::OverlapUndeclared => "overlap not as declared",
            Self::LabelMissing => "label often missing",
            Self::FeatureMissing => "feature often missing",
            Self::OddsUnbounded => "odds unbounded",
            Self::LevelRare => "level too rare",
            Self::FeatureShape => "feature lopsided",
        }
    }
}

/// A finding about one coefficient or about R².
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What is the matter.
    pub kind: FindingKind,
    /// The columns of other parties that it is about, for [`FindingKind::Confounders`]; the
    /// features that it is about, for a finding of R².
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
}

impl Finding {
    /// Whether a coefficient with this finding is about values as the release cut them.
    pub fn is_about_cut_values(&self) -> bool {
        matches!(self.kind, FindingKind::LabelTails | FindingKind::FeatureTails)
    }

    /// Whether noise hides so much, so few people are shared, or log odds are so hard to tell from
    /// moments, that an interval with this finding cannot be relied on.
    pub fn is_about_unsure_interval(&self) -> bool {
        let is_unresolved =
            matches!(self.kind, FindingKind::LabelUnresolved | FindingKind::FeatureUnresolved);
        is_unresolved || self.kind.is_about_people() || self.kind.is_about_odds()
    }

    /// In a sentence, about the coefficients `of` a regression of `label`.
    fn sentence(&self, label: &str, of: &Subject<'_>) -> Sentence {
        let sentence = Sentence::default();
        match self.kind {
            FindingKind::LabelTails => sentence
                .name(label)
                .words(" is lopsided or has heavy tails, and its release cut values that lie far out: ")
                .of_every(
                    of,
                    of.one_or_many("the coefficient and R² are", "every coefficient and R² are"),
                    "the coefficients of ",
                    " are",
                )
                .words(" about the cut values, and may differ from those of the values as they are."),
            FindingKind::FeatureTails => sentence.names(of.names, "and").words(of.one_or_many(
                " is lopsided or has heavy tails, and its release cut values that lie far out: its coefficient is about the cut values, and may differ from that of the values as they are.",
                " are lopsided or have heavy tails, and their releases cut values that lie far out: their coefficients are about the cut values, and may differ from those of the values as they are.",
            )),
            FindingKind::LabelUnresolved => sentence
                .words("Privacy noise hides how much ")
                .name(label)
                .words(" varies between people: do not rely on ")
                .of_every(of, "any interval, nor on R²", "the intervals of ", "")
                .words("."),
            FindingKind::FeatureUnresolved => sentence
                .words("Privacy noise hides how much ")
                .names(of.names, "and")
                .words(of.one_or_many(
                    " varies between people: do not rely on its interval.",
                    " vary between people: do not rely on their intervals.",
                )),
            FindingKind::Confounders => sentence
                .words("What looks like an effect of ")
                .names(of.names, "or")
                .words(" may come from ")
                .columns(&self.columns)
                .words(of.one_or_many(
                    ": the releases do not tell how they go together. Its interval allows for that, and is wide because of it.",
                    ": the releases do not tell how they go together. Their intervals allow for that, and are wide because of it.",
                )),
            FindingKind::NobodyInCommon => sentence
                .words("The parties that hold ")
                .name(label)
                .words(" and ")
                .names(of.names, "and")
                .words(" have hardly anybody in common: do their ids match? Do not rely on ")
                .words(of.one_or_many("its interval, nor on R².", "their intervals, nor on R².")),
            FindingKind::OverlapUnseen => sentence
                .words("Privacy noise hides whether the parties that hold ")
                .name(label)
                .words(" and ")
                .names(of.names, "and")
                .words(" have anybody in common: do not rely on ")
                .words(of.one_or_many("its interval, nor on R².", "their intervals, nor on R².")),
            FindingKind::OverlapUndeclared => sentence
                .words("The parties that hold ")
                .name(label)
                .words(" and ")
                .names(of.names, "and")
                .words(" do not have as many people in common as the study declares: do their ids match? The fit believes what is declared, so do not rely on ")
                .words(of.one_or_many("its interval, nor on R².", "their intervals, nor on R².")),
            FindingKind::LabelMissing => sentence
                .words("Many values of ")
                .name(label)
                .words(" are missing: if that has to do with what they would be, ")
                .of_every(of, "every coefficient and R² are", "the coefficients of ", " are")
                .words(" off, and no interval shows it."),
            FindingKind::FeatureMissing => sentence.words("Many values of ").names(of.names, "and").words(of.one_or_many(
                " are missing: if that has to do with what they would be, its coefficient is off, and its interval does not show it.",
                " are missing: if that has to do with what they would be, their coefficients are off, and their intervals do not show it.",
            )),
            FindingKind::OddsUnbounded => sentence
                .words("How rare ")
                .name(label)
                .words(" is cannot be told from noise, or the features tell nearly everybody apart by it. Log odds then have no bound: do not rely on ")
                .of_every(of, "any interval", "the intervals of ", "")
                .words(". A linear regression of it still holds."),
            FindingKind::LevelRare => sentence
                .words("So few people have both ")
                .name(label)
                .words(" and ")
                .names(of.names, "or")
                .words(" that noise hides how many: do not rely on ")
                .words(of.one_or_many("its interval.", "their intervals.")),
            FindingKind::FeatureShape => sentence.names(of.names, "and").words(of.one_or_many(
                " has a public bound close to where most values lie, so it is not shaped like a bell, and ",
                " have a public bound close to where most values lie, so they are not shaped like bells, and ",
            ))
            .name(label)
            .words(" is rare or frequent enough for that to matter. Log odds from moments may then be off by a third: do not rely on ")
            .words(of.one_or_many("its interval.", "their intervals.")),
        }
    }
}

/// The coefficients that a sentence is about.
struct Subject<'a> {
    names: &'a [String],
    /// Whether they are all that the regression has.
    every: bool,
}

impl Subject<'_> {
    fn one_or_many(&self, one: &'static str, many: &'static str) -> &'static str {
        if self.names.len() == 1 { one } else { many }
    }
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words of ours.
    Words(String),
    /// A name that came with the study: a page marks it, a terminal must not obey it.
    Name(String),
}

/// A sentence in which names can be told from words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sentence(Vec<Piece>);

impl Sentence {
    /// Its pieces in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.0
    }

    pub(crate) fn words(mut self, words: &str) -> Self {
        self.0.push(Piece::Words(words.to_owned()));
        self
    }

    pub(crate) fn name(mut self, name: &str) -> Self {
        self.0.push(Piece::Name(name.to_owned()));
        self
    }

    /// "a, b and c", the last ones counted where there are many.
    pub(crate) fn names(mut self, all: &[String], last: &str) -> Self {
        let shown = if all.len() > NAMES { NAMES - 1 } else { all.len() };
        for (at, name) in all[..shown].iter().enumerate() {
            if at > 0 {
                let is_last = at + 1 == all.len();
                self = if is_last { self.words(&format!(" {last} ")) } else { self.words(", ") };
            }
            self = self.name(name);
        }
        if shown < all.len() { self.words(&format!(" {last} {} more", all.len() - shown)) } else { self }
    }

    /// Columns that may stand behind an effect.
    fn columns(self, all: &[String]) -> Self {
        if all.is_empty() { self.words("columns of other parties") } else { self.names(all, "or") }
    }

    /// One way to say it of every coefficient, and one around the names of some.
    fn of_every(self, of: &Subject<'_>, every: &str, before: &str, after: &str) -> Self {
        if of.every { self.words(every) } else { self.words(before).names(of.names, "and").words(after) }
    }
}

/// As plain text, in which a name cannot steer a terminal.
impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.0 {
            match piece {
                Piece::Words(words) => f.write_str(words)?,
                Piece::Name(name) => f.write_str(&name.replace(char::is_control, "\u{fffd}"))?,
            }
        }
        Ok(())
    }
}

/// A finding in words, and the coefficients that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What is the matter.
    pub kind: FindingKind,
    /// The sentence.
    pub sentence: Sentence,
    /// Names of the coefficients.
    pub coefficients: Vec<String>,
}

/// What the values of a column were cut to.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// The label or a feature.
    pub name: String,
    /// Its unit, for people.
    pub unit: Option<String>,
    /// Values beyond this were certainly cut.
    pub kept: [f64; 2],
}

/// As "age 20.5 to 88.1 years".
impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = self.kept;
        let name = self.name.replace(char::is_control, "\u{fffd}");
        write!(f, "{name} {} to {}", rounded(low, high - low), rounded(high, high - low))?;
        self.unit.as_ref().map_or(Ok(()), |unit| write!(f, " {}", unit.replace(char::is_control, "\u{fffd}")))
    }
}

impl Said {
    /// Whether it is about who is where: what a reader must know before anything else.
    pub fn is_about_people(&self) -> bool {
        self.kind.is_about_people()
    }
}

impl Model {
    /// Every finding of the fit in words, each once, those about all coefficients first.
    pub fn findings(&self) -> Vec<Said> {
        let mut groups: Vec<(&Finding, Vec<String>)> = Vec::new();
        for coefficient in &self.coefficients {
            let feature = coefficient.term.name();
            for finding in &coefficient.findings {
                match groups.iter_mut().find(|(known, _)| *known == finding) {
                    Some((_, features)) => features.push(feature.clone()),
                    None => groups.push((finding, vec![feature.clone()])),
                }
            }
        }
        groups.sort_by_key(|(finding, _)| finding.kind);
        groups.into_iter().map(|(finding, features)| self.said(finding, features)).collect()
    }

    /// A finding in words, about these coefficients.
    fn said(&self, finding: &Finding, coefficients: Vec<String>) -> Said {
        let of = Subject { names: &coefficients, every: coefficients.len() == self.coefficients.len() };
        let sentence = finding.sentence(&self.label.name(), &of);
        Said { kind: finding.kind, sentence, coefficients }
    }

    /// What a finding says of one coefficient.
    pub fn said_of(&self, coefficient: &Coefficient, finding: &Finding) -> Sentence {
        let name = coefficient.term.name();
        let is_about_label = matches!(
            finding.kind,
            FindingKind::LabelTails
                | FindingKind::LabelUnresolved
                | FindingKind::LabelMissing
                | FindingKind::OddsUnbounded
        );
        let all = self.findings();
        let shared = all
            .into_iter()
            .find(|said| is_about_label && said.kind == finding.kind && said.coefficients.contains(&name));
        shared.unwrap_or_else(|| self.said(finding, vec![name])).sentence
    }

    /// What values were cut to, of every column that a coefficient about cut values has to do with:
    /// the label first.
    ///
    /// A column that may hold every value of its public range is left out: only rows as a whole
    /// were cut there.
    pub fn cut_to(&self) -> Vec<Cut> {
        let about = || self.coefficients.iter().filter(|one| one.is_about_cut_values());
        let label = about().next().map(|_| (&self.label, self.label_unit.as_ref(), self.label_kept));
        let features = about().map(|one| (&one.term, one.unit.as_ref(), one.kept));
        label.into_iter().chain(features).filter_map(|(term, unit, kept)| cut(term, unit, kept?)).collect()
    }

    /// What speaks against R², in a few words.
    pub fn r_squared_mark(&self) -> Option<String> {
        mark(&self.diagnostics.r_squared_findings)
    }
}

/// A column with what it was cut to, if that is less than its public range.
fn cut(term: &Term, unit: Option<&String>, kept: [f64; 2]) -> Option<Cut> {
    let (lo, hi) = term.range();
    let is_narrower = kept[0] > lo || kept[1] < hi;
    is_narrower.then(|| Cut { name: term.name(), unit: unit.cloned(), kept })
}

/// A number with as many digits as a range of this width needs.
fn rounded(value: f64, width: f64) -> String {
    let digits = (2.0 - width.abs().max(f64::MIN_POSITIVE).log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{value:.digits$}")
}

/// Findings in a few words.
fn mark(findings: &[Finding]) -> Option<String> {
    let short: Vec<&str> = findings.iter().map(|finding| finding.kind.short()).collect();
    (!short.is_empty()).then(|| short.join(", "))
}

impl Coefficient {
    /// Whether it is about values as the release cut them.
    pub fn is_about_cut_values(&self) -> bool {
        self.findings.iter().any(Finding::is_about_cut_values)
    }

    /// Whether its interval cannot be relied on.
    pub fn has_unsure_interval(&self) -> bool {
        self.findings.iter().any(Finding::is_about_unsure_interval)
    }

    /// What speaks against it, in a few words.
    pub fn mark(&self) -> Option<String> {
        mark(&self.findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [FindingKind; 13] = FindingKind::ALL;

    fn said(kind: FindingKind, names: &[&str], every: bool) -> String {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let columns = vec!["salt".to_owned(), "exercise".to_owned()];
        Finding { kind, columns }.sentence("pressure", &Subject { names: &names, every }).to_string()
    }

    #[test]
    fn one_coefficient_and_several_are_spoken_of_differently() {
        assert!(said(FindingKind::FeatureTails, &["age"], false).starts_with("age is lopsided "));
        assert!(
            said(FindingKind::FeatureTails, &["age", "bmi"], false).starts_with("age and bmi are lopsided ")
        );
        let unresolved = said(FindingKind::FeatureUnresolved, &["age"], true);
        assert_eq!(
            unresolved,
            "Privacy noise hides how much age varies between people: do not rely on its interval."
        );
        let confounders = said(FindingKind::Confounders, &["age", "bmi"], true);
        assert!(
            confounders
                .starts_with("What looks like an effect of age or bmi may come from salt or exercise: "),
            "{confounders}"
        );
    }

    #[test]
    fn a_finding_about_the_label_names_the_coefficients_unless_it_is_all_of_them() {
        let every = said(FindingKind::LabelTails, &["age", "bmi"], true);
        assert!(every.contains(": every coefficient and R² are about the cut values"), "{every}");
        let some = said(FindingKind::LabelTails, &["age", "bmi"], false);
        assert!(some.contains(": the coefficients of age and bmi are about the cut values"), "{some}");
        let some = said(FindingKind::LabelUnresolved, &["age"], false);
        assert!(some.ends_with("do not rely on the intervals of age."), "{some}");
    }

    #[test]
    fn many_names_are_counted_and_cannot_steer_a_terminal() {
        let names: Vec<String> = (0..40).map(|at| format!("x{at}\u{1b}")).collect();
        let text = Sentence::default().names(&names, "and").to_string();
        assert!(text.starts_with("x0\u{fffd}, x1\u{fffd}") && text.ends_with(" and 29 more"), "{text}");
    }

    #[test]
    fn kinds_have_the_same_name_in_files_and_programs() {
        for kind in KINDS {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn every_kind_has_words_of_its_own() {
        let mut short: Vec<&str> = KINDS.iter().map(|&kind| kind.short()).collect();
        short.dedup();
        assert_eq!(short.len(), KINDS.len());
        let long: Vec<String> = KINDS.iter().map(|&kind| said(kind, &["age"], true)).collect();
        assert!(
            long.iter().all(|text| text.ends_with('.') && text.contains("age") || text.contains("pressure"))
        );
    }
}
