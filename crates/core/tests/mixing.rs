//! The mixing matrix against vectors from Python's hashlib and another ChaCha
//! (vectors/mixing/make.py).
#![allow(clippy::unwrap_used)]

use potluck_core::mixing::{InvalidKey, Mixing, MixingKey};
use serde_json::Value;

fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../vectors/mixing/mixing.json")).unwrap()
}

#[test]
fn subjects_match_the_independent_implementation() {
    let cases = cases();
    assert!(cases.len() >= 30);
    for case in &cases {
        let key = MixingKey::from_hex(case["key"].as_str().unwrap()).unwrap();
        let subject = key.subject(case["id"].as_str().unwrap().as_bytes());
        let k = case["k"].as_u64().unwrap();
        assert_eq!(subject.to_hex(), case["digest"].as_str().unwrap());
        let (row, sign) = subject.sparse_entry(k);
        assert_eq!(row, case["row"].as_u64().unwrap());
        assert_eq!(sign, case["sign"].as_i64().unwrap());

        let mut words = vec![0; k.div_ceil(64) as usize];
        subject.bernoulli_signs(&mut words);
        let signs: String =
            (0..k as usize).map(|i| if words[i / 64] >> (i % 64) & 1 == 1 { '+' } else { '-' }).collect();
        assert_eq!(signs, case["bernoulli"].as_str().unwrap());
    }
}

#[test]
fn padded_and_plain_ids_are_different_people() {
    let key = MixingKey::new([0; 32]);
    assert!(key.subject(b"007") != key.subject(b"7"));
    assert_ne!(key.subject(b"007").to_hex(), key.subject(b"7").to_hex());
}

#[test]
fn keys_are_exactly_64_lowercase_digits() {
    let key = MixingKey::new([0xab; 32]);
    assert_eq!(MixingKey::from_hex(&key.to_hex()).unwrap(), key);
    for text in ["", "ab", &"AB".repeat(32), &"g0".repeat(32), &"ab".repeat(33)] {
        assert_eq!(MixingKey::from_hex(text), Err(InvalidKey));
    }
}

#[test]
fn sparse_rows_and_signs_are_balanced() {
    let key = MixingKey::new([3; 32]);
    let (k, n) = (16, 64_000_u32);
    let mut rows = [0_u32; 16];
    let mut plus = 0_u32;
    for id in 0..n {
        let (row, sign) = key.subject(id.to_string().as_bytes()).sparse_entry(k);
        rows[row as usize] += 1;
        plus += u32::from(sign > 0);
    }
    // Five standard deviations of a binomial count.
    assert!(rows.iter().all(|&count| count.abs_diff(n / 16) < 5 * 62), "{rows:?}");
    assert!(plus.abs_diff(n / 2) < 5 * 127, "{plus}");
}

#[test]
fn column_norms() {
    assert_eq!(Mixing::Identity.column_norm_squared(9), 1);
    assert_eq!(Mixing::Sparse.column_norm_squared(9), 1);
    assert_eq!(Mixing::Bernoulli.column_norm_squared(9), 9);
}
