//! What can happen to a file: bits flip, ends are lost, parts change places, lengths become absurd.

/// SplitMix64: the same damage in every run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x0070_6f74_6c75_636b)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// A damaged copy of `bytes`; some of what `other` holds may be in it.
pub fn damaged(bytes: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    for _ in 0..=dice.below(3) {
        if copy.is_empty() {
            break;
        }
        match dice.below(10) {
            0..3 => flip(&mut copy, dice),
            3 => cut(&mut copy, dice),
            4..7 => blow_up(&mut copy, dice),
            7 => blow_up_digits(&mut copy, dice),
            8 => splice(&mut copy, bytes, dice),
            _ => splice(&mut copy, other, dice),
        }
    }
    copy
}

/// A place in the file: descriptions stand at its start and at its end, so these are hit more
/// often.
fn place(length: usize, dice: &mut Dice) -> usize {
    let near = dice.below(length.min(400));
    match dice.below(4) {
        0 => near,
        1 | 2 => length - 1 - near,
        _ => dice.below(length),
    }
}

fn flip(bytes: &mut [u8], dice: &mut Dice) {
    for _ in 0..=dice.below(4) {
        let at = place(bytes.len(), dice);
        bytes[at] ^= 1 << dice.below(8);
    }
}

fn cut(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let at = place(bytes.len(), dice);
    if dice.below(2) == 0 {
        bytes.truncate(at);
    } else {
        let end = (at + 1 + dice.below(64)).min(bytes.len());
        bytes.drain(at..end);
    }
}

/// Writes an absurd length over what is there, in the ways that the formats have of writing one.
fn blow_up(bytes: &mut [u8], dice: &mut Dice) {
    const LENGTHS: [&[u8]; 10] = [
        &[0xff, 0xff, 0xff, 0x7f],
        &[0x00, 0x00, 0x00, 0x40],
        &[0xff, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00],
        &[0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00],
        // As a variable-length integer: 2³¹ − 1 and 2⁶² or so, plain and in zigzag.
        &[0xff, 0xff, 0xff, 0xff, 0x07],
        &[0xfe, 0xff, 0xff, 0xff, 0x0f],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x10],
    ];
    let length = LENGTHS[dice.below(LENGTHS.len())];
    let at = place(bytes.len(), dice);
    let fits = length.len().min(bytes.len() - at);
    bytes[at..at + fits].copy_from_slice(&length[..fits]);
}

/// Replaces a number that is written in digits.
fn blow_up_digits(bytes: &mut Vec<u8>, dice: &mut Dice) {
    const NUMBERS: [&str; 8] = [
        "99999999999999999999",
        "9223372036854775807",
        "18446744073709551615",
        "4294967295",
        "1e308",
        "-1",
        "0",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    ];
    let start = place(bytes.len(), dice);
    let Some(found) = bytes[start..].iter().position(u8::is_ascii_digit) else { return };
    let at = start + found;
    let end = bytes[at..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |end| at + end);
    bytes.splice(at..end, NUMBERS[dice.below(NUMBERS.len())].bytes());
}

/// Puts a part of another file, or of the same one, over or between what is there.
fn splice(bytes: &mut Vec<u8>, from: &[u8], dice: &mut Dice) {
    let start = dice.below(from.len());
    let part = &from[start..(start + 1 + dice.below(256)).min(from.len())];
    let at = place(bytes.len(), dice);
    let end = if dice.below(2) == 0 { at } else { (at + part.len()).min(bytes.len()) };
    bytes.splice(at..end, part.iter().copied());
}
