//! Predictions of a model for the rows of a table.

use std::io::{self, Write};

use arrow_array::Array;
use potluck_release::Model;
use potluck_release::model::Term;

use crate::table::convert::{Input, input};
use crate::{Error, Table};

/// What can go wrong while predicting.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// The table.
    #[error(transparent)]
    Table(#[from] Error),
    /// The output.
    #[error("cannot write the predictions: {0}")]
    Output(#[from] io::Error),
}

/// Writes one prediction a row as CSV: the ids if `id_column` is given, then the label.
pub fn predict(
    model: &Model,
    table: &Table,
    id_column: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), PredictError> {
    let mut columns: Vec<String> = Vec::new();
    for coefficient in &model.coefficients {
        let name = coefficient.term.column();
        if !columns.iter().any(|column| column == name) {
            columns.push(name.to_owned());
        }
    }
    let numeric: Vec<bool> = columns
        .iter()
        .map(|column| {
            let of_column = |term: &Term| term.column() == column && matches!(term, Term::Numeric { .. });
            model.coefficients.iter().any(|coefficient| of_column(&coefficient.term))
        })
        .collect();
    let mut asked = columns.clone();
    asked.extend(id_column.map(str::to_owned));

    let mut writer = csv::Writer::from_writer(out);
    let label = model.label.name();
    let header: Vec<&str> = id_column.into_iter().chain([label.as_str()]).collect();
    writer.write_record(&header).map_err(io::Error::from)?;
    let batches = table.batches(&asked)?;
    let mut first = 0;
    for batch in batches.next {
        let batch = batch?;
        let mut inputs = Vec::with_capacity(columns.len());
        for ((column, array), &numeric) in columns.iter().zip(batch.columns()).zip(&numeric) {
            inputs.push(input(table.name(), column, first, array, batches.text, numeric)?);
        }
        let ids = match id_column {
            None => None,
            Some(column) => {
                let array = batch.columns().last().expect("the id column was asked for");
                Some(input(table.name(), column, first, array, batches.text, false)?)
            }
        };
        for row in 0..batch.num_rows() {
            let value = |term: &Term| {
                let at = columns.iter().position(|column| column == term.column())?;
                match (&inputs[at], term) {
                    (Input::Numbers(numbers), _) => Some(numbers[row]),
                    (Input::Texts(texts), Term::Level { level, .. }) => {
                        texts.is_valid(row).then(|| f64::from(texts.value(row) == level))
                    }
                    (Input::Texts(_), Term::Numeric { .. }) => None,
                }
            };
            let prediction = model.predict(value).to_string();
            match &ids {
                Some(Input::Texts(ids)) => writer.write_record([ids.value(row), prediction.as_str()]),
                _ => writer.write_record([prediction.as_str()]),
            }
            .map_err(io::Error::from)?;
        }
        first += batch.num_rows() as u64;
    }
    writer.flush()?;
    Ok(())
}
