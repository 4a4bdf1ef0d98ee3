//! Predictions of a model for the rows of a table.

use std::io::{self, Write};

use arrow_array::{Array, StringArray};
use potluck_core::learn::Level;
use potluck_release::Model;
use potluck_release::model::{Kind, Probability, Term};
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

/// What a feature is of one row; nothing if it is missing.
type Row<'a> = &'a dyn Fn(&Term) -> Option<f64>;

/// A prediction as it is written.
struct Predicted {
    value: f64,
    /// Lower and upper end of its interval.
    ends: Option<[f64; 2]>,
}

impl Predicted {
    /// Of a label itself, with an interval that reaches so far.
    fn value(model: &Model, row: Row<'_>, reach: Option<f64>) -> Self {
        let value = model.predict(row);
        Self { value, ends: reach.map(|reach| model.within_reach(value, reach)) }
    }

    /// Of a logistic regression.
    fn probability(model: &Model, row: Row<'_>, level: Option<Level>) -> Self {
        let found = model.probability(row, level);
        Self {
            value: found.map_or_else(|| model.predict(row), |found| found.estimate),
            ends: found.map(|Probability { low, high, .. }| [low, high]),
        }
    }
}

/// Writes one prediction a row: the ids if `id_column` is given, then the label, then the ends of
/// its interval if intervals of a level are asked for. Of a logistic regression, the prediction is
/// a probability, and always has the ends of its interval: at the model's level unless another is
/// asked for. Of a table that cannot be predicted from, nothing is written.
pub fn predict(
    model: &Model,
    table: &Table,
    id_column: Option<&str>,
    interval: Option<Level>,
    form: Form,
    out: &mut dyn Write,
) -> Result<(), PredictError> {
    let label = model.label.name();
    let of_row: Box<dyn Fn(Row<'_>) -> Predicted> = if model.kind == Kind::Logistic {
        Box::new(|row| Predicted::probability(model, row, interval))
    } else {
        let reach = interval.map(|level| model.prediction_reach(level)).transpose().map_err(Error::from)?;
        Box::new(move |row| Predicted::value(model, row, reach))
    };
    let with_ends = interval.is_some() || model.kind == Kind::Logistic;
    let mut sheet = match form {
        Form::Csv => {
            Sheet::Csv { writer: Box::new(csv::Writer::from_writer(out)), decimals: decimals(model) }
        }
        Form::Json => Sheet::Json(out),
    };
    let mut rows = 0;
    for_each_batch(model, table, id_column, &(), of_row, |ids, predictions| {
        for (row, prediction) in predictions.iter().enumerate() {
            if rows == 0 {
                sheet.begin(&label, id_column, with_ends)?;
            }
            sheet.row(rows, ids.map(|ids| ids.value(row)), prediction)?;
            rows += 1;
        }
        Ok::<(), PredictError>(())
    })?;
    if rows == 0 {
        sheet.begin(&label, id_column, with_ends)?;
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

    fn row(&mut self, before: u64, id: Option<&str>, predicted: &Predicted) -> io::Result<()> {
        match self {
            Self::Csv { writer, decimals } => {
                let numbers = [predicted.value].into_iter().chain(predicted.ends.into_iter().flatten());
                let numbers: Vec<String> = numbers.map(|number| format!("{number:.decimals$}")).collect();
                writer.write_record(id.into_iter().chain(numbers.iter().map(String::as_str))).map_err(output)
            }
            Self::Json(out) => {
                let mut row = json!({ "prediction": predicted.value });
                if let Some(id) = id {
                    row["id"] = id.into();
                }
                if let Some([low, high]) = predicted.ends {
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

/// What `of_row` says of each row.
fn each<T: Clone>(
    model: &Model,
    table: &Table,
    observer: &dyn Observer,
    of_row: impl Fn(Row<'_>) -> T,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    for_each_batch(model, table, None, observer, of_row, |_, found| {
        all.extend_from_slice(found);
        Ok::<(), Error>(())
    })?;
    Ok(all)
}

/// One prediction a row; of a logistic regression, a probability.
pub fn predictions(model: &Model, table: &Table, observer: &dyn Observer) -> Result<Vec<f64>, Error> {
    each(model, table, observer, |row| model.predict(row))
}

/// The probability of each row with its interval, by a logistic regression; of another, nothing.
pub fn probabilities(
    model: &Model,
    table: &Table,
    observer: &dyn Observer,
) -> Result<Option<Vec<Probability>>, Error> {
    Ok(each(model, table, observer, |row| model.probability(row, None))?.into_iter().collect())
}

/// The predicted log odds of each row, by a logistic regression; of another, nothing.
pub fn log_odds(model: &Model, table: &Table, observer: &dyn Observer) -> Result<Option<Vec<f64>>, Error> {
    Ok(each(model, table, observer, |row| model.log_odds(row))?.into_iter().collect())
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

/// Calls `take` with what `of_row` says of every row of a batch, and with its ids if `id_column` is
/// given.
fn for_each_batch<T, E: From<Error>>(
    model: &Model,
    table: &Table,
    id_column: Option<&str>,
    observer: &dyn Observer,
    of_row: impl Fn(Row<'_>) -> T,
    mut take: impl FnMut(Option<&StringArray>, &[T]) -> Result<(), E>,
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
            of_row(&|term: &Term| {
                let at = columns.iter().position(|column| column == term.column())?;
                match &inputs[at] {
                    Input::Numbers(numbers) => Some(numbers[row]),
                    Input::Texts(texts) => has_level(term, texts.is_valid(row).then(|| texts.value(row))),
                }
            })
        };
        let predictions: Vec<T> = (0..batch.num_rows()).map(prediction).collect();
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
