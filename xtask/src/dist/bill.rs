//! Software bills of materials, in CycloneDX's JSON: what the command and the Python package are
//! built from, with versions, licences, hashes, and what depends on what.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use super::{folder, host, version, write as write_file};
use crate::programs::{output, root};

/// What is published, and the crate that it is built from.
const PRODUCTS: [(&str, &str); 2] = [("potluck", "potluck"), ("potluck-python", "potluck-python")];

/// A crate as cargo names it: name and version.
type Id = (String, String);

/// What a crate is known by, and what it needs.
#[derive(Default)]
struct Component {
    licence: String,
    repository: String,
    needs: BTreeSet<Id>,
}

pub(super) fn write() -> Result<(), String> {
    let lock = root().join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    let hashes = hashes(&lock);
    let time =
        output("git", &["log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"], &root())?;
    for (product, package) in PRODUCTS {
        let tree = output("cargo", &tree_arguments(package, &host()?), &root())?;
        let components = components(&tree)?;
        let text = document(package, &components, &hashes, time.trim());
        write_file(&folder().join(format!("{product}-{}.cdx.json", version())), &text)?;
    }
    Ok(())
}

/// Asks for what is compiled in, each line with its depth.
fn tree_arguments<'a>(package: &'a str, host: &'a str) -> [&'a str; 12] {
    let format = "{p}|{l}|{r}";
    let edges = "normal,build";
    [
        "tree",
        "--locked",
        "--package",
        package,
        "--target",
        host,
        "--edges",
        edges,
        "--prefix",
        "depth",
        "--format",
        format,
    ]
}

/// Reads `2serde v1.0.0 (proc-macro)|MIT OR Apache-2.0|https://…`, a line a crate, the depth first.
fn components(tree: &str) -> Result<BTreeMap<Id, Component>, String> {
    let mut components: BTreeMap<Id, Component> = BTreeMap::new();
    let mut above: Vec<Id> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let unread = || format!("cargo tree says {line:?}");
        let digits = line.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(unread)?;
        let depth: usize = line[..digits].parse().map_err(|_| unread())?;
        let mut fields = line[digits..].split('|');
        let mut words = fields.next().ok_or_else(unread)?.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else { return Err(unread()) };
        let id = (name.to_owned(), version.trim_start_matches('v').to_owned());
        let component = components.entry(id.clone()).or_default();
        fields.next().ok_or_else(unread)?.clone_into(&mut component.licence);
        let repository = fields.next().ok_or_else(unread)?.trim_end_matches(" (*)");
        repository.clone_into(&mut component.repository);
        above.truncate(depth);
        if let Some(parent) = above.last() {
            components.entry(parent.clone()).or_default().needs.insert(id.clone());
        }
        above.push(id);
    }
    Ok(components)
}

/// The SHA-256 of each crate from a registry, as the lock file has it.
fn hashes(lock: &str) -> BTreeMap<Id, String> {
    let of_package = |package: &str| {
        let value = |key: &str| {
            let found = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
            found.map(|value| value.trim_end_matches('"').to_owned())
        };
        Some(((value("name")?, value("version")?), value("checksum")?))
    };
    lock.split("[[package]]").filter_map(of_package).collect()
}

fn document(
    product: &str,
    components: &BTreeMap<Id, Component>,
    hashes: &BTreeMap<Id, String>,
    time: &str,
) -> String {
    let is_product = |id: &Id| id.0 == product;
    let one = |kind: &str, id: &Id, component: &Component| described(kind, id, component, hashes.get(id));
    let join = |parts: Vec<String>| parts.join(",\n    ");
    let main =
        components.iter().filter(|(id, _)| is_product(id)).map(|(id, known)| one("application", id, known));
    let others =
        components.iter().filter(|(id, _)| !is_product(id)).map(|(id, known)| one("library", id, known));
    let needs = components.iter().map(|(id, component)| {
        let needs: Vec<String> = component.needs.iter().map(|id| quoted(&address(id))).collect();
        format!("{{\"ref\": {}, \"dependsOn\": [{}]}}", quoted(&address(id)), needs.join(", "))
    });
    format!(
        "{{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.5\",\n  \"version\": 1,\n  \"metadata\": {{\n    \"timestamp\": {},\n    \"component\": {}\n  }},\n  \"components\": [\n    {}\n  ],\n  \"dependencies\": [\n    {}\n  ]\n}}\n",
        quoted(time),
        main.collect::<String>(),
        join(others.collect()),
        join(needs.collect()),
    )
}

fn described(kind: &str, id: &Id, component: &Component, hash: Option<&String>) -> String {
    let address = quoted(&address(id));
    let mut text = format!(
        "{{\"type\": {}, \"bom-ref\": {address}, \"name\": {}, \"version\": {}, \"purl\": {address}",
        quoted(kind),
        quoted(&id.0),
        quoted(&id.1),
    );
    if let Some(hash) = hash {
        let _ = write!(text, ", \"hashes\": [{{\"alg\": \"SHA-256\", \"content\": {}}}]", quoted(hash));
    }
    if !component.licence.is_empty() {
        // Old crates write a stroke where SPDX says OR.
        let licence = component.licence.replace('/', " OR ");
        let _ = write!(text, ", \"licenses\": [{{\"expression\": {}}}]", quoted(&licence));
    }
    if !component.repository.is_empty() {
        let _ = write!(
            text,
            ", \"externalReferences\": [{{\"type\": \"vcs\", \"url\": {}}}]",
            quoted(&component.repository)
        );
    }
    text + "}"
}

/// A package address (purl), by which tools look for advisories.
fn address((name, version): &Id) -> String {
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
0potluck v0.1.0 (/source/crates/cli)|MIT OR Apache-2.0|
1serde v1.0.2|MIT/Apache-2.0|https://example.org/\"serde\"
2serde_derive v1.0.1+x (proc-macro)|MIT|https://example.org/serde
1zeroize v1.9.0|MIT|
2serde v1.0.2|MIT/Apache-2.0|https://example.org/\"serde\" (*)
";
    const LOCK: &str = "[[package]]\nname = \"serde\"\nversion = \"1.0.2\"\nchecksum = \"ab12\"\n\n[[package]]\nname = \"potluck\"\nversion = \"0.1.0\"\n";

    #[test]
    fn a_bill_says_what_needs_what_once() {
        let components = components(TREE).unwrap();
        assert_eq!(components.len(), 4);
        let id = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let needs = |name, version| components[&id(name, version)].needs.iter().cloned().collect::<Vec<_>>();
        assert_eq!(needs("potluck", "0.1.0"), [id("serde", "1.0.2"), id("zeroize", "1.9.0")]);
        assert_eq!(needs("zeroize", "1.9.0"), [id("serde", "1.0.2")]);
        assert_eq!(needs("serde", "1.0.2"), [id("serde_derive", "1.0.1+x")]);
        assert_eq!(components[&id("serde", "1.0.2")].repository, "https://example.org/\"serde\"");
        assert!(super::components("no depth|MIT|\n").is_err());
    }

    #[test]
    fn a_bill_has_hashes_from_the_lock_file_and_escapes_what_it_quotes() {
        let text = document("potluck", &components(TREE).unwrap(), &hashes(LOCK), "2026-01-01T00:00:00Z");
        assert!(text.contains("{\"alg\": \"SHA-256\", \"content\": \"ab12\"}"), "{text}");
        assert!(text.contains("https://example.org/\\\"serde\\\""), "{text}");
        assert!(text.contains("\"expression\": \"MIT OR Apache-2.0\""), "{text}");
        assert!(text.contains("pkg:cargo/serde_derive@1.0.1%2Bx"), "{text}");
        assert_eq!(text.matches("\"type\": \"application\"").count(), 1);
    }
}
