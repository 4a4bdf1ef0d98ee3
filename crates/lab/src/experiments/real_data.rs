//! Mean squared test losses on real tables, beside the paper's.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use potluck_core::learn::Ridge;
use potluck_core::mixing::Mixing;
use serde::Deserialize;
use serde_json::json;

use super::{DELTA, REAL_RIDGE};
use crate::args::{Common, RealData};
use crate::dataset::Dataset;
use crate::methods::{
    Method, MixedRows, calibrated, label_party_alone, largest_bernoulli, rmgm, row_methods, select,
};
use crate::runner::{Task, Work, earlier_results, run as run_tasks, write, write_json};
use crate::seeds::Seed;
use crate::statistics::{mean, standard_error};
use crate::table::{Cell, Privacy};

const EPSILONS: [f64; 3] = [1.0, 0.3, 0.1];
/// The paper takes the best of these by test loss, which is not private; so do we, to compare.
const KS: [u64; 5] = [100, 300, 1000, 3000, 10_000];

/// A method, and the group among which the best is chosen.
struct Entry {
    group: &'static str,
    method: Box<dyn Method>,
}

/// Every method of this experiment; one entry adds one.
fn registry() -> Vec<Entry> {
    let mut entries: Vec<Entry> = row_methods()
        .into_iter()
        .zip(["OLS", "BGM", "DGM"])
        .map(|(method, group)| Entry { group, method })
        .collect();
    for k in KS {
        entries.push(Entry { group: "RMGM", method: rmgm(Mixing::Bernoulli, MixedRows::Fixed(k)) });
        entries.push(Entry { group: "RMGM sparse", method: rmgm(Mixing::Sparse, MixedRows::Fixed(k)) });
    }
    entries.push(Entry { group: "calibrated", method: calibrated() });
    entries.push(Entry { group: "label's party alone", method: label_party_alone() });
    entries
}

fn datasets(arguments: &RealData) -> Result<Vec<Dataset>> {
    let folder = &arguments.data_dir;
    if !arguments.dataset.is_empty() {
        return arguments.dataset.iter().map(|path| Dataset::described_by(path, folder)).collect();
    }
    let mut found = Vec::new();
    for name in Dataset::built_in_names() {
        if Dataset::is_there(name, folder) {
            found.push(Dataset::built_in(name, folder)?);
        } else {
            eprintln!("{name}: its file is not in {}, left out", folder.display());
        }
    }
    if found.is_empty() {
        bail!("{} holds none of the tables; see docs/RESULTS.md for their names", folder.display());
    }
    Ok(found)
}

/// Losses of one dataset, by ε, entry and seed; the loss of the training mean by seed.
struct Losses {
    by_entry: Vec<Vec<Vec<f64>>>,
    of_mean: Vec<f64>,
}

/// One result of an earlier run.
#[derive(Deserialize)]
struct Earlier {
    dataset: String,
    epsilon: Option<f64>,
    method: String,
    losses: Vec<f64>,
}

impl Losses {
    /// From the losses of `chosen` to those of all entries; those that were not run come from an
    /// earlier run, if any.
    fn complete(&mut self, entries: &[Entry], chosen: &[Entry], dataset: &str, earlier: &[Earlier]) {
        for (epsilon, by_entry) in EPSILONS.iter().zip(&mut self.by_entry) {
            let of_entry = |entry: &Entry| {
                let name = entry.method.name();
                if let Some(at) = chosen.iter().position(|candidate| candidate.method.name() == name) {
                    return by_entry[at].clone();
                }
                let same = |result: &&Earlier| {
                    let epsilons = result.epsilon.is_some_and(|found| (found - epsilon).abs() < 1e-12);
                    result.dataset == dataset && result.method == name && epsilons
                };
                let found = earlier.iter().find(same).map_or_else(Vec::new, |result| result.losses.clone());
                if !found.is_empty() && found.len() != self.of_mean.len() {
                    eprintln!(
                        "{dataset}, {name}: {} earlier repetitions beside {} of this run",
                        found.len(),
                        self.of_mean.len()
                    );
                }
                found
            };
            *by_entry = entries.iter().map(of_entry).collect();
        }
    }

    /// The entry of a group with the smallest mean loss.
    fn best<'a>(
        &'a self,
        entries: &'a [Entry],
        epsilon: usize,
        group: &str,
    ) -> Option<(&'a Entry, &'a [f64])> {
        let of_group = entries
            .iter()
            .zip(&self.by_entry[epsilon])
            .filter(|(entry, losses)| entry.group == group && !losses.is_empty());
        of_group
            .min_by(|(_, one), (_, other)| mean(one).total_cmp(&mean(other)))
            .map(|(entry, losses)| (entry, losses.as_slice()))
    }
}

pub(crate) fn run(arguments: &RealData, common: &Common) -> Result<()> {
    let seeds = common.seeds.unwrap_or(if common.quick { 5 } else { 100 });
    let selection = &arguments.selection;
    let entries = registry();
    let chosen = select(registry(), selection.methods.as_deref(), |entry| entry.method.name())?;
    let (earlier, source): (Vec<Earlier>, _) = earlier_results(selection.earlier.as_deref())?;
    let mut text = String::new();
    let mut results = Vec::new();
    let mut work = Work::default();
    for dataset in datasets(arguments)? {
        let (mut losses, more) = measure(&dataset, &chosen, seeds, common)?;
        work = work.and(more);
        losses.complete(&entries, &chosen, &dataset.name, &earlier);
        describe(&mut text, &dataset, &entries, &losses, seeds);
        for (e, &epsilon) in EPSILONS.iter().enumerate() {
            let found = entries.iter().zip(&losses.by_entry[e]).filter(|(_, values)| !values.is_empty());
            for (entry, values) in found {
                let name = entry.method.name();
                let is_new = chosen.iter().any(|candidate| candidate.method.name() == name);
                let from = (!is_new).then_some(&source);
                results.push(json!({
                    "dataset": dataset.name, "epsilon": epsilon, "method": name, "losses": values, "from": from,
                }));
            }
        }
        results.push(json!({ "dataset": dataset.name, "method": "training mean", "losses": losses.of_mean }));
    }
    write(&common.out.join("real-data.md"), &text)?;
    print!("{text}");
    if let Some(path) = &common.json {
        write_json(path, "real-data", work, &results.into())?;
    }
    Ok(())
}

fn measure(dataset: &Dataset, entries: &[Entry], seeds: usize, common: &Common) -> Result<(Losses, Work)> {
    let base = Seed::new(common.seed);
    let ridge = Ridge::new(REAL_RIDGE)?;
    let names: Vec<String> = entries.iter().map(|entry| entry.method.name()).collect();
    let privacies = EPSILONS.map(|epsilon| Privacy { epsilon, delta: DELTA });
    let tasks: Vec<Task<usize>> = (0..seeds)
        .map(|index| Task { key: format!("{} {index} {names:?}", dataset.name), cost: 1.0, cell: index })
        .collect();
    // For each seed: losses by ε, then by entry; and the loss of the training mean.
    let (found, work) = run_tasks("real-data", common, &tasks, |index| {
        let seed = base.of(&format!("real-data {} {index}", dataset.name));
        let (train, test) = dataset.split(seed);
        let mut rows = 0;
        for entry in entries {
            rows = rows.max(largest_bernoulli(std::slice::from_ref(&entry.method), train.n(), &privacies)?);
        }
        let cell = Cell::new(&train, seed, common, rows);
        let losses = privacies
            .iter()
            .map(|&privacy| {
                entries
                    .iter()
                    .map(|entry| Ok(entry.method.fit(&cell, privacy, ridge)?.loss(&test)))
                    .collect::<Result<Vec<f64>>>()
            })
            .collect::<Result<Vec<_>>>()?;
        Ok((losses, train.mean_loss(&test)))
    })?;
    let by_entry = (0..EPSILONS.len())
        .map(|e| (0..entries.len()).map(|m| found.iter().map(|(losses, _)| losses[e][m]).collect()).collect())
        .collect();
    Ok((Losses { by_entry, of_mean: found.iter().map(|(_, loss)| *loss).collect() }, work))
}

fn describe(text: &mut String, dataset: &Dataset, entries: &[Entry], losses: &Losses, seeds: usize) {
    let of_mean = mean(&losses.of_mean);
    let _ = writeln!(
        text,
        "**{}**: {} rows (n = {} for training), {} features, {} parties; {seeds} random splits. Predicting the training mean: {:.4}.\n",
        dataset.name,
        dataset.rows(),
        dataset.rows() * 4 / 5,
        dataset.features(),
        dataset.parties(),
        of_mean,
    );
    let _ = writeln!(
        text,
        "| ε | method | published | ours ± s.e. | best k | ours / published | published / mean | ours / mean |\n|---|---|---|---|---|---|---|---|"
    );
    for (e, epsilon) in EPSILONS.iter().enumerate() {
        let published = dataset.published.as_ref();
        let by_epsilon = published.and_then(|published| {
            published.losses.iter().find(|losses| (losses.epsilon - epsilon).abs() < 1e-12)
        });
        let groups = [
            ("OLS", published.map(|published| published.ols)),
            ("DGM", by_epsilon.map(|losses| losses.dgm)),
            ("RMGM", by_epsilon.map(|losses| losses.rmgm)),
            ("RMGM sparse", None),
            ("BGM", by_epsilon.map(|losses| losses.bgm)),
            ("calibrated", None),
            ("label's party alone", None),
        ];
        for (group, published) in groups {
            if group == "OLS" && e > 0 {
                continue;
            }
            let Some((entry, values)) = losses.best(entries, e, group) else { continue };
            let shown_epsilon =
                if entry.method.is_private() { epsilon.to_string() } else { "–".to_owned() };
            let k = entry.method.name().split_once("k=").map_or("–".to_owned(), |(_, k)| k.to_owned());
            let (loss, error) = (mean(values), standard_error(values));
            let _ = writeln!(
                text,
                "| {shown_epsilon} | {group} | {} | {loss:.4} ± {error:.4} | {k} | {} | {} | {:.3} |",
                published.map_or("–".to_owned(), |value| value.to_string()),
                published.map_or("–".to_owned(), |value| format!("{:.2}", loss / value)),
                published.map_or("–".to_owned(), |value| format!("{:.3}", value / of_mean)),
                loss / of_mean,
            );
        }
    }
    text.push('\n');
}
