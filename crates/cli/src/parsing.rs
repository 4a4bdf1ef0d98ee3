//! Reading the command line; a mistyped command is answered with the one that was probably meant.

use std::env;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error, Parser};

use crate::args::Arguments;

/// The arguments, or an end with what is wrong with them.
pub(crate) fn parse() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| with_suggestion(error).exit())
}

/// Two letters that changed places are far apart for clap, and one slip for people.
fn with_suggestion(mut error: Error) -> Error {
    let known = error.get(ContextKind::SuggestedSubcommand).is_some();
    if let (ErrorKind::InvalidSubcommand, false, Some(ContextValue::String(typed))) =
        (error.kind(), known, error.get(ContextKind::InvalidSubcommand))
        && let Some(meant) = nearest(typed, &siblings(typed))
    {
        let tip = StyledStr::from(format!("did you mean '{meant}'?"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// The names of the commands that could stand where this was typed.
fn siblings(typed: &str) -> Vec<String> {
    let mut command = Arguments::command();
    for word in env::args().skip(1).take_while(|word| word != typed) {
        if let Some(below) = command.find_subcommand(&word) {
            command = below.clone();
        }
    }
    command.get_subcommands().map(|below| below.get_name().to_owned()).collect()
}

/// The name that is one slip away, two in a longer word.
fn nearest<'a>(typed: &str, names: &'a [String]) -> Option<&'a str> {
    let slips = |name: &&String| strsim::damerau_levenshtein(typed, name);
    let nearest = names.iter().min_by_key(slips)?;
    (slips(&nearest) <= 1 + typed.len() / 5).then_some(nearest.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_another_word_is_not() {
        let names = ["fit", "plan", "verify", "release"].map(str::to_owned);
        for (typed, meant) in [("fti", "fit"), ("fitt", "fit"), ("realese", "release"), ("veirfy", "verify")]
        {
            assert_eq!(nearest(typed, &names), Some(meant), "{typed}");
        }
        for typed in ["xyz", "publish", "f"] {
            assert_eq!(nearest(typed, &names), None, "{typed}");
        }
    }
}
