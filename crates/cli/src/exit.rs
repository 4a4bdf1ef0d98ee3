//! Exit codes: 0 done; 2 wrong usage; 3 bad input; 4 budget refused; 5 integrity or signature failure;
//! 6 remote failure.

use anyhow::Error;
use potluck_client::Kind;
use potluck_party::predict::PredictError;
use potluck_release::Fault;

const USAGE: u8 = 2;
const INPUT: u8 = 3;
const BUDGET: u8 = 4;
const INTEGRITY: u8 = 5;
const REMOTE: u8 = 6;

/// The command was used in a way that cannot work.
#[derive(Debug)]
pub(crate) struct WrongUsage(pub(crate) String);

impl std::fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}

pub(crate) fn code(error: &Error) -> u8 {
    if error.is::<WrongUsage>() {
        return USAGE;
    }
    if let Some(error) = error.downcast_ref::<potluck_client::Error>() {
        return match error.kind() {
            Kind::Usage => USAGE,
            Kind::Input => INPUT,
            Kind::Integrity => INTEGRITY,
            Kind::Remote => REMOTE,
        };
    }
    let fault = if let Some(error) = error.downcast_ref::<potluck_party::Error>() {
        error.fault()
    } else if let Some(PredictError::Table(error)) = error.downcast_ref::<PredictError>() {
        error.fault()
    } else if let Some(error) = error.downcast_ref::<potluck_release::Error>() {
        error.fault()
    } else {
        Fault::Input
    };
    match fault {
        Fault::Input => INPUT,
        Fault::Budget => BUDGET,
        Fault::Integrity => INTEGRITY,
    }
}
