//! `potluck predict`.

use std::io::{self, BufWriter};

use anyhow::Result;
use potluck_core::learn::Level;
use potluck_party::Table;
use potluck_party::predict::{Form, PredictError, predict};
use potluck_release::{Error, Model};

use super::Settings;
use crate::args::Predict;

pub(super) fn run(arguments: &Predict, settings: &Settings<'_>) -> Result<()> {
    let model = Model::read(&arguments.model)?;
    let table = Table::open(&arguments.data, &settings.resources.tmp)?;
    if let Some(fault) = model.diagnostics.fault() {
        settings.printer.note(&format!("careful: {fault}"));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let form = if settings.printer.is_json() { Form::Json } else { Form::Csv };
    let interval = arguments.interval.map(Level::new).transpose().map_err(Error::from)?;
    match predict(&model, &table, arguments.id.as_deref(), interval, form, &mut out) {
        // The reader of a pipe may stop reading when it has seen enough.
        Err(PredictError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
