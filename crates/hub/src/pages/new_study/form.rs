//! The form as it was filled in: kept as text, whatever it says, and turned into a study if it can be.

use potluck_release::place::{Key, Place};
use potluck_release::study::{Definition, IdKind, Method};
use potluck_release::{Error, Study};
use serde::Serialize;

use super::super::visitor::Fields;

/// Most parties and columns that a form holds; larger studies come as files.
const MOST_PARTIES: usize = 50;
const MOST_COLUMNS: usize = 500;

/// A study as somebody describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StudyForm {
    /// Tells this form from others, so that sending it twice creates one study.
    pub(super) form: String,
    pub(super) name: String,
    pub(super) rows: String,
    pub(super) id: String,
    pub(super) epsilon: String,
    pub(super) delta: String,
    pub(super) method: String,
    pub(super) early: bool,
    /// The id of a study to extend, or nothing.
    pub(super) extends: String,
    pub(super) parties: Vec<PartyForm>,
    /// The text of a sealed study, instead of all that.
    pub(super) sealed: String,
}

/// A party as somebody describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PartyForm {
    pub(super) name: String,
    pub(super) columns: Vec<ColumnForm>,
}

/// A column as somebody describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ColumnForm {
    pub(super) name: String,
    /// `levels`, or else a number.
    pub(super) kind: String,
    pub(super) lo: String,
    pub(super) hi: String,
    pub(super) unit: String,
    /// One level a line.
    pub(super) levels: String,
    pub(super) description: String,
}

impl ColumnForm {
    pub(super) fn has_levels(&self) -> bool {
        self.kind == "levels"
    }
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// The field, if it is about one.
    pub(super) field: Option<String>,
    pub(super) message: String,
}

/// What a button of the form asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Plan,
    Create,
    CreateSealed,
    AddParty,
    RemoveParty(usize),
    AddColumn(usize),
    RemoveColumn(usize, usize),
}

impl Action {
    pub(super) fn read(text: &str) -> Self {
        let parts: Vec<&str> = text.split('-').collect();
        let number = |text: &str| text.parse::<usize>().ok();
        match parts.as_slice() {
            ["create"] => Self::Create,
            ["create", "sealed"] => Self::CreateSealed,
            ["add", "party"] => Self::AddParty,
            ["remove", "party", party] => number(party).map_or(Self::Plan, Self::RemoveParty),
            ["add", "column", party] => number(party).map_or(Self::Plan, Self::AddColumn),
            ["remove", "column", party, column] => match (number(party), number(column)) {
                (Some(party), Some(column)) => Self::RemoveColumn(party, column),
                _ => Self::Plan,
            },
            _ => Self::Plan,
        }
    }
}

/// The name of a field of a party.
pub(super) fn party_field(party: usize, field: &str) -> String {
    format!("party-{party}-{field}")
}

/// The name of a field of a column.
pub(super) fn column_field(party: usize, column: usize, field: &str) -> String {
    format!("party-{party}-column-{column}-{field}")
}

impl StudyForm {
    /// What the form says before anybody has touched it.
    pub(super) fn blank(form: String) -> Self {
        let party = PartyForm { columns: vec![ColumnForm::default()], ..PartyForm::default() };
        Self {
            form,
            id: "integer".to_owned(),
            epsilon: "1".to_owned(),
            delta: "0.000001".to_owned(),
            method: "calibrated".to_owned(),
            parties: vec![party.clone(), party],
            ..Self::default()
        }
    }

    /// Reads what a browser sent.
    pub(super) fn read(fields: &Fields) -> Self {
        let mut form = Self::default();
        for (name, value) in fields.iter() {
            let value = value.to_owned();
            match name {
                "form" => form.form = value,
                "name" => form.name = value,
                "rows" => form.rows = value,
                "id" => form.id = value,
                "epsilon" => form.epsilon = value,
                "delta" => form.delta = value,
                "method" => form.method = value,
                "early" => form.early = true,
                "extends" => form.extends = value,
                "sealed" => form.sealed = value,
                other => form.read_party(other, value),
            }
        }
        form
    }

    fn read_party(&mut self, name: &str, value: String) {
        let parts: Vec<&str> = name.split('-').collect();
        let number = |text: &str, most: usize| text.parse::<usize>().ok().filter(|&number| number < most);
        match parts.as_slice() {
            ["party", party, "name"] => {
                if let Some(party) = number(party, MOST_PARTIES) {
                    self.party(party).name = value;
                }
            }
            ["party", party, "column", column, field] => {
                let (Some(party), Some(column)) = (number(party, MOST_PARTIES), number(column, MOST_COLUMNS))
                else {
                    return;
                };
                let columns = &mut self.party(party).columns;
                if columns.len() <= column {
                    columns.resize(column + 1, ColumnForm::default());
                }
                let column = &mut columns[column];
                match *field {
                    "name" => column.name = value,
                    "kind" => column.kind = value,
                    "lo" => column.lo = value,
                    "hi" => column.hi = value,
                    "unit" => column.unit = value,
                    "levels" => column.levels = value,
                    "description" => column.description = value,
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn party(&mut self, at: usize) -> &mut PartyForm {
        if self.parties.len() <= at {
            self.parties.resize(at + 1, PartyForm::default());
        }
        &mut self.parties[at]
    }

    /// Adds or removes what a button says; returns the field to go on with.
    pub(super) fn edit(&mut self, action: Action) -> Option<String> {
        match action {
            Action::AddParty if self.parties.len() < MOST_PARTIES => {
                self.parties.push(PartyForm { columns: vec![ColumnForm::default()], ..PartyForm::default() });
                Some(party_field(self.parties.len() - 1, "name"))
            }
            Action::RemoveParty(at) if at < self.parties.len() => {
                self.parties.remove(at);
                Some(if self.parties.is_empty() {
                    "name".to_owned()
                } else {
                    party_field(at.min(self.parties.len() - 1), "name")
                })
            }
            Action::AddColumn(at) if at < self.parties.len() => {
                let columns = &mut self.parties[at].columns;
                if columns.len() == MOST_COLUMNS {
                    return None;
                }
                columns.push(ColumnForm::default());
                Some(column_field(at, columns.len() - 1, "name"))
            }
            Action::RemoveColumn(party, column) => {
                let columns = &mut self.parties.get_mut(party)?.columns;
                if column >= columns.len() {
                    return None;
                }
                columns.remove(column);
                Some(if columns.is_empty() {
                    party_field(party, "name")
                } else {
                    column_field(party, column.min(columns.len() - 1), "name")
                })
            }
            _ => None,
        }
    }

    /// Takes over what a study that extends another has in common with it.
    pub(super) fn inherit(&mut self, base: &Study) {
        let definition: &Definition = base.definition();
        self.rows = definition.rows().to_string();
        self.epsilon = definition.epsilon().get().to_string();
        self.delta = definition.delta().get().to_string();
        id_name(definition.id_kind()).clone_into(&mut self.id);
        method_name(definition.method()).clone_into(&mut self.method);
    }

    /// The study as TOML, not sealed, or what is wrong with the fields.
    pub(super) fn to_toml(&self) -> Result<String, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut problem = |field: &str, message: &str| {
            problems.push(Problem { field: Some(field.to_owned()), message: message.to_owned() });
        };
        if self.name.trim().is_empty() {
            problem("name", "Give the study a name.");
        }
        let rows = whole(&self.rows).unwrap_or_else(|| {
            problem("rows", "Say how many people there are, in digits.");
            0
        });
        let epsilon = decimal(&self.epsilon).unwrap_or_else(|| {
            problem("epsilon", "ε is a number above 0, such as 1.");
            0.0
        });
        let delta = decimal(&self.delta).unwrap_or_else(|| {
            problem("delta", "δ is a small number above 0, such as 0.000001.");
            0.0
        });
        if self.parties.is_empty() {
            problems.push(Problem { field: None, message: "Add at least one party.".to_owned() });
        }
        let parties: Vec<PartySection<'_>> =
            self.parties.iter().enumerate().map(|(at, party)| party.section(at, &mut problems)).collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let extends = self.extends.trim();
        let document = Document {
            format: potluck_release::FORMAT,
            study: StudySection {
                name: self.name.trim(),
                rows,
                id: &self.id,
                method: &self.method,
                extends: (!extends.is_empty()).then_some(extends),
            },
            privacy: PrivacySection { epsilon, delta },
            party: parties,
        };
        toml::to_string(&document).map_err(|error| vec![Problem { field: None, message: error.to_string() }])
    }

    /// What a check of the whole study found, at the field that it is about.
    pub(super) fn locate(&self, error: &Error) -> Problem {
        match error {
            Error::Study { place, problem } => {
                let field = self.field_of(place);
                let message = if field.is_some() {
                    sentence(&problem.to_string())
                } else {
                    sentence(&format!("{place}: {problem}"))
                };
                Problem { field, message }
            }
            Error::BaseMissing { .. } => Problem {
                field: Some("extends".to_owned()),
                message: "This hub does not have that study; choose another.".to_owned(),
            },
            Error::Budget(_) => {
                Problem { field: Some("epsilon".to_owned()), message: sentence(&error.to_string()) }
            }
            other => Problem { field: None, message: sentence(&other.to_string()) },
        }
    }

    /// The field that a place of the study is filled in at.
    fn field_of(&self, place: &Place) -> Option<String> {
        match place {
            Place::Key(key) => field_of_key(*key).map(str::to_owned),
            Place::Party(name) => self.party_named(name).map(|at| party_field(at, "name")),
            Place::Column { party, column } => {
                let at = self.party_named(party)?;
                let columns = &self.parties[at].columns;
                let position = columns.iter().position(|one| one.name.trim() == column)?;
                Some(column_field(at, position, "name"))
            }
            // The form does not ask for it.
            Place::ClipNorm(_) => None,
        }
    }

    fn party_named(&self, name: &str) -> Option<usize> {
        self.parties.iter().position(|party| party.name.trim() == name)
    }
}

fn field_of_key(key: Key) -> Option<&'static str> {
    match key {
        Key::Name => Some("name"),
        Key::Rows => Some("rows"),
        Key::Id => Some("id"),
        Key::Method | Key::Mixing => Some("method"),
        Key::Extends => Some("extends"),
        Key::Epsilon => Some("epsilon"),
        Key::Delta => Some("delta"),
        Key::Format | Key::K | Key::Preset | Key::MissingTokens | Key::Calibration | Key::Parties => None,
    }
}

impl PartyForm {
    fn section(&self, at: usize, problems: &mut Vec<Problem>) -> PartySection<'_> {
        let name = self.name.trim();
        if name.is_empty() {
            problems.push(Problem {
                field: Some(party_field(at, "name")),
                message: "Name the party, in letters, digits, - or _.".to_owned(),
            });
        }
        let columns = self.columns.iter().enumerate();
        PartySection {
            name,
            column: columns.map(|(column, form)| form.section((at, column), problems)).collect(),
        }
    }
}

impl ColumnForm {
    fn section(&self, (party, column): (usize, usize), problems: &mut Vec<Problem>) -> ColumnSection<'_> {
        let mut problem = |field: &str, message: &str| {
            let field = Some(column_field(party, column, field));
            problems.push(Problem { field, message: message.to_owned() });
        };
        if self.name.trim().is_empty() {
            problem("name", "Name the column as in the party’s table.");
        }
        let optional = |text: &'_ str| -> Option<String> {
            let text = text.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let mut section = ColumnSection {
            name: self.name.trim(),
            lo: None,
            hi: None,
            levels: None,
            unit: None,
            description: optional(&self.description),
        };
        if self.has_levels() {
            let levels: Vec<&str> =
                self.levels.lines().map(str::trim).filter(|level| !level.is_empty()).collect();
            if levels.len() < 2 {
                problem("levels", "List at least two levels, one a line.");
            }
            section.levels = Some(levels);
        } else {
            section.lo = decimal(&self.lo);
            section.hi = decimal(&self.hi);
            section.unit = optional(&self.unit);
            if section.lo.is_none() {
                problem("lo", "Give the smallest value that is plausible.");
            }
            if section.hi.is_none() {
                problem("hi", "Give the largest value that is plausible.");
            }
        }
        section
    }
}

/// A whole number as people write it, thousands apart or not.
fn whole(text: &str) -> Option<u64> {
    let digits: String =
        text.chars().filter(|c| !matches!(c, ',' | '_' | '\'' | '’') && !c.is_whitespace()).collect();
    digits.parse().ok()
}

fn decimal(text: &str) -> Option<f64> {
    text.trim().replace('−', "-").parse().ok().filter(|number: &f64| number.is_finite())
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if words.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

fn id_name(kind: IdKind) -> &'static str {
    match kind {
        IdKind::Integer => "integer",
        IdKind::Text => "text",
        IdKind::Row => "row",
    }
}

fn method_name(method: Method) -> &'static str {
    match method {
        Method::Calibrated => "calibrated",
        Method::Rmgm => "rmgm",
        Method::Dgm => "dgm",
    }
}

/// The study as it is written down (docs/FORMAT.md).
#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    study: StudySection<'a>,
    privacy: PrivacySection,
    party: Vec<PartySection<'a>>,
}

#[derive(Serialize)]
struct StudySection<'a> {
    name: &'a str,
    rows: u64,
    id: &'a str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    extends: Option<&'a str>,
}

#[derive(Serialize)]
struct PrivacySection {
    epsilon: f64,
    delta: f64,
}

#[derive(Serialize)]
struct PartySection<'a> {
    name: &'a str,
    column: Vec<ColumnSection<'a>>,
}

#[derive(Serialize)]
struct ColumnSection<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lo: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hi: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    levels: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

#[cfg(test)]
mod tests {
    use potluck_release::Draft;

    use super::*;

    const FILLED: [(&str, &str); 20] = [
        ("form", "f"),
        ("name", " two \"clinics\" "),
        ("rows", "200,000"),
        ("id", "integer"),
        ("epsilon", "1"),
        ("delta", "1e-5"),
        ("method", "calibrated"),
        ("early", "on"),
        ("party-0-name", "north"),
        ("party-0-column-0-name", "age"),
        ("party-0-column-0-kind", "number"),
        ("party-0-column-0-lo", "−1"),
        ("party-0-column-0-hi", "99.5"),
        ("party-0-column-0-unit", "years"),
        ("party-0-column-0-levels", "kept\nbut not used"),
        ("party-1-name", "south"),
        ("party-1-column-0-name", "smoker"),
        ("party-1-column-0-kind", "levels"),
        ("party-1-column-0-levels", "no\nyes\n\n"),
        ("party-1-column-0-description", "says \"so\""),
    ];

    #[test]
    fn a_filled_form_becomes_a_study() {
        let form = StudyForm::read(&Fields::of(&FILLED));
        assert!(form.early);
        let draft = Draft::parse(&form.to_toml().expect("nothing is wrong")).expect("a study");
        let definition = draft.definition();
        assert_eq!((definition.name(), definition.rows()), ("two \"clinics\"", 200_000));
        let columns: Vec<_> =
            definition.columns().map(|(party, column)| (party.name(), column.name())).collect();
        assert_eq!(columns, [("north", "age"), ("south", "smoker")]);
        assert_eq!(definition.parties()[1].columns()[0].description(), Some("says \"so\""));
    }

    #[test]
    fn every_field_that_is_wrong_is_named() {
        let mut form = StudyForm::blank(String::new());
        form.epsilon = "much".to_owned();
        form.parties[1].columns[0].kind = "levels".to_owned();
        let problems = form.to_toml().expect_err("it is empty");
        let fields: Vec<&str> = problems.iter().filter_map(|problem| problem.field.as_deref()).collect();
        assert_eq!(
            fields,
            [
                "name",
                "rows",
                "epsilon",
                "party-0-name",
                "party-0-column-0-name",
                "party-0-column-0-lo",
                "party-0-column-0-hi",
                "party-1-name",
                "party-1-column-0-name",
                "party-1-column-0-levels"
            ]
        );
    }

    #[test]
    fn what_the_whole_study_says_is_put_to_its_field() {
        let located = |change: &[(&str, &str)]| {
            let mut pairs = FILLED.to_vec();
            for (name, value) in change {
                pairs.retain(|(one, _)| one != name);
                pairs.push((name, value));
            }
            let form = StudyForm::read(&Fields::of(&pairs));
            let error =
                Draft::parse(&form.to_toml().expect("the fields are sound")).expect_err("it is refused");
            form.locate(&error).field
        };
        assert_eq!(located(&[("rows", "1")]).as_deref(), Some("rows"));
        assert_eq!(located(&[("delta", "2")]).as_deref(), Some("delta"));
        assert_eq!(located(&[("epsilon", "-1")]).as_deref(), Some("epsilon"));
        assert_eq!(located(&[("party-1-name", "north")]).as_deref(), Some("party-0-name"));
        assert_eq!(located(&[("party-1-name", "so uth")]).as_deref(), Some("party-1-name"));
        assert_eq!(located(&[("party-0-column-0-hi", "-5")]).as_deref(), Some("party-0-column-0-name"));
        assert_eq!(located(&[("party-1-column-0-name", "age")]).as_deref(), Some("party-1-column-0-name"));
        assert_eq!(located(&[("method", "dgm")]).as_deref(), Some("id"));
    }

    #[test]
    fn parties_and_columns_come_and_go_and_the_rest_stays() {
        let mut form = StudyForm::read(&Fields::of(&FILLED));
        assert_eq!(form.edit(Action::read("add-column-1")).as_deref(), Some("party-1-column-1-name"));
        assert_eq!(form.edit(Action::read("add-party")).as_deref(), Some("party-2-name"));
        assert_eq!(form.edit(Action::read("remove-party-0")).as_deref(), Some("party-0-name"));
        assert_eq!(form.parties[0].name, "south");
        assert_eq!(form.parties[0].columns[0].levels, "no\nyes\n\n");
        assert_eq!(form.edit(Action::read("remove-column-0-1")).as_deref(), Some("party-0-column-0-name"));
        for nonsense in ["remove-party-9", "remove-column-7-7", "add-column-9", "remove-party-x", ""] {
            let before = form.clone();
            form.edit(Action::read(nonsense));
            assert_eq!(form, before, "{nonsense}");
        }
    }
}
