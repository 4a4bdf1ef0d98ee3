//! Raw columns as the parties hold them, in memory, and the study that would be made of them.

use anyhow::Result;
use potluck_core::encoding::{Bounds, LevelCount};
use potluck_core::mixing::MixingKey;
use potluck_release::Study;
use potluck_release::study::Unsealed;
use potluck_simulation::{self as simulation, People};
use serde_json::{Value, json};

use crate::released::Own;
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

/// The columns of all parties for the same subjects; encoded columns are counted party by party.
pub(crate) struct Holdings {
    people: People,
    /// The parties of a study.
    declared: Vec<Value>,
}

impl Holdings {
    pub(crate) fn new(rows: usize, parties: Vec<Vec<Column>>) -> Self {
        let mut names = (0..).map(|column| format!("c{column}"));
        let declare = |(party, columns): (usize, &Vec<Column>)| {
            let columns: Vec<Value> =
                columns.iter().zip(names.by_ref()).map(|(column, name)| column.declared(&name)).collect();
            json!({ "name": format!("p{party}"), "column": columns })
        };
        let declared = parties.iter().enumerate().map(declare).collect();
        let held = parties.into_iter().map(|columns| columns.into_iter().map(Column::held).collect());
        Self { people: People::new(rows, held.collect()), declared }
    }

    /// Number of subjects.
    pub(crate) fn rows(&self) -> usize {
        self.people.rows()
    }

    pub(crate) fn people(&self) -> &People {
        &self.people
    }

    /// The sealed study of these columns for so many subjects.
    pub(crate) fn study(
        &self,
        rows: usize,
        (method, privacy): (Own, Privacy),
        k: Option<u64>,
        key: &MixingKey,
    ) -> Result<Study> {
        let Privacy { epsilon, delta } = privacy;
        let draft = json!({
            "format": potluck_release::FORMAT,
            "study": { "name": "lab", "rows": rows, "id": "integer", "method": method.word(), "k": k },
            "privacy": { "epsilon": epsilon, "delta": delta },
            "party": self.declared,
        });
        let (study, _) = Unsealed::from_json(&draft, None)?.seal::<anyhow::Error>(|| Ok(key.clone()))?;
        Ok(study)
    }
}
