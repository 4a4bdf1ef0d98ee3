//! The lab: reproduces the experiments of Wu et al. (UAI 2022) through the real encoding, mixing, noise and
//! learners, and measures any later method on the same footing. Never a dependency of anything shipped.

mod args;
mod dataset;
mod experiments;
mod figure;
mod methods;
mod noise;
mod runner;
mod seeds;
mod statistics;
mod synthetic;
mod table;

use anyhow::Result;
use clap::Parser;

use args::{Arguments, Experiment};

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let common = &arguments.common;
    match &arguments.experiment {
        Experiment::Convergence(arguments) => experiments::convergence::run(arguments, common),
        Experiment::Eigenvalues(arguments) => experiments::eigenvalues::run(arguments, common),
        Experiment::RealData(arguments) => experiments::real_data::run(arguments, common),
        Experiment::Mixing => experiments::mixing::run(common),
    }
}
