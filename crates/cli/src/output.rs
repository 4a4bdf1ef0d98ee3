//! The one place that writes to the terminal: data on stdout, talk on stderr.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Error, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use potluck_party::{Observer, Step};
use serde::Serialize;
use serde_json::json;

use crate::exit::WrongUsage;
use crate::interruption::stop_requested;

/// Said when the charge stands, so that it is on the screen whatever becomes of the process.
const CHARGED: &str =
    "Charged. If this is interrupted, run the same command again: it goes on at no further charge.";

#[derive(Clone)]
pub(crate) struct Printer {
    json: bool,
}

impl Printer {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether machines read the output.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// The result of a command: as JSON, or as text for people.
    pub(crate) fn result(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        let output = if self.json { serde_json::to_string_pretty(value)? + "\n" } else { text() };
        self.data(&output)
    }

    /// Data that goes to a file or to another program as it is.
    #[expect(clippy::unused_self, reason = "whoever writes to stdout must hold the printer")]
    pub(crate) fn data(&self, text: &str) -> Result<()> {
        match io::stdout().lock().write_all(text.as_bytes()) {
            // The reader of a pipe may stop reading when it has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }

    /// A remark for people.
    pub(crate) fn note(&self, text: &str) {
        if !self.json {
            say(text);
        }
    }

    /// A remark for people that nobody should miss.
    pub(crate) fn warn(&self, text: &str) {
        self.note(&alarming(&format!("Careful: {text}"), &io::stderr()));
    }

    pub(crate) fn error(&self, error: &Error, code: u8) {
        if self.json {
            say(&json!({ "error": error.to_string(), "exit_code": code }).to_string());
        } else {
            say(&format!("error: {error}"));
        }
    }

    /// Asks before something that cannot be undone.
    pub(crate) fn confirm(&self, yes: bool, question: &str, declined: &str) -> Result<()> {
        if yes {
            return Ok(());
        }
        if self.json || !io::stdin().is_terminal() {
            return Err(
                WrongUsage(format!("{question} Nobody is there to answer: pass --yes to agree.")).into()
            );
        }
        ask(question, declined)
    }

    /// Asks a question that only people at a terminal may see; where there is none, says something
    /// else.
    pub(crate) fn confirm_shown(
        &self,
        yes: bool,
        question: impl FnOnce() -> String,
        unanswered: String,
    ) -> Result<()> {
        if yes {
            return Ok(());
        }
        if self.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(WrongUsage(unanswered).into());
        }
        ask(&question(), "not agreed; nothing was written")
    }

    /// A progress bar over so many rows; shown on a terminal only.
    pub(crate) fn progress(&self, what: &str, rows: u64) -> Progress {
        self.bar(what, rows, "{msg:24} {wide_bar} {human_pos}/{human_len} rows, {eta} left")
    }

    /// A progress bar over bytes that travel, as many as turns out; shown on a terminal only.
    pub(crate) fn transfer(&self, what: &str) -> Progress {
        self.bar(what, 0, "{msg:24} {wide_bar} {decimal_bytes}/{decimal_total_bytes}, {eta} left")
    }

    fn bar(&self, what: &str, length: u64, template: &str) -> Progress {
        let bar = ProgressBar::new(length);
        if self.json {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_style(ProgressStyle::with_template(template).expect("the template is valid"));
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar, printer: self.clone() }
    }
}

/// Goes on only if the answer is yes.
fn ask(question: &str, declined: &str) -> Result<()> {
    let mut stderr = io::stderr();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(WrongUsage(declined.to_owned()).into())
    }
}

/// A line on stderr. If it cannot be written, the exit code still tells.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A progress bar that follows a release.
pub(crate) struct Progress {
    bar: ProgressBar,
    printer: Printer,
}

impl Progress {
    pub(crate) fn set(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// So many bytes of so many are across.
    pub(crate) fn transferred(&self, done: u64, total: Option<u64>) {
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_position(done);
    }
}

impl Observer for Progress {
    fn stage(&self, name: &str, position: u32) {
        self.bar.set_position(0);
        self.bar.set_message(format!("pass {}: {name}", position + 1));
    }

    fn step(&self, step: Step) {
        match step {
            Step::Summed(_) => self.bar.set_message("drawing noise"),
            Step::Spent(0) => self.bar.suspend(|| self.printer.note(CHARGED)),
            Step::Stored(_) => self.bar.set_message("writing the release"),
            _ => {}
        }
    }

    fn rows(&self, done: u64) {
        self.set(done);
    }

    fn stop(&self) -> bool {
        stop_requested()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The text in red where the stream is a terminal that shows colours (<https://no-color.org>).
pub(crate) fn alarming(text: &str, stream: &impl IsTerminal) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    if plain || !stream.is_terminal() { text.to_owned() } else { format!("\x1b[1;31m{text}\x1b[0m") }
}

/// A table in columns: the first one left-aligned, the others right-aligned.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(column, (cell, &width))| {
                    if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        format!("  {}\n", padded.join("  ").trim_end())
    };
    let mut text = line(header.to_vec());
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    text
}

/// The text in lines of at most 100 characters, where its words allow it: the first one begins with
/// `first`, the others are indented as far.
pub(crate) fn wrapped(text: &str, first: &str) -> String {
    let indent = " ".repeat(first.chars().count());
    let mut lines = String::new();
    let mut width = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if width == 0 || width + 1 + length > 100 {
            lines.push_str(if width == 0 { first } else { "\n" });
            lines.push_str(if width == 0 { "" } else { &indent });
            width = indent.len() + length;
        } else {
            lines.push(' ');
            width += 1 + length;
        }
        lines.push_str(word);
    }
    lines.push('\n');
    lines
}

/// A number with about four significant digits, for people.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-4..=6).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    let decimals = (3 - magnitude).max(0) as usize;
    format!("{value:.decimals$}")
}

/// "1 party", "2 parties".
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A size in bytes, for people.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}
