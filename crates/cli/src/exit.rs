//! Exit codes: 0 done; 1 a defect of potluck; 2 wrong usage; 3 bad input; 4 budget refused; 5
//! integrity or signature failure; 6 remote failure.

use anyhow::Error;
use potluck_party::predict::PredictError;
use potluck_release::Fault;
use potluck_release::guard::Panicked;

/// potluck itself failed.
const DEFECT: u8 = 1;

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
    if error.is::<Panicked>() {
        return DEFECT;
    }
    if error.is::<WrongUsage>() {
        return Fault::Usage.exit_code();
    }
    let fault = if let Some(error) = error.downcast_ref::<potluck_client::Error>() {
        error.fault()
    } else if let Some(error) = error.downcast_ref::<potluck_party::Error>() {
        error.fault()
    } else if let Some(PredictError::Table(error)) = error.downcast_ref::<PredictError>() {
        error.fault()
    } else if let Some(error) = error.downcast_ref::<potluck_simulation::Error>() {
        error.fault()
    } else if let Some(error) = error.downcast_ref::<potluck_release::Error>() {
        error.fault()
    } else {
        Fault::Input
    };
    fault.exit_code()
}
