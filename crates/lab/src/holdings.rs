//! Raw columns as the parties hold them, in memory, and the study that would be made of them.

use anyhow::Result;
use potluck_core::encoding::{Bounds, LevelCount};
use potluck_core::mixing::MixingKey;
use potluck_release::Study;
use potluck_release::study::{Format, Unsealed};
use potluck_simulation::{self as simulation, People};
use serde_json::{Value, json};

use crate::table::Privacy;

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
    /// What a study says of it.
    fn declared(&self, name: &str) -> Value {
        match self {
            Self::Numbers { bounds, .. } => json!({ "name": name, "lo": bounds.lo(), "hi": bounds.hi() }),
            Self::Levels { count, .. } => {
                let levels: Vec<String> = (0..count.get()).map(|level| level.to_string()).collect();
                json!({ "name": name, "levels": levels })
            }
        }
    }

    fn held(self) -> simulation::Column {
        match self {
            Self::Numbers { values, .. } => simulation::Column::Numbers(values),
            Self::Levels { codes, .. } => simulation::Column::Levels(codes),
        }
    }
}

/// The form of a study.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    pub(crate) format: Format,
    /// Whether it declares that everybody is everywhere, where that is so.
    pub(crate) declares: bool,
}

/// The columns of all parties for the same subjects; encoded columns are counted party by party.
pub(crate) struct Holdings {
    people: People,
    /// The parties of a study.
    declared: Vec<Value>,
}

impl Holdings {
    pub(crate) fn new(rows: usize, parties: Vec<Vec<Column>>) -> Self {
        let declared = declare(&parties);
        let held = parties.into_iter().map(held).collect();
        Self { people: People::new(rows, held), declared }
    }

    /// The same if each party holds some of them only.
    pub(crate) fn held_by(self, held: Vec<Vec<usize>>) -> Self {
        Self { people: self.people.held_by(held), ..self }
    }

    /// Number of subjects.
    pub(crate) fn rows(&self) -> usize {
        self.people.rows()
    }

    /// Number of subjects of the largest party.
    pub(crate) fn largest(&self) -> usize {
        (0..self.people.parties().len()).map(|party| self.people.rows_of(party)).max().unwrap_or(0)
    }

    pub(crate) fn people(&self) -> &People {
        &self.people
    }

    /// The sealed study of these columns, in this form, for so many subjects a party.
    pub(crate) fn study(
        &self,
        form: Form,
        rows: usize,
        privacy: Privacy,
        k: Option<u64>,
        key: &MixingKey,
    ) -> Result<Study> {
        let draft = self.draft(form, rows, privacy, k);
        let (study, _) = Unsealed::from_json(&draft, None)?.seal::<anyhow::Error>(|| Ok(key.clone()))?;
        Ok(study)
    }

    /// All that is public of it.
    pub(crate) fn draft(&self, form: Form, rows: usize, privacy: Privacy, k: Option<u64>) -> Value {
        let Form { format, declares } = form;
        let Privacy { epsilon, delta } = privacy;
        let overlap = (declares && format == Format::Two && self.people.are_everywhere()).then_some("all");
        json!({
            "format": format.number(),
            "study": { "name": "lab", "rows": rows, "id": "integer", "k": k, "overlap": overlap },
            "privacy": { "epsilon": epsilon, "delta": delta },
            "party": self.declared,
        })
    }
}

/// What a study says of the columns of all parties.
fn declare(parties: &[Vec<Column>]) -> Vec<Value> {
    let mut names = (0..).map(|column| format!("c{column}"));
    let declare = |(party, columns): (usize, &Vec<Column>)| {
        let columns: Vec<Value> =
            columns.iter().zip(names.by_ref()).map(|(column, name)| column.declared(&name)).collect();
        json!({ "name": format!("p{party}"), "column": columns })
    };
    parties.iter().enumerate().map(declare).collect()
}

fn held(columns: Vec<Column>) -> Vec<simulation::Column> {
    columns.into_iter().map(Column::held).collect()
}
