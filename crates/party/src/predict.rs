//! Predictions of a model for the rows of a table.

use std::io::{self, Write};

use arrow_array::{Array, StringArray};
use potluck_core::learn::Level;
use potluck_release::Model;
use potluck_release::model::Term;
use potluck_release::study::{MISSING_TOKENS, Unknown};
use serde_json::json;

use crate::release::progress;
use crate::table::convert::{Input, input};
use crate::{Error, Observer, Table};

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

/// What predictions are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line a row, after one of names.
    Csv,
    /// `{"label": …, "predictions": [{"id": …, "prediction": …}, …]}`, a line a row, with `low` and
    /// `high` where there are intervals.
    Json,
}

/// Writes one prediction a row: the ids if `id_column` is given, then the label, then the ends of
/// its interval if intervals of a level are asked for. Of a table that cannot be predicted from,
/// nothing is written.
pub fn predict(
    model: &Model,
    table: &Table,
    id_column: Option<&str>,
    interval: Option<Level>,
    form: Form,
    out: &mut dyn Write,
) -> Result<(), PredictError> {
    let label = model.label.name();
    let reach = interval.map(|level| model.prediction_reach(level)).transpose().map_err(Error::from)?;
    let mut sheet = match form {
        Form::Csv => {
            Sheet::Csv { writer: Box::new(csv::Writer::from_writer(out)), decimals: decimals(model) }
        }
        Form::Json => Sheet::Json(out),
    };
    let mut rows = 0;
    for_each_batch(model, table, id_column, &(), |ids, predictions| {
        for (row, &prediction) in predictions.iter().enumerate() {
            if rows == 0 {
                sheet.begin(&label, id_column, reach.is_some())?;
            }
            let ends = reach.map(|reach| model.within_reach(prediction, reach));
            sheet.row(rows, ids.map(|ids| ids.value(row)), prediction, ends)?;
            rows += 1;
        }
        Ok::<(), PredictError>(())
    })?;
    if rows == 0 {
        sheet.begin(&label, id_column, reach.is_some())?;
    }
    Ok(sheet.end()?)
}

/// Digits after the point that a prediction deserves: three digits of what it may miss, or of the
/// label's public range divided by a thousand where that is not known.
fn decimals(model: &Model) -> usize {
    let (lo, hi) = model.label.range();
    let error = model.prediction_error.unwrap_or((hi - lo) / 1000.0).max(f64::MIN_POSITIVE);
    (2.0 - error.log10().floor()).clamp(0.0, 17.0) as usize
}

/// Where predictions go.
enum Sheet<'a> {
    Csv { writer: Box<csv::Writer<&'a mut dyn Write>>, decimals: usize },
    Json(&'a mut dyn Write),
}

impl Sheet<'_> {
    fn begin(&mut self, label: &str, id_column: Option<&str>, with_ends: bool) -> io::Result<()> {
        let ends = with_ends.then(|| ["low", "high"].map(|end| format!("{label}.{end}")));
        let ends = ends.iter().flatten().map(String::as_str);
        match self {
            Self::Csv { writer, .. } => {
                writer.write_record(id_column.into_iter().chain([label]).chain(ends)).map_err(output)
            }
            Self::Json(out) => write!(out, "{{\"label\": {}, \"predictions\": [", json!(label)),
        }
    }

    fn row(
        &mut self,
        before: u64,
        id: Option<&str>,
        prediction: f64,
        ends: Option<[f64; 2]>,
    ) -> io::Result<()> {
        match self {
            Self::Csv { writer, decimals } => {
                let numbers = [prediction].into_iter().chain(ends.into_iter().flatten());
                let numbers: Vec<String> = numbers.map(|number| format!("{number:.decimals$}")).collect();
                writer.write_record(id.into_iter().chain(numbers.iter().map(String::as_str))).map_err(output)
            }
            Self::Json(out) => {
                let mut row = json!({ "prediction": prediction });
                if let Some(id) = id {
                    row["id"] = id.into();
                }
                if let Some([low, high]) = ends {
                    (row["low"], row["high"]) = (low.into(), high.into());
                }
                write!(out, "{}\n{row}", if before == 0 { "" } else { "," })
            }
        }
    }

    fn end(self) -> io::Result<()> {
        match self {
            Self::Csv { mut writer, .. } => writer.flush(),
            Self::Json(out) => {
                out.write_all(b"\n]}\n")?;
                out.flush()
            }
        }
    }
}

/// One prediction a row.
pub fn predictions(model: &Model, table: &Table, observer: &dyn Observer) -> Result<Vec<f64>, Error> {
    let mut all = Vec::new();
    for_each_batch(model, table, None, observer, |_, predictions| {
        all.extend_from_slice(predictions);
        Ok::<(), Error>(())
    })?;
    Ok(all)
}

/// The label of each row, NaN where it is missing: a number, or 1 where it is the level and 0 where
/// it is another.
pub fn labels(model: &Model, table: &Table, observer: &dyn Observer) -> Result<Vec<f64>, Error> {
    let column = model.label.column();
    let progress = progress(observer);
    let (text, batches) = table.batches(&[column.to_owned()])?;
    let mut labels = Vec::new();
    for batch in batches {
        let batch = batch?;
        let numeric = matches!(model.label, Term::Numeric { .. });
        let first = labels.len() as u64;
        let input = input(table.name(), column, first, batch.column(0), text, numeric)?;
        check_levels([&model.label], table, column, first, &input)?;
        match (&input, &model.label) {
            (Input::Numbers(numbers), _) => labels.extend_from_slice(numbers),
            (Input::Texts(texts), label) => {
                labels.extend(texts.iter().map(|text| has_level(label, text).unwrap_or(f64::NAN)));
            }
        }
        progress(labels.len() as u64)?;
    }
    Ok(labels)
}

/// The columns that a model needs to predict.
pub fn needed_columns(model: &Model) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for coefficient in &model.coefficients {
        let name = coefficient.term.column();
        if !columns.iter().any(|column| column == name) {
            columns.push(name.to_owned());
        }
    }
    columns
}

/// Calls `take` with the predictions for every batch, and with its ids if `id_column` is given.
fn for_each_batch<E: From<Error>>(
    model: &Model,
    table: &Table,
    id_column: Option<&str>,
    observer: &dyn Observer,
    mut take: impl FnMut(Option<&StringArray>, &[f64]) -> Result<(), E>,
) -> Result<(), E> {
    let columns = needed_columns(model);
    let numeric: Vec<bool> = columns
        .iter()
        .map(|column| {
            let of_column = |term: &Term| term.column() == column && matches!(term, Term::Numeric { .. });
            model.coefficients.iter().any(|coefficient| of_column(&coefficient.term))
        })
        .collect();
    let mut asked = columns.clone();
    asked.extend(id_column.map(str::to_owned));

    let (text, batches) = table.batches(&asked)?;
    let mut first = 0;
    for batch in batches {
        let batch = batch?;
        let mut inputs = Vec::with_capacity(columns.len());
        for ((column, array), &numeric) in columns.iter().zip(batch.columns()).zip(&numeric) {
            let input = input(table.name(), column, first, array, text, numeric)?;
            let terms = model.coefficients.iter().map(|coefficient| &coefficient.term);
            check_levels(terms, table, column, first, &input)?;
            inputs.push(input);
        }
        let ids = match (id_column, batch.columns().last()) {
            (Some(column), Some(array)) => match input(table.name(), column, first, array, text, false)? {
                Input::Texts(ids) => Some(ids),
                Input::Numbers(_) => None,
            },
            _ => None,
        };
        let prediction = |row: usize| {
            model.predict(|term: &Term| {
                let at = columns.iter().position(|column| column == term.column())?;
                match &inputs[at] {
                    Input::Numbers(numbers) => Some(numbers[row]),
                    Input::Texts(texts) => has_level(term, texts.is_valid(row).then(|| texts.value(row))),
                }
            })
        };
        let predictions: Vec<f64> = (0..batch.num_rows()).map(prediction).collect();
        take(ids.as_ref(), &predictions)?;
        first += batch.num_rows() as u64;
        progress(observer)(first)?;
    }
    Ok(())
}

/// 1 if the text is the level of the term, 0 if it is another; nothing if it is missing, or the
/// term has no levels.
fn has_level(term: &Term, text: Option<&str>) -> Option<f64> {
    let (Term::Level { level, levels, unknown, .. }, Some(text)) = (term, text) else { return None };
    if levels.iter().any(|level| level == text) {
        return Some(f64::from(level == text));
    }
    let missing = MISSING_TOKENS.contains(&text) || *unknown == Unknown::Missing;
    (!missing).then(|| f64::from(level == "other"))
}

/// Refuses values that are no level, unless the study counts them as missing or as `other`.
fn check_levels<'a>(
    terms: impl IntoIterator<Item = &'a Term>,
    table: &Table,
    column: &str,
    first: u64,
    input: &Input,
) -> Result<(), Error> {
    let Input::Texts(texts) = input else { return Ok(()) };
    let of_column = terms.into_iter().find_map(|term| match term {
        Term::Level { column: own, levels, unknown: Unknown::Error, .. } if own == column => Some(levels),
        _ => None,
    });
    let Some(levels) = of_column else { return Ok(()) };
    let unknown = |text: Option<&str>| {
        text.is_some_and(|text| !MISSING_TOKENS.contains(&text) && !levels.iter().any(|level| level == text))
    };
    match texts.iter().position(unknown) {
        None => Ok(()),
        Some(index) => Err(Error::Value {
            table: table.name().to_owned(),
            column: column.to_owned(),
            row: first + index as u64 + 1,
            problem: format!(
                "is not one of the model's levels, {}; correct it, or leave it empty",
                levels.join(", ")
            )
            .into(),
        }),
    }
}

/// The output's own error, so that a closed pipe can be told from a full disk.
fn output(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        _ => io::Error::other("the row could not be written as CSV"),
    }
}
