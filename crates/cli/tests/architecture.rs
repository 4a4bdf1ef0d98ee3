//! The dependency arrows of docs/ARCHITECTURE.md, over the whole transitive graph.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// For each of our crates, every crate that it reaches in a normal build (not for its tests).
fn reached() -> BTreeMap<String, BTreeSet<String>> {
    // This platform only: what others need may not have been downloaded.
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: BTreeMap<&str, &str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["id"].as_str().unwrap(), package["name"].as_str().unwrap()))
        .collect();
    let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let normal = node["deps"].as_array().unwrap().iter().filter(|dependency| {
            dependency["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null())
        });
        edges.insert(
            node["id"].as_str().unwrap(),
            normal.map(|dependency| dependency["pkg"].as_str().unwrap()).collect(),
        );
    }
    let ours = metadata["workspace_members"].as_array().unwrap();
    ours.iter()
        .map(|id| {
            let id = id.as_str().unwrap();
            let mut seen = BTreeSet::new();
            let mut next = vec![id];
            while let Some(id) = next.pop() {
                for &dependency in &edges[id] {
                    if seen.insert(dependency) {
                        next.push(dependency);
                    }
                }
            }
            (names[id].to_owned(), seen.iter().map(|id| names[id].to_owned()).collect())
        })
        .collect()
}

fn ours(reached: &BTreeSet<String>) -> Vec<&str> {
    reached.iter().map(String::as_str).filter(|name| name.starts_with("potluck")).collect()
}

#[test]
fn arrows_point_towards_the_core() {
    let reached = reached();
    assert_eq!(ours(&reached["potluck-core"]), [""; 0]);
    assert_eq!(ours(&reached["potluck-release"]), ["potluck-core"]);
    assert_eq!(ours(&reached["potluck-report"]), ["potluck-core", "potluck-release"]);
    assert_eq!(ours(&reached["potluck-party"]), ["potluck-core", "potluck-release"]);
    assert_eq!(ours(&reached["potluck-exchange"]), ["potluck-core"]);
    assert_eq!(ours(&reached["potluck-client"]), ["potluck-core", "potluck-release"]);
    assert_eq!(ours(&reached["potluck-hub"]), ["potluck-core", "potluck-release", "potluck-report"]);
    assert_eq!(ours(&reached["potluck-simulation"]), ["potluck-core", "potluck-release"]);
    assert_eq!(
        ours(&reached["potluck-python"]),
        [
            "potluck-client",
            "potluck-core",
            "potluck-party",
            "potluck-release",
            "potluck-report",
            "potluck-simulation"
        ]
    );
    assert!(!reached.values().any(|crates| crates.contains("potluck-python")), "nothing needs Python");
    assert_eq!(ours(&reached["xtask"]), [""; 0]);
    assert!(reached["xtask"].is_empty(), "xtask uses the standard library only");
    assert!(!reached.values().any(|crates| crates.contains("potluck-lab")), "the lab is never shipped");
    assert!(
        !reached.values().any(|crates| crates.contains("potluck-fixtures")),
        "fixtures are for tests alone"
    );
}

/// Noise that follows from a seed protects nobody: what publishes, or serves what was published,
/// cannot draw it.
#[test]
fn simulations_are_reached_from_where_people_ask_for_them_only() {
    let reached = reached();
    let mut of = reached.iter().filter(|(_, crates)| crates.contains("potluck-simulation"));
    assert!(of.by_ref().map(|(name, _)| name.as_str()).eq(["potluck", "potluck-lab", "potluck-python"]));
}

/// Nothing that a server needs reaches a crate that can name a raw row.
#[test]
fn the_public_side_cannot_name_a_row() {
    let reached = reached();
    for public in ["potluck-core", "potluck-release", "potluck-report", "potluck-hub", "potluck-client"] {
        for private in ["potluck-party", "potluck-exchange"] {
            assert!(!reached[public].contains(private), "{public} reaches {private}");
        }
    }
    assert!(reached["potluck"].contains("potluck-party"), "the check would notice it");
}

/// Until people outside the project have reviewed it, no release depends on the exchange.
#[test]
fn nothing_uses_the_exchange_yet() {
    let reached = reached();
    assert!(!reached.values().any(|crates| crates.contains("potluck-exchange")));
}

#[test]
fn the_core_and_the_exchange_do_no_input_or_output() {
    let reached = reached();
    let foreign = [
        "arrow-array",
        "parquet",
        "csv",
        "rusqlite",
        "tokio",
        "hyper",
        "reqwest",
        "tempfile",
        "getrandom",
        "serde",
        "serde_json",
        "toml",
        "clap",
        "time",
        "chrono",
        "mio",
        "socket2",
    ];
    for pure in ["potluck-core", "potluck-exchange"] {
        for name in foreign {
            assert!(!reached[pure].contains(name), "{pure} reaches {name}");
        }
    }
    for ours in ["potluck-core", "potluck-release", "potluck-party", "potluck-report", "potluck-client"] {
        assert!(!reached[ours].contains("tokio"), "{ours} reaches tokio");
    }
    assert!(reached["potluck-party"].contains("rusqlite"), "the check would notice it");
}
