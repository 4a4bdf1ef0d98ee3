//! The lab: reproduces the experiments of Wu et al. (UAI 2022) through the real encoding, mixing, noise and
//! learners, and measures our own method on the same footing: its accuracy, the coverage of its intervals, its bias,
//! and how it fares on any table. Never a dependency of anything shipped.

mod args;
mod calibrated;
mod dataset;
mod experiments;
mod figure;
mod holdings;
mod inferred;
mod methods;
mod noise;
mod population;
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
        Experiment::Coverage(arguments) => experiments::coverage::run(arguments, common),
        Experiment::Robustness(arguments) => experiments::robustness::run(arguments, common),
        Experiment::Bias(arguments) => experiments::bias::run(arguments, common),
        Experiment::Planning(arguments) => experiments::planning::run(arguments, common),
    }
}
