//! Text in charts: how wide it will be, what to leave out, and what XML cannot hold.

/// A width in ems that text in a common sans-serif face will hardly exceed.
pub fn ems(text: &str) -> f64 {
    text.chars().map(width).sum()
}

/// Widths of DejaVu Sans, the widest of the usual faces, rounded up.
fn width(c: char) -> f64 {
    match c {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' => 0.0,
        'i' | 'j' | 'l' | 'f' | 't' | 'r' | 'I' | ' ' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | '('
        | ')' | '[' | ']' | '/' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '—' | '…' => 1.0,
        'A'..='Z' | '=' | '+' | '<' | '>' | '&' | '×' | '−' | '#' | '~' => 0.84,
        c if c < '\u{1100}' => 0.65,
        _ => 1.05,
    }
}

/// The text, or its beginning and end around "…" so that it is at most `most` ems wide.
///
/// Names that differ only in their last letters stay apart, as do the levels of one column.
pub(crate) fn ellipsize(text: &str, most: f64) -> String {
    if ems(text) <= most {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let room = (most - width('…')).max(0.0);
    let taken = |count: usize, letters: &mut dyn Iterator<Item = &char>| -> f64 {
        letters.take(count).map(|&c| width(c)).sum()
    };
    let tail =
        (0..=chars.len()).rev().find(|&n| taken(n, &mut chars.iter().rev()) <= 0.4 * room).unwrap_or(0);
    let left = room - taken(tail, &mut chars.iter().rev());
    let head = (0..=chars.len()).rev().find(|&n| taken(n, &mut chars.iter()) <= left).unwrap_or(0);
    let (head, tail) = (&chars[..head.min(chars.len())], &chars[chars.len() - tail..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

/// The text with every character that XML 1.0 cannot hold replaced.
pub(crate) fn printable(text: &str) -> String {
    let held = |c: char| matches!(c, '\t' | '\n' | ' '..='\u{7e}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if held(c) { c } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_stays() {
        assert_eq!(ellipsize("age", 10.0), "age");
    }

    #[test]
    fn long_text_keeps_both_ends_and_fits() {
        let name = "diagnosis_code_of_the_first_hospital_stay=circulatory";
        for most in [0.0, 1.0, 5.0, 10.0, 20.0, 30.0] {
            let short = ellipsize(name, most);
            assert!(ems(&short) <= most.max(1.0), "{short:?} is too wide for {most}");
            assert!(short.contains('…'));
        }
        let short = ellipsize(name, 16.0);
        assert!(short.starts_with("diagnosis_") && short.ends_with("atory"), "{short:?}");
        assert!(ems(&ellipsize("患者の収縮期血圧の平均値と標準偏差", 8.0)) <= 8.0);
    }

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(printable("a\u{0}b\u{b}c\u{fffe}é漢𝛼"), "a\u{fffd}b\u{fffd}c\u{fffd}é漢𝛼");
    }
}
