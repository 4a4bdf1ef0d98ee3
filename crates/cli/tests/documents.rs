//! Every command in README.md and docs/TUTORIAL.md works as printed, in order, in an empty folder.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of all ```sh blocks of a document.
fn commands(document: &str) -> String {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let mut script = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside {
            script.push_str(line);
            script.push('\n');
        }
    }
    assert!(!script.is_empty(), "{document} has no commands");
    script
}

fn run(script: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_potluck")).parent().unwrap();
    let path = env::join_paths(
        std::iter::once(binary.to_owned()).chain(env::split_paths(&env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let output = Command::new("sh")
        .args(["-e", "-u", "-c", script])
        .current_dir(folder.path())
        .env("PATH", path)
        .env("XDG_DATA_HOME", folder.path().join("data"))
        .env_remove("POTLUCK_LEDGER")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "stdout: {stdout}\nstderr: {}", String::from_utf8_lossy(&output.stderr));
    (folder, stdout)
}

#[test]
fn the_tutorial_works() {
    let (folder, stdout) = run(&commands("docs/TUTORIAL.md"));
    for file in [
        "report.html",
        "model.json",
        "public.parquet",
        "audit/north.moments.sums.csv",
        "smoker.json",
        "wider.parquet",
    ] {
        assert!(folder.path().join(file).exists(), "{file}");
    }
    assert!(stdout.contains("north signed with the key given"), "{stdout}");
    assert!(stdout.contains("patient,pressure,pressure.low,pressure.high\na,"), "{stdout}");
}

#[test]
fn the_readme_works() {
    let script = commands("README.md");
    assert!(script.contains("cargo run --release -- demo --out demo\n"));
    assert!(script.contains("cargo xtask test\n"));
    // The one is the binary under test, the other is what runs this test.
    let script = script.replace("cargo run --release --", "potluck").replace("cargo xtask test", "true");
    let (folder, _) = run(&script);
    for file in ["study.toml", "north.release.parquet", "public.parquet", "model.json", "report.html"] {
        assert!(folder.path().join("demo").join(file).exists(), "{file}");
    }
}

/// All files in these folders with these extensions, by path, with their text.
fn texts(folders: &[&str], kinds: &[&str]) -> BTreeMap<PathBuf, String> {
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    let mut texts = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kinds.iter().any(|known| kind == *known)) {
                let text = fs::read_to_string(&path).unwrap();
                texts.insert(path, text);
            }
        }
    }
    texts
}

/// The anchor that a heading has on a web page.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphabetic() || c.is_ascii_digit() || " -_".contains(*c);
    heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

/// What is cited after each `before` in a text.
fn cited<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    let ends = |c: char| !c.is_alphanumeric() && c != '-' && c != '_';
    let names = text.split(before).skip(1).filter_map(|after| after.split(ends).next());
    names.filter(|name| !name.is_empty()).collect()
}

#[test]
fn sections_that_are_cited_exist() {
    let mut texts = texts(&["crates", "docs", "tests", "vectors", "xtask"], &["rs", "py", "md"]);
    for document in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        texts.insert(root().join(document), fs::read_to_string(root().join(document)).unwrap());
    }
    let mut checked = 0;
    // Sections of RESULTS.md come and go with what was measured.
    let lasts = |path: &Path| path.extension().unwrap() == "md" && !path.ends_with("RESULTS.md");
    for (document, text) in texts.iter().filter(|(path, _)| lasts(path)) {
        let anchors: Vec<String> = text
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| anchor(line.trim_matches('#')))
            .collect();
        let name = document.file_name().unwrap().to_str().unwrap();
        for (path, text) in &texts {
            let own = if path == document { cited(text, "](#") } else { Vec::new() };
            for section in cited(text, &format!("{name}#")).into_iter().chain(own) {
                let known = anchors.iter().any(|anchor| anchor == section);
                assert!(known, "{} cites {name}#{section}, which does not exist", path.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "only {checked} citations were found");
}

#[test]
fn what_guards_privacy_names_its_proof() {
    let proofs = fs::read_to_string(root().join("docs/PRIVACY.md")).unwrap();
    let is_proved = |name: &str| [".", " ", "*"].iter().any(|end| proofs.contains(&format!("**{name}{end}")));
    let mut checked = 0;
    for (path, text) in texts(&["crates/core/src"], &["rs"]) {
        for section in text.split("/// # Privacy\n").skip(1) {
            let lines = section.lines().map_while(|line| line.trim_start().strip_prefix("///"));
            let section =
                lines.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
            let named = ["Lemma", "Theorem"].iter().any(|kind| {
                let names = cited(&section, &format!("{kind} "));
                names.into_iter().any(|name| is_proved(&format!("{kind} {name}")))
            });
            let cites = section.contains("docs/PRIVACY.md#");
            assert!(named && cites, "{}: {section:?} does not say where its proof is", path.display());
            checked += 1;
        }
    }
    assert!(checked > 30, "only {checked} sections were found");
}

#[test]
fn documents_name_files_and_tests_that_exist() {
    let sources: String = texts(&["crates", "tests"], &["rs", "py"]).into_values().collect();
    let mut checked = 0;
    for document in [
        "README.md",
        "CONTRIBUTING.md",
        "docs/PRIVACY.md",
        "docs/LEARNERS.md",
        "docs/ARCHITECTURE.md",
        "docs/DECISIONS.md",
        "docs/EXCHANGE.md",
        "docs/FORMAT.md",
        "docs/TUTORIAL.md",
        "docs/HUB.md",
        "docs/SCALE.md",
        "docs/PYTHON.md",
    ] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for word in text.split(|c: char| c.is_whitespace() || "`(),;:|".contains(c)) {
            let word = word.trim_end_matches('.');
            let is_path = ["crates/", "docs/", "vectors/", "tests/", "xtask/"]
                .iter()
                .any(|start| word.starts_with(start));
            if is_path && !word.contains(['*', '{', '…', '<']) {
                let path = word.split('#').next().unwrap();
                assert!(root().join(path).exists(), "{document} names {path}, which does not exist");
                checked += 1;
            }
        }
        // Test names in code font, `some_long_test_name`, and metrics, which a test names as text.
        for name in text.split('`').skip(1).step_by(2) {
            let looks_like_a_test =
                name.matches('_').count() >= 3 && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            if looks_like_a_test {
                let known = [format!("{name}("), format!("\"{name}")];
                assert!(
                    known.iter().any(|known| sources.contains(known)),
                    "{document} names {name}, which does not exist"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "only {checked} names were found");
}
