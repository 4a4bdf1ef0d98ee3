//! Every experiment with `--quick`: the orderings that theory demands, and exact repetition.
#![allow(clippy::unwrap_used)]

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Runs an experiment in a folder of its own and returns what it prints and its JSON.
fn run(folder: &Path, arguments: &[&str]) -> (String, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_potluck-lab"))
        .args(arguments)
        .args(["--json", "results.json"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(folder.join("results.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(value["command"].as_str().unwrap().contains(arguments[0]));
    (String::from_utf8(output.stdout).unwrap(), value)
}

/// The per-seed results of an experiment.
fn lab(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    run(folder, arguments).1["results"].as_array().unwrap().clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn convergence_orders_the_methods_as_theory_does() {
    let folder = tempfile::tempdir().unwrap();
    let results = lab(folder.path(), &["convergence", "--quick"]);
    let distance = |n: u64, method: &str| {
        let found = results.iter().find(|result| result["n"] == n && result["method"] == method);
        mean(&numbers(&found.unwrap()["distances"]))
    };
    let n = 1_000_000;
    for rmgm in ["RMGM k=10√n/σ", "RMGM sparse k=10√n/σ"] {
        assert!(distance(n, "OLS") < distance(n, rmgm), "{rmgm}");
        assert!(distance(n, rmgm) < distance(n, "BGM"), "{rmgm}");
        assert!(distance(n, "BGM") < distance(n, "DGM"), "{rmgm}");
        assert!(distance(n, rmgm) < distance(10_000, rmgm), "{rmgm} does not converge");
        // Knowing the noise, and standardising first, is worth several times the data.
        assert!(distance(n, "OLS") < distance(n, "calibrated"), "{rmgm}");
        assert!(distance(n, "calibrated") < 0.3 * distance(n, rmgm), "{rmgm}");
        assert!(distance(10_000, "calibrated") < distance(10_000, rmgm), "{rmgm}");
    }
    // And so is computing together.
    assert!(distance(10_000, "exchange") < 0.2 * distance(10_000, "calibrated"));
    assert!(distance(10_000, "exchange") > distance(10_000, "OLS"));
    // BGM does not converge: it predicts about zero at every n.
    assert!((distance(n, "BGM") - distance(10_000, "BGM")).abs() < 0.1);
    for file in ["results/convergence.csv", "results/convergence.svg", "results/convergence.md"] {
        assert!(folder.path().join(file).exists(), "{file}");
    }
}

/// One method alone is the same as among others, and the others can be taken from an earlier run.
#[test]
fn one_method_joins_those_of_an_earlier_run() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["convergence", "--sizes", "3000", "--seeds", "2"];
    let all = lab(folder.path(), &arguments);
    fs::copy(folder.path().join("results.json"), folder.path().join("earlier.json")).unwrap();
    let more = ["--methods", "calibrated", "--earlier", "earlier.json"];
    let joined = lab(folder.path(), &[&arguments[..], &more].concat());
    assert_eq!(joined.len(), all.len());
    for result in &joined {
        let same = all
            .iter()
            .find(|other| other["method"] == result["method"] && other["epsilon"] == result["epsilon"]);
        assert_eq!(same.unwrap()["distances"], result["distances"]);
        assert_eq!(result["from"].is_null(), result["method"] == "calibrated");
    }
}

#[test]
fn intervals_of_the_calibrated_method_hold_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let results = lab(folder.path(), &["coverage", "--quick"]);
    assert_eq!(results.len(), 4 * 2 * 2, "data, placements, ε");
    let (mut covered, mut trials) = (0.0, 0.0);
    for result in &results {
        let of_seeds = numbers(&result["covered"]);
        covered += of_seeds.iter().sum::<f64>();
        trials += result["without_finding"].as_f64().unwrap();
        assert!(result["half_width"].as_f64().unwrap() > 0.0);
    }
    assert!(covered / trials > 0.88, "{covered} of {trials}");
    let table = fs::read_to_string(folder.path().join("results/coverage.md")).unwrap();
    assert!(table.contains("| rare | with features | 10000 | 0.3 | 10 |"), "{table}");
    assert!(trials > 200.0, "most coefficients of kind data carry no finding, but {trials} do not");
    assert!(folder.path().join("results/coverage.svg").exists());
    // One cell alone is the same as among others, whatever the threads.
    let cell = ["coverage", "--quick", "--kinds", "strong", "--epsilons", "1", "--threads", "3"];
    let alone = lab(folder.path(), &cell);
    assert_eq!(alone.len(), 2);
    assert!(alone.iter().all(|cell| results.contains(cell)));
}

/// Populations that are drawn at random, unkind ones among them: intervals without a finding hold
/// the truth.
#[test]
fn the_map_has_every_temper_and_intervals_hold_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let results = lab(folder.path(), &["map", "--quick"]);
    assert_eq!(results.len(), 3 * 2, "tempers and populations");
    let (mut covered, mut trials) = (0, 0);
    for result in &results {
        let truth = result["truth"].as_array().unwrap();
        for readings in result["readings"].as_array().unwrap() {
            for (truth, reading) in truth.iter().zip(readings["coefficients"].as_array().unwrap()) {
                let number = |value: &Value| value.as_f64().unwrap();
                let slope = number(&truth["slope"]) * number(&truth["unit"]);
                if reading["finding"].is_null() {
                    trials += 1;
                    covered +=
                        u32::from(number(&reading["low"]) <= slope && slope <= number(&reading["high"]));
                }
            }
        }
    }
    assert!(trials > 20, "{trials}");
    assert!(f64::from(covered) > 0.85 * f64::from(trials), "{covered} of {trials}");
    let table = fs::read_to_string(folder.path().join("results/map.md")).unwrap();
    assert!(table.contains("| tails | 3000 | 1 |"), "{table}");
    let other = lab(folder.path(), &["map", "--quick", "--seed", "2"]);
    assert_ne!(results[0]["description"], other[0]["description"], "another seed draws other populations");
}

#[test]
fn clipping_bias_is_told_apart_from_noise() {
    let folder = tempfile::tempdir().unwrap();
    let results = lab(folder.path(), &["bias", "--quick", "--epsilons", "1"]);
    assert_eq!(results.len(), 5 * 2, "data and n");
    for result in &results {
        let bias = mean(&numbers(&result["noiseless"]));
        assert!(
            bias.abs() < 0.5 || result["data"] == "rare label, its party",
            "{bias} in {}",
            result["data"]
        );
    }
    assert!(folder.path().join("results/bias.svg").exists());
    assert!(folder.path().join("results/bias.md").exists());
}

/// Any table will do: numbers, levels, a running number, text, gaps.
#[test]
fn robustness_deals_with_any_table() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = "id,a,b,group,flag,note,constant\n".to_owned();
    for i in 0..3000_u64 {
        let (a, group) = (i * 7919 % 1000, ["x", "y", "z"][i as usize % 3]);
        let b = if i == 17 { String::new() } else { (3 * a + i * 31 % 700).to_string() };
        let flag = ["no", "yes"][usize::from(a > 800)];
        table.push_str(&format!("{i},{a},{b},{group},{flag},text {i},5\n"));
    }
    fs::create_dir(folder.path().join("tables")).unwrap();
    fs::write(folder.path().join("tables/mine.csv"), table).unwrap();
    fs::write(folder.path().join("tables/notes.txt"), "not a table").unwrap();
    let results = lab(folder.path(), &["robustness", "--quick", "--data-dir", "tables"]);
    assert_eq!(results.len(), 2 * 3, "bounds and ε");
    for result in &results {
        let (calibrated, rmgm) = (mean(&numbers(&result["calibrated"])), mean(&numbers(&result["rmgm"])));
        assert!(mean(&numbers(&result["ols"])) < calibrated, "{result}");
        assert!(calibrated < rmgm, "{result}");
    }
    let text = fs::read_to_string(folder.path().join("results/robustness.md")).unwrap();
    assert!(text.contains("| mine | 2999 × 4 | 10× loose | 0.1 |"), "{text}");
}

#[test]
fn dgm_has_the_smallest_eigenvalues() {
    let folder = tempfile::tempdir().unwrap();
    let results = lab(folder.path(), &["eigenvalues", "--quick"]);
    for data in ["synthetic, n = 1000000, ε = 1", "Insurance, ε = 1"] {
        let points = |method: &str| {
            let found = results.iter().find(|result| result["data"] == data && result["method"] == method);
            found.map(|result| result["points"].as_array().unwrap().clone())
        };
        let (Some(dgm), Some(rmgm)) = (points("DGM"), points("RMGM k=10√n/σ")) else {
            assert!(
                env::var_os("POTLUCK_DATA").is_none() && data.starts_with("Insurance"),
                "{data} is missing"
            );
            continue;
        };
        let smallest =
            |points: &[Value]| points.iter().map(|p| p[0].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
        let largest = |points: &[Value]| points.iter().map(|p| p[1].as_f64().unwrap()).fold(0.0, f64::max);
        assert!(smallest(&dgm) < smallest(&rmgm), "{data}");
        assert!(largest(&dgm) > largest(&rmgm), "{data}");
    }
}

#[test]
fn sparse_and_bernoulli_mixing_err_alike() {
    let folder = tempfile::tempdir().unwrap();
    let results = lab(folder.path(), &["mixing", "--quick"]);
    assert!(results.len() >= 6);
    for result in results.iter().filter(|result| result["features"] == "uniform") {
        let ratio = mean(&numbers(&result["sparse"])) / mean(&numbers(&result["bernoulli"]));
        assert!((0.75..1.33).contains(&ratio), "{ratio} at n = {}, k = {}", result["n"], result["k"]);
    }
}

/// A table of one's own, described in five lines.
#[test]
fn real_data_takes_a_described_table() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = "a,b,group,y\n".to_owned();
    for i in 0..4000_u64 {
        let (a, b) = (i * 7919 % 1000, i * 104_729 % 997);
        table.push_str(&format!("{a},{b},{},{}\n", ["x", "y", "z"][i as usize % 3], 3 * a + b + i * 31 % 50));
    }
    fs::write(folder.path().join("mine.csv"), table).unwrap();
    let description = "name = \"Mine\"\nfile = [\"mine.csv\"]\nlabel = [\"y\"]\nfeatures = [\"a\", \"b\", \"group\"]\nparties = 3\n";
    fs::write(folder.path().join("mine.toml"), description).unwrap();
    let results = lab(folder.path(), &["real-data", "--quick", "--data-dir", ".", "--dataset", "mine.toml"]);
    let loss = |method: &str| {
        let found = results.iter().find(|result| result["method"] == method);
        mean(&numbers(&found.unwrap()["losses"]))
    };
    assert!(loss("OLS") < 1e-3 && loss("OLS") < loss("BGM"));
    assert!(loss("OLS") < loss("RMGM k=300") && loss("OLS") < loss("RMGM sparse k=300"));
    assert!(loss("OLS") < loss("training mean"));
    assert!(loss("calibrated") < loss("RMGM k=300"));
    assert!(
        loss("calibrated") < loss("label's party alone"),
        "the label is alone with a group that says nothing"
    );
    let table = fs::read_to_string(folder.path().join("results/real-data.md")).unwrap();
    assert!(table.contains("**Mine**: 4000 rows (n = 3200 for training), 5 features, 3 parties"), "{table}");
}

#[test]
fn the_paper_s_insurance_table_is_found() {
    let Some(data) = env::var_os("POTLUCK_DATA") else {
        eprintln!("the_paper_s_insurance_table_is_found: skipped, POTLUCK_DATA does not name a folder");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let description = Path::new(env!("CARGO_MANIFEST_DIR")).join("datasets/insurance.toml");
    let results = lab(
        folder.path(),
        &[
            "real-data",
            "--seeds",
            "3",
            "--data-dir",
            data.to_str().unwrap(),
            "--dataset",
            description.to_str().unwrap(),
        ],
    );
    let ols = results.iter().find(|result| result["method"] == "OLS").unwrap();
    let ols = mean(&numbers(&ols["losses"]));
    assert!((0.008..0.014).contains(&ols), "{ols}");
}

#[test]
fn three_seeds_repeat_exactly_whatever_the_threads_and_interruptions() {
    let arguments = ["convergence", "--sizes", "3000,10000"];
    let run = |folder: &Path, more: &[&str]| lab(folder, &[&arguments[..], more].concat());
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = run(one.path(), &["--seeds", "3", "--threads", "1"]);
    // The second is interrupted after one seed and then goes on.
    run(two.path(), &["--seeds", "1"]);
    let journal = || {
        let folder = fs::read_dir(two.path().join("target/lab")).unwrap();
        let texts = folder.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
        texts
            .flat_map(|text| {
                text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
            })
            .count()
    };
    assert_eq!(journal(), 2);
    assert_eq!(run(two.path(), &["--seeds", "3", "--threads", "7"]), first);
    assert_eq!(journal(), 6, "what was found is not computed again");
    assert_ne!(
        run(two.path(), &["--seeds", "3", "--seed", "2"]),
        first,
        "another seed is another experiment"
    );
    // The exact sampler gives the same picture.
    let exact = run(one.path(), &["--seeds", "3", "--exact-noise"]);
    for (exact, fast) in exact.iter().zip(&first).filter(|(exact, _)| exact["method"] == "BGM") {
        let (exact, fast) = (mean(&numbers(&exact["distances"])), mean(&numbers(&fast["distances"])));
        assert!((exact / fast - 1.0).abs() < 0.2, "{exact} {fast}");
    }
}

#[test]
fn speed_prints_every_figure() {
    let folder = tempfile::tempdir().unwrap();
    let (text, value) = run(folder.path(), &["speed", "--quick", "--no-peers", "--clean"]);
    for job in [
        "exact Gaussian noise, one core",
        "bernoulli mixing in memory, 20,000 rows, d = 91, k = 1000",
        "sparse pass from Parquet, 200,000 rows × 10",
        "the same pass, sums compared, 200,000 rows",
        "whole calibrated release, 200,000 rows × 10",
        "peak memory of that release, 200,000 rows",
        "sparse mixing in memory, 200,000 rows, d = 10",
        "decoding as n grows",
        "sparse pass as n grows",
        "calibrated release as n grows",
        "calibrated release from Python of the same file, 200,000 rows",
        "calibrated release from Python of an Arrow table in memory, 200,000 rows",
        "the paper's whole synthetic figure",
        "fit with intervals and R², d = 90",
        "plain least squares, d = 90",
    ] {
        assert!(text.contains(&format!("| {job}")), "{job}: {text}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("results/speed.md")).unwrap(), text);
    let figures = value["results"]["figures"].as_array().unwrap();
    assert_eq!(figures.len(), text.lines().filter(|line| line.starts_with('|')).count() - 2);
    assert!(!value["results"]["machine"]["processor"].as_str().unwrap().is_empty());
    let left: Vec<_> = fs::read_dir(folder.path().join("target/lab")).unwrap().collect();
    assert!(left.is_empty(), "tables and temporary files are gone");
}

#[test]
fn growth_covers_every_job_and_size() {
    let folder = tempfile::tempdir().unwrap();
    let (text, value) = run(folder.path(), &["growth", "--quick"]);
    assert_eq!(value["results"]["points"].as_array().unwrap().len(), 2 * 3, "{text}");
    assert!(folder.path().join("results/growth.svg").exists());
    // Tables are kept, and the same ones come out again.
    let table = folder.path().join("target/lab/survey-1-20000.parquet");
    let first = fs::read(&table).unwrap();
    fs::remove_file(&table).unwrap();
    run(folder.path(), &["growth", "--quick", "--sizes", "20000"]);
    assert!(fs::read(&table).unwrap() == first);
}

#[test]
fn load_has_readers_and_uploaders_and_no_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (text, value) = run(folder.path(), &["load", "--quick", "--seconds", "1"]);
    assert!(text.contains(", 0 errors."), "{text}");
    for kind in ["explorer", "page of a study", "public dataset", "upload a release"] {
        assert!(text.contains(&format!("| {kind} |")), "{kind}: {text}");
    }
    assert_eq!(value["results"]["errors"], 0);
}
