//! The form that describes a study.

use maud::{Markup, html};
use potluck_release::exchange::StudySummary;
use potluck_release::plan::Plan;
use potluck_release::study::{IdKind, IdRule, Method};

use super::super::parts::secret;
use super::form::{ColumnForm, DIFFERENT, PartyForm, Problem, SAME, StudyForm, column_field, party_field};
use super::plan::panel;
use crate::store::Session;

const IDS: [(&str, &str); 3] = [
    (IdKind::Integer.word(), "whole numbers, such as a national number"),
    (IdKind::Text.word(), "text, exactly as written"),
    (IdKind::Row.word(), "the position in the table, the same at all parties"),
];
const METHODS: [(&str, &str); 3] = [
    (Method::Calibrated.word(), "calibrated: the most accurate"),
    (Method::Rmgm.word(), "rmgm: the paper’s random mixing"),
    (Method::Dgm.word(), "dgm: the paper’s noise on every row"),
];

const PEOPLE: [(&str, &str); 2] = [
    (SAME, "the same people at every party"),
    (DIFFERENT, "each party has its own people, and values may be missing"),
];
const MISSING: [(&str, &str); 2] = [("", "may be missing, and are counted"), ("never", "are never missing")];
const RULES: [(&str, &str); 5] = [
    (IdRule::Trim.word(), "take blanks off both ends"),
    (IdRule::Lowercase.word(), "write A to Z as a to z"),
    (IdRule::StripZeros.word(), "drop zeros that begin a number, as in P007"),
    (IdRule::Alphanumeric.word(), "drop all but letters and digits"),
    (IdRule::Date.word(), "write dates as 1990-01-31"),
];

/// What is said about the form.
#[derive(Default)]
pub(super) struct Advice {
    pub(super) plan: Option<Plan>,
    pub(super) problems: Vec<Problem>,
    /// Whether problems are shown at their fields: somebody asked for the study, and did not just
    /// add a line.
    pub(super) told: bool,
    /// The field to go on with.
    pub(super) focus: Option<String>,
}

impl Advice {
    /// All that is wrong with a field.
    fn at(&self, field: &str) -> Option<String> {
        let is_here = |problem: &&Problem| self.told && problem.field.as_deref() == Some(field);
        let found: Vec<&str> =
            self.problems.iter().filter(is_here).map(|problem| problem.message.as_str()).collect();
        (!found.is_empty()).then(|| found.join(" "))
    }

    fn is_focus(&self, field: &str) -> bool {
        self.focus.as_deref() == Some(field)
    }
}

/// The whole page.
pub(super) fn form_page(
    session: &Session,
    form: &StudyForm,
    bases: &[StudySummary],
    advice: &Advice,
) -> Markup {
    html! {
        h1 { "New study" }
        p .lead { "Describe who brings which columns. The plan shows what the study would promise and what it would be good for, before anyone touches data." }
        (summary(advice))
        form #study .new-study method="post" action="/studies/new" data-plan="plan" novalidate {
            (secret(session))
            input type="hidden" name="form" value=(form.form);
            // What the Enter key does in any field.
            button .unseen type="submit" name="action" value="plan" tabindex="-1" aria-hidden="true" { "Show the plan" }
            div .editor {
                (basics(form, bases, advice))
                @for (at, party) in form.parties.iter().enumerate() { (party_fields(at, party, advice)) }
                p .actions { button .quiet type="submit" name="action" value="add-party" { "Add a party" } }
                (upload(form, advice))
            }
            div .side {
                section #plan .card aria-labelledby="plan-heading" aria-live="polite" { (plan_panel(advice)) }
                p .actions {
                    button .quiet type="submit" name="action" value="plan" { "Show the plan" }
                    button type="submit" name="action" value="create" { "Create the study" }
                }
                p .aside { "Creating seals the study with a mixing key from the operating system’s randomness. After that nothing in it can be changed; to correct something, create another." }
            }
        }
    }
}

/// All problems, with the way to each field.
fn summary(advice: &Advice) -> Markup {
    html! {
        @if advice.told && !advice.problems.is_empty() {
            div #problems .alarm role="alert" tabindex="-1" {
                p { strong { "The study cannot be created like this." } }
                (problem_list(advice))
            }
        }
    }
}

fn problem_list(advice: &Advice) -> Markup {
    html! {
        ul {
            @for problem in &advice.problems {
                li {
                    @match &problem.field {
                        Some(field) => a href={ "#" (field) } { (place(field)) (within_sentence(&problem.message)) },
                        None => (problem.message),
                    }
                }
            }
        }
    }
}

/// Which field it is, in a list away from the fields.
fn place(field: &str) -> String {
    let number = |text: &str| text.parse::<usize>().map_or(0, |at| at + 1);
    match field.split('-').collect::<Vec<_>>().as_slice() {
        ["party", party, "column", column, key] => {
            let label = label(key).to_lowercase();
            format!("Party {}, column {}, {label}: ", number(party), number(column))
        }
        ["party", party, key] => format!("Party {}, {}: ", number(party), label(key).to_lowercase()),
        [key] if !label(key).is_empty() => format!("{}: ", label(key)),
        _ => String::new(),
    }
}

/// What the form calls a field; nothing where its messages say what they are about.
fn label(key: &str) -> &'static str {
    match key {
        "name" => "Name",
        "rows" => "People",
        "overlap" => "People in common",
        "id_rules" => "Rules for ids",
        "typical" => "Typical",
        "missing" => "Missing values",
        "id" => "How people are identified",
        "epsilon" => "ε of each release",
        "delta" => "δ of each release",
        "method" => "Method",
        "lo" => "Lowest",
        "hi" => "Highest",
        "unit" => "Unit",
        "levels" => "Levels",
        "description" => "Meaning",
        _ => "",
    }
}

/// A sentence as it stands behind a colon.
fn within_sentence(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

fn plan_panel(advice: &Advice) -> Markup {
    html! {
        h2 #plan-heading { "The plan" }
        @match &advice.plan {
            Some(plan) => (panel(plan)),
            None if advice.problems.is_empty() => p .aside { "Fill in the study to see what it would promise." },
            None if advice.told => p .aside { "Correct the fields that are marked to see what the study would promise." },
            None => {
                p { "To see the plan, some things are still to be said:" }
                (problem_list(advice))
            }
        }
    }
}

fn basics(form: &StudyForm, bases: &[StudySummary], advice: &Advice) -> Markup {
    html! {
        fieldset .card {
            legend { "The study" }
            (text(advice, "name", label("name"), &form.name, Hint("What people will call it, such as “blood pressure 2026”.")))
            (select(advice, "people", "Who is at the parties", &form.people, &PEOPLE))
            (text(advice, "rows", label("rows"), &form.rows, Hint("The number of people, which is public. Where all parties hold the same, every table has exactly one row for each; where not, it is about how many a party has.")))
            (select(advice, "id", label("id"), &form.id, &IDS))
            div .when-different {
                (text(advice, "overlap", label("overlap"), &form.overlap, Hint("The share of the smaller party’s people that any two parties have in common, as far as it is known: all, or the least and the largest, such as 0.5 to 1. May stay empty.")))
                (rules(form, advice))
            }
            div .pair {
                (text(advice, "epsilon", label("epsilon"), &form.epsilon, Hint("Smaller protects more.")))
                (text(advice, "delta", label("delta"), &form.delta, Hint("Well below 1 in the number of people.")))
            }
            (select(advice, "method", label("method"), &form.method, &METHODS))
            @if !bases.is_empty() { (extends(form, bases, advice)) }
            label .check {
                input type="checkbox" name="early" value="on" checked[form.early];
                span { "A public dataset may appear before every party has released, with those present" }
            }
        }
    }
}

/// What all parties do to ids of text before they are hashed.
fn rules(form: &StudyForm, advice: &Advice) -> Markup {
    html! {
        fieldset #id_rules .field {
            legend { (label("id_rules")) }
            @for (rule, words) in RULES {
                label .check {
                    input type="checkbox" name="id_rules" value=(rule) checked[form.rules.iter().any(|word| word == rule)];
                    span { (words) }
                }
            }
            (field_problem(advice, "id_rules"))
            p .aside { "For ids that are text: all parties do the same to them, so that ids that are written differently match." }
        }
    }
}

fn extends(form: &StudyForm, bases: &[StudySummary], advice: &Advice) -> Markup {
    let short = |id: &str| id.chars().take(8).collect::<String>();
    html! {
        div .field {
            label for="extends" { "Extends" }
            select #extends name="extends" aria-describedby="extends-hint" aria-invalid=[advice.at("extends").map(|_| "true")] {
                option value="" { "no other study" }
                @for base in bases {
                    option value=(base.id) selected[form.extends == base.id] { (base.name) " (" (short(&base.id)) ")" }
                }
            }
            (field_problem(advice, "extends"))
            p #extends-hint .aside { "For latecomers: list new parties only. People, identification, privacy and method are those of the study that is extended." }
        }
    }
}

/// Words under a field.
#[derive(Clone, Copy)]
struct Hint(&'static str);

fn text(advice: &Advice, field: &str, label: &str, value: &str, hint: Hint) -> Markup {
    let problem = advice.at(field);
    let described = match (hint.0.is_empty(), &problem) {
        (true, None) => None,
        (false, None) => Some(format!("{field}-hint")),
        (true, Some(_)) => Some(format!("{field}-problem")),
        (false, Some(_)) => Some(format!("{field}-problem {field}-hint")),
    };
    html! {
        div .field {
            label for=(field) { (label) }
            input id=(field) name=(field) type="text" value=(value) autocomplete="off" autofocus[advice.is_focus(field)]
                aria-describedby=[described] aria-invalid=[problem.as_ref().map(|_| "true")];
            (field_problem(advice, field))
            @if !hint.0.is_empty() { p .aside id={ (field) "-hint" } { (hint.0) } }
        }
    }
}

fn field_problem(advice: &Advice, field: &str) -> Markup {
    html! {
        @if let Some(message) = advice.at(field) { p .problem id={ (field) "-problem" } { (message) } }
    }
}

fn select(advice: &Advice, field: &str, label: &str, value: &str, options: &[(&str, &str)]) -> Markup {
    let problem = advice.at(field).map(|_| format!("{field}-problem"));
    html! {
        div .field {
            label for=(field) { (label) }
            select id=(field) name=(field) aria-describedby=[problem.as_deref()] aria-invalid=[problem.as_ref().map(|_| "true")] {
                @for (option, words) in options { option value=(option) selected[*option == value] { (words) } }
            }
            (field_problem(advice, field))
        }
    }
}

fn party_fields(at: usize, party: &PartyForm, advice: &Advice) -> Markup {
    html! {
        fieldset .card .party {
            legend { "Party " (at + 1) }
            (text(advice, &party_field(at, "name"), "Name of the party", &party.name, Hint("Letters, digits, - and _, such as north-clinic.")))
            div .when-different {
                (text(advice, &party_field(at, "rows"), "About how many people it has", &party.rows, Hint("May stay empty if it has about as many as the study says.")))
            }
            @for (column, form) in party.columns.iter().enumerate() { (column_fields((at, column), form, advice)) }
            p .actions {
                button .quiet type="submit" name="action" value={ "add-column-" (at) } { "Add a column" span .unseen { " to party " (at + 1) } }
                button .quiet .remove type="submit" name="action" value={ "remove-party-" (at) } { "Remove the party" span .unseen { " " (at + 1) } }
            }
        }
    }
}

fn column_fields((party, at): (usize, usize), column: &ColumnForm, advice: &Advice) -> Markup {
    let field = |name: &str| column_field(party, at, name);
    let levels = field("levels");
    let described = match advice.at(&levels) {
        Some(_) => format!("{levels}-problem {levels}-hint"),
        None => format!("{levels}-hint"),
    };
    html! {
        fieldset .column {
            legend { "Column " (at + 1) }
            div .pair {
                (text(advice, &field("name"), label("name"), &column.name, Hint("")))
                (select(advice, &field("kind"), "Values", if column.has_levels() { "levels" } else { "number" }, &[("number", "a number"), ("levels", "one of some levels")]))
            }
            div .triple .when-number {
                (text(advice, &field("lo"), label("lo"), &column.lo, Hint("")))
                (text(advice, &field("hi"), label("hi"), &column.hi, Hint("")))
                (text(advice, &field("unit"), label("unit"), &column.unit, Hint("")))
            }
            div .field .when-levels {
                label for=(levels) { (label("levels")) }
                textarea id=(levels) name=(levels) rows="3" aria-describedby=(described) aria-invalid=[advice.at(&levels).map(|_| "true")] { (column.levels) }
                (field_problem(advice, &levels))
                p .aside id={ (levels) "-hint" } { "One a line." }
            }
            (text(advice, &field("description"), label("description"), &column.description, Hint("")))
            div .pair .when-different {
                (select(advice, &field("missing"), label("missing"), &column.missing, &MISSING))
                div .when-number {
                    (text(advice, &field("typical"), label("typical"), &column.typical, Hint("A value that most are known to be near. May stay empty.")))
                }
            }
            p .actions {
                button .quiet .remove type="submit" name="action" value={ "remove-column-" (party) "-" (at) } {
                    "Remove the column" span .unseen { " " (at + 1) " of party " (party + 1) }
                }
            }
        }
    }
}

fn upload(form: &StudyForm, advice: &Advice) -> Markup {
    let problem = advice.at("sealed");
    html! {
        details .card open[problem.is_some() || !form.sealed.is_empty()] {
            summary { "Or use a study that is sealed already" }
            div .field {
                label for="sealed" { "Text of the sealed study.toml" }
                textarea #sealed name="sealed" rows="8" spellcheck="false" aria-describedby={ "sealed-hint" @if problem.is_some() { " sealed-problem" } } aria-invalid=[problem.map(|_| "true")] { (form.sealed) }
                (field_problem(advice, "sealed"))
                p #sealed-hint .aside { "As " code { "potluck study seal" } " wrote it. Nothing that is filled in above is used then, except whether a dataset may appear early." }
            }
            div .field .file hidden data-fills="sealed" {
                label for="sealed-file" { "Or take it from a file" }
                input #sealed-file type="file" accept=".toml,text/plain";
            }
            p .actions { button .quiet type="submit" name="action" value="create-sealed" { "Create from the sealed study" } }
        }
    }
}
