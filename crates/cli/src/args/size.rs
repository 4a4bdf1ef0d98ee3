//! Sizes in bytes, as people type them: `500MB`, `4GiB`, `0`.

/// Units by their letters in small print.
const UNITS: [(&str, u64); 8] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("b", 1),
];

/// Reads a size in bytes.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let unclear = || format!("{text:?} is no size; write one such as 500MB, 4GB or 0");
    let small = text.trim().to_ascii_lowercase();
    let unit = UNITS.iter().find_map(|(name, unit)| Some((small.strip_suffix(name)?, *unit)));
    let (number, unit) = unit.unwrap_or((&small, 1));
    let number: f64 = number.trim().parse().map_err(|_| unclear())?;
    let bytes = number * unit as f64;
    if (0.0..=u64::MAX as f64).contains(&bytes) { Ok(bytes as u64) } else { Err(unclear()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_bytes() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("500MB", 500_000_000),
            ("1.5 gb", 1_500_000_000),
            ("2GiB", 2 << 30),
            ("64kib", 65_536),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for unclear in ["", "MB", "-1", "many", "1e400", "inf", "nan", "5 apples"] {
            assert!(bytes(unclear).is_err(), "{unclear}");
        }
    }
}
