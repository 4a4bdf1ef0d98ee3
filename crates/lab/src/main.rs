//! The lab: reproduces the experiments of Wu et al. (UAI 2022) through the real encoding, mixing,
//! noise and learners, and measures our own method on the same footing: its accuracy, the coverage
//! of its intervals, its bias, how it fares on any table, and how fast whole jobs are beside other
//! people's software. Never a dependency of anything shipped.

mod args;
mod cohort;
mod constant;
mod dataset;
mod experiments;
mod family;
mod figure;
mod holdings;
mod hub_server;
mod inferred;
mod jobs;
mod machine;
mod methods;
mod noise;
mod outcomes;
mod peers;
mod population;
mod released;
mod runner;
mod seeds;
mod statistics;
mod survey;
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
        Experiment::Cohorts(arguments) => experiments::cohorts::run(arguments, common),
        Experiment::Map(arguments) => experiments::map::run(arguments, common),
        Experiment::Robustness(arguments) => experiments::robustness::run(arguments, common),
        Experiment::Bias(arguments) => experiments::bias::run(arguments, common),
        Experiment::Classification(arguments) => experiments::classification::run(arguments, common),
        Experiment::Forecast(arguments) => experiments::forecast::run(arguments, common),
        Experiment::Planning(arguments) => experiments::planning::run(arguments, common),
        Experiment::Speed(arguments) => experiments::speed::run(arguments, common),
        Experiment::Growth(arguments) => experiments::growth::run(arguments, common),
        Experiment::Load(arguments) => experiments::load::run(arguments, common),
        Experiment::HubServer { data } => hub_server::serve(data),
        Experiment::Job(job) => jobs::run(job, common),
    }
}
