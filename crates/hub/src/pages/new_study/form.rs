//! The form as it was filled in: kept as text, whatever it says, and turned into a study if it can
//! be.

use potluck_release::place::{Key, Place, Step};
use potluck_release::remedy::{Command, Remedy, Shape, Voice};
use potluck_release::study::{Format, IdRule, Mistake, Unsealed};
use potluck_release::{Error, Study};
use serde_json::{Value, json};

use super::super::errors::sentence;
use super::super::visitor::Fields;

/// Most parties and columns that a form holds; larger studies come as files.
const MOST_PARTIES: usize = 50;
const MOST_COLUMNS: usize = 500;

/// What the form says of people: all parties hold the same ones, or each its own.
pub(super) const SAME: &str = "same";
pub(super) const DIFFERENT: &str = "different";

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
    /// [`SAME`] or [`DIFFERENT`] people at each party.
    pub(super) people: String,
    /// What any two parties have in common, if different people are said.
    pub(super) overlap: String,
    /// Words of the rules of ids.
    pub(super) rules: Vec<String>,
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
    /// About how many people it has, if not as many as the study says.
    pub(super) rows: String,
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
    pub(super) typical: String,
    /// What becomes of missing values, or nothing for what is usual.
    pub(super) missing: String,
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
            epsilon: "1".to_owned(),
            delta: "0.000001".to_owned(),
            people: people(Format::NEW).to_owned(),
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
                "people" => form.people = value,
                "overlap" => form.overlap = value,
                "id_rules" => form.rules.push(value),
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
            ["party", party, field @ ("name" | "rows")] => {
                if let Some(party) = number(party, MOST_PARTIES) {
                    let party = self.party(party);
                    *(if *field == "name" { &mut party.name } else { &mut party.rows }) = value;
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
                    "typical" => column.typical = value,
                    "missing" => column.missing = value,
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
        let definition = base.definition();
        self.rows = definition.rows().to_string();
        self.epsilon = definition.epsilon().get().to_string();
        self.delta = definition.delta().get().to_string();
        definition.id_kind().word().clone_into(&mut self.id);
        definition.method().word().clone_into(&mut self.method);
        people(definition.format()).clone_into(&mut self.people);
        self.rules = definition.id_rules().iter().map(|rule| rule.word().to_owned()).collect();
    }

    /// The format that what is said of people asks for.
    fn format(&self) -> Format {
        match self.people.as_str() {
            SAME => Format::One,
            DIFFERENT => Format::Two,
            _ => Format::of_new(given(&self.method), None, self.id.trim()),
        }
    }

    /// The study that the form describes, as an extension of `base` if that is given.
    pub(super) fn study(&self, base: Option<&Study>) -> Result<Unsealed, Error> {
        Unsealed::from_json(&self.document(), base)
    }

    /// What the fields say as the sections of a study. A field that must be filled in is there even
    /// if it is empty.
    fn document(&self) -> Value {
        let format = self.format();
        let mut document = json!({
            "format": format.number(),
            "study": {
                "name": self.name.trim(),
                "rows": whole(&self.rows),
                "id": given(&self.id),
                "method": given(&self.method),
                "extends": given(&self.extends),
            },
            "privacy": { "epsilon": decimal(&self.epsilon), "delta": decimal(&self.delta) },
            "party": self.parties.iter().map(|party| party.section(format)).collect::<Vec<_>>(),
        });
        if format == Format::Two {
            let study = &mut document["study"];
            study["overlap"] = given(&self.overlap).map_or(Value::Null, share);
            if !self.rules.is_empty() {
                // In the order in which they are applied, whatever the browser's.
                let chosen = |rule: &&IdRule| self.rules.iter().any(|word| word == rule.word());
                study["id_rules"] = IdRule::ALL.iter().filter(chosen).map(|rule| rule.word()).collect();
            }
        }
        document
    }
}

/// What the form calls the people of a format.
fn people(format: Format) -> &'static str {
    match format {
        Format::One => SAME,
        Format::Two => DIFFERENT,
    }
}

impl PartyForm {
    fn section(&self, format: Format) -> Value {
        let columns: Vec<Value> = self.columns.iter().map(|column| column.section(format)).collect();
        let rows = given(&self.rows).filter(|_| format == Format::Two).map(whole);
        json!({ "name": self.name.trim(), "rows": rows, "column": columns })
    }
}

impl ColumnForm {
    fn section(&self, format: Format) -> Value {
        let (name, description) = (self.name.trim(), given(&self.description));
        let missing = given(&self.missing).filter(|_| format == Format::Two);
        if self.has_levels() {
            let levels = self.levels.lines().map(str::trim).filter(|level| !level.is_empty());
            let levels: Vec<&str> = levels.collect();
            json!({ "name": name, "levels": levels, "description": description, "missing": missing })
        } else {
            let (lo, hi, unit) = (decimal(&self.lo), decimal(&self.hi), given(&self.unit));
            let typical = given(&self.typical).filter(|_| format == Format::Two).map(decimal);
            json!({
                "name": name, "lo": lo, "hi": hi, "unit": unit, "description": description, "missing": missing,
                "typical": typical,
            })
        }
    }
}

/// A range of shares as people write it: "all", "0.5 to 1", or "0.5", which is the least; the text
/// if it is none.
fn share(text: &str) -> Value {
    if text == "all" {
        return text.into();
    }
    let ends: Option<Vec<f64>> = text.split("to").map(|end| end.trim().parse().ok()).collect();
    match ends.as_deref() {
        Some(&[least]) => json!([least, 1.0]),
        Some(&[least, largest]) => json!([least, largest]),
        _ => text.into(),
    }
}

/// What a field says that may be left empty.
fn given(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

/// A whole number as people write it, thousands apart or not; the text if it is none.
fn whole(text: &str) -> Value {
    let digits: String =
        text.chars().filter(|c| !matches!(c, ',' | '_' | '\'' | '’') && !c.is_whitespace()).collect();
    digits.parse::<u64>().map_or_else(|_| text.trim().into(), Value::from)
}

/// A number; the text if it is none.
fn decimal(text: &str) -> Value {
    let number = text.trim().replace('−', "-").parse().ok().filter(|number: &f64| number.is_finite());
    number.map_or_else(|| text.trim().into(), Value::from)
}

/// What is wrong with a study, at the fields that describe it.
pub(super) fn problems(error: &Error) -> Vec<Problem> {
    let other = match error {
        Error::Study(mistakes) => return mistakes.iter().map(Problem::of_field).collect(),
        Error::BaseMissing { .. } => Problem {
            field: Some("extends".to_owned()),
            message: "This hub does not have that study; choose another.".to_owned(),
        },
        other => Problem { field: None, message: sentence(&other.to_string()) },
    };
    vec![other]
}

/// What is wrong with the text of a sealed study.
pub(super) fn problems_of_sealed(error: &Error) -> Vec<Problem> {
    match error {
        Error::Study(mistakes) => {
            mistakes.iter().map(|mistake| Problem::of_sealed(&mistake.to_string())).collect()
        }
        other => vec![Problem::of_sealed(&other.to_string())],
    }
}

impl Problem {
    fn of_field(mistake: &Mistake) -> Self {
        let (field, words) = (field_of(mistake.place()), mistake.problem().in_words(&InForm));
        let words = if field.is_some() { words } else { format!("{}: {words}", mistake.place()) };
        Self { field, message: sentence(&words) }
    }

    /// Of the field for the text of a sealed study.
    pub(super) fn of_sealed(words: &str) -> Self {
        Self { field: Some("sealed".to_owned()), message: sentence(words) }
    }
}

/// The field that a place of the study is filled in at.
fn field_of(place: &Place) -> Option<String> {
    use Key::{
        Column, Delta, Epsilon, Extends, Id, IdRules, Method, Mixing, Name, Overlap, Party, Privacy, Rows,
        Study,
    };
    match place.steps() {
        [Step::Key(Study | Privacy), Step::Key(key)] => match key {
            Mixing => Some(Method.name().to_owned()),
            Name | Rows | Id | Method | Extends | Epsilon | Delta | Overlap | IdRules => {
                Some(key.name().to_owned())
            }
            _ => None,
        },
        [
            Step::Key(Party),
            Step::Item { at: party, .. },
            Step::Key(Column),
            Step::Item { at, .. },
            of_column @ ..,
        ] => {
            let key = if let [Step::Key(key)] = of_column { *key } else { Key::Lo };
            Some(column_field(*party, *at, key.name()))
        }
        [Step::Key(Party), Step::Item { at, .. }, Step::Key(Rows)] => Some(party_field(*at, Rows.name())),
        [Step::Key(Party), Step::Item { at, .. }, ..] => Some(party_field(*at, Name.name())),
        _ => None,
    }
}

/// The words of the form for what people can do.
struct InForm;

impl Voice for InForm {
    fn say(&self, remedy: &Remedy) -> String {
        let words = match remedy {
            Remedy::Write(Shape::Text) => "fill it in",
            Remedy::Write(Shape::Whole) => "write a whole number, such as 1000",
            Remedy::Write(Shape::Number) => "write a number, such as 0.5",
            Remedy::Write(Shape::Bound) => {
                "write a number, such as 0.5, or a date as year, month and day, such as 1990-01-31"
            }
            Remedy::Write(Shape::List(_)) => "add one",
            other => return Command.say(other),
        };
        words.to_owned()
    }
}

#[cfg(test)]
mod tests {
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
        let study = form.study(None).expect("nothing is wrong");
        let definition = study.definition();
        assert_eq!((definition.name(), definition.rows()), ("two \"clinics\"", 200_000));
        let columns: Vec<_> =
            definition.columns().map(|(party, column)| (party.name(), column.name())).collect();
        assert_eq!(columns, [("north", "age"), ("south", "smoker")]);
        assert_eq!(definition.parties()[1].columns()[0].description(), Some("says \"so\""));
    }

    #[test]
    fn different_people_become_a_study_of_format_2() {
        let more = [
            ("people", DIFFERENT),
            ("id", "text"),
            ("overlap", "0.5 to 0.9"),
            ("id_rules", "strip-zeros"),
            ("id_rules", "trim"),
            ("party-0-rows", "80,000"),
            ("party-0-column-0-typical", "60"),
            ("party-1-column-0-missing", "never"),
        ];
        let fields: Vec<_> = FILLED.into_iter().chain(more).collect();
        let form = StudyForm::read(&Fields::of(&fields));
        let study = form.study(None).expect("nothing is wrong");
        let definition = study.definition();
        let [north, south] = definition.parties() else { panic!("two parties") };
        assert_eq!(definition.format(), Format::Two);
        assert_eq!(definition.id_rules(), [IdRule::Trim, IdRule::StripZeros]);
        assert_eq!(definition.table_rows(north).expected(), 80_000);
        assert_eq!(definition.table_rows(south).expected(), 200_000);
        assert!((definition.overlap("north", "south")[0] - 0.5).abs() < 1e-12);
        assert_eq!(north.columns()[0].typical(), Some(60.0));
        assert!(north.columns()[0].may_miss() && !south.columns()[0].may_miss());
        // What is wrong is said at its field; the same people have none of these.
        let wrong = |field: &str, value: &str| {
            let fields: Vec<_> =
                fields.iter().copied().filter(|(name, _)| *name != field).chain([(field, value)]).collect();
            let error = StudyForm::read(&Fields::of(&fields)).study(None).unwrap_err();
            problems(&error).into_iter().filter_map(|problem| problem.field).collect::<Vec<_>>()
        };
        assert_eq!(wrong("overlap", "some"), ["overlap"]);
        assert_eq!(wrong("party-0-rows", "many"), ["party-0-rows"]);
        assert_eq!(wrong("party-0-column-0-typical", "1000"), ["party-0-column-0-typical"]);
        assert_eq!(wrong("id", "integer"), ["id_rules"]);
        let same: Vec<_> = fields.iter().copied().chain([("people", SAME), ("id", "integer")]).collect();
        let study = StudyForm::read(&Fields::of(&same)).study(None).expect("they are left out");
        assert_eq!(study.definition().format(), Format::One);
    }

    #[test]
    fn every_field_that_is_wrong_is_named() {
        let mut form = StudyForm::blank(String::new());
        form.epsilon = "much".to_owned();
        form.parties[1].columns[0].kind = "levels".to_owned();
        assert_eq!(
            fields(&form),
            [
                "name",
                "rows",
                "id",
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
        let problems = problems(&form.study(None).expect_err("it is empty"));
        assert_eq!(problems[1].message, "Is empty; write a whole number, such as 1000.");
        form.parties.clear();
        let problems = super::problems(&form.study(None).expect_err("it is empty"));
        assert_eq!(problems.last().expect("no party").message, "Party: there is none; add one.");
    }

    #[test]
    fn percentages_and_dates_are_answered_sensibly() {
        let mut form = StudyForm::read(&Fields::of(&FILLED));
        let column = |form: &mut StudyForm, lo: &str, hi: &str| {
            let column = &mut form.parties[0].columns[0];
            (column.lo, column.hi, column.unit) = (lo.to_owned(), hi.to_owned(), String::new());
        };
        column(&mut form, "1990-01-31", "2010-12-31");
        let study = form.study(None).expect("dates can be bounds");
        let dates = study.definition().parties()[0].columns()[0].dates();
        assert_eq!(dates, Some(["1990-01-31".to_owned(), "2010-12-31".to_owned()]));
        let said = |form: &StudyForm| -> Vec<(String, String)> {
            let problems = problems(&form.study(None).expect_err("it is refused"));
            problems.into_iter().map(|one| (one.field.unwrap_or_default(), one.message)).collect()
        };
        column(&mut form, "1990-01-31", "31.12.2010");
        assert_eq!(
            said(&form),
            [(
                "party-0-column-0-hi".to_owned(),
                "Is text; write a number, such as 0.5, or a date as year, month and day, such as 1990-01-31."
                    .to_owned()
            )]
        );
        column(&mut form, "0%", "12.5%");
        form.epsilon = "5 %".to_owned();
        form.delta = "0,00001".to_owned();
        let words: Vec<String> = said(&form).into_iter().map(|(_, words)| words).collect();
        assert_eq!(
            words,
            [
                "Is a percentage; write 0.05.",
                "Is written with a comma; write 0.00001.",
                "Is a percentage; write 0, or 0 if the column is counted in percent.",
                "Is a percentage; write 0.125, or 12.5 if the column is counted in percent.",
            ]
        );
    }

    /// The fields that are wrong, or what is said that has no field.
    fn fields(form: &StudyForm) -> Vec<String> {
        let error = form.study(None).expect_err("it is refused");
        problems(&error).into_iter().map(|problem| problem.field.unwrap_or(problem.message)).collect()
    }

    #[test]
    fn what_the_whole_study_says_is_put_to_its_fields() {
        let located = |change: &[(&str, &str)]| {
            let mut pairs = FILLED.to_vec();
            for (name, value) in change {
                pairs.retain(|(one, _)| one != name);
                pairs.push((name, value));
            }
            fields(&StudyForm::read(&Fields::of(&pairs)))
        };
        assert_eq!(located(&[("rows", "1")]), ["rows"]);
        assert_eq!(located(&[("delta", "2"), ("epsilon", "-1")]), ["epsilon", "delta"]);
        assert_eq!(located(&[("party-1-name", "north")]), ["party-1-name"]);
        assert_eq!(located(&[("party-1-name", "so uth")]), ["party-1-name"]);
        assert_eq!(located(&[("party-0-column-0-hi", "-5")]), ["party-0-column-0-hi"]);
        assert_eq!(located(&[("party-1-column-0-name", "age")]), ["party-1-column-0-name"]);
        assert_eq!(located(&[("method", "dgm")]), ["id"]);
        assert_eq!(located(&[("method", "magic")]), ["method"]);
        assert_eq!(located(&[("extends", "0")]), ["extends"]);
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
