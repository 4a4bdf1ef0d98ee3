//! What the sources of this crate must not say.

use std::fs;
use std::path::Path;

/// Every source file outside the tests, by name.
fn sources() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = fs::read_dir(folder).expect("sources").map(|entry| entry.expect("an entry").path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a source");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            (name, code)
        })
        .collect()
}

/// Variable time is for public data: the verifier's equations, and no prover.
#[test]
fn only_the_verifiers_equations_take_variable_time() {
    let sources = sources();
    let users: Vec<&str> = sources
        .iter()
        .filter(|(_, code)| code.to_lowercase().contains("vartime"))
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(users, ["equations.rs"]);
    for prover in ["offer.rs", "reply.rs", "witness.rs", "products.rs", "outcome.rs", "sums.rs"] {
        let (_, code) = sources.iter().find(|(name, _)| name == prover).expect("a prover");
        assert!(!code.contains("crate::equations"), "{prover} uses the verifier's sums");
    }
}

/// Types that hold rows, keys, masks or noise.
#[test]
fn nothing_secret_can_be_printed_or_copied() {
    let secret = [
        "Entropy",
        "Randomness",
        "Streams",
        "Keys",
        "SentOffer",
        "Awaiting",
        "AcceptedReply",
        "AcceptedOffer",
        "Secrets",
        "Blinds",
        "Masks",
        "NormBlinds",
        "NormSums",
        "Noise",
        "Sums",
        "OwnRows",
        "Pinned",
        "Products",
    ];
    let sources = sources();
    for name in secret {
        let declared = sources.iter().find_map(|(_, code)| {
            let at = [format!("struct {name} "), format!("struct {name}("), format!("struct {name}<")]
                .iter()
                .find_map(|text| code.find(text))?;
            let start = code[..at].rfind("\n\n").unwrap_or(0);
            Some(&code[start..at])
        });
        let before = declared.unwrap_or_else(|| panic!("{name} is declared"));
        assert!(!before.contains("Debug") && !before.contains("Copy"), "{name}");
        for (file, code) in &sources {
            assert!(!code.contains(&format!("Debug for {name}")), "{name} in {file}");
            assert!(!code.contains(&format!("Display for {name}")), "{name} in {file}");
        }
    }
}
