//! Four squares for every number up to a bound (Lagrange): what fills a row up to its norm.

/// For each number, four integers of 16 bits whose squares add up to it.
pub(crate) struct Squares(Vec<u64>);

impl Squares {
    /// For the numbers 0 to `norm`, at most 2^20.
    pub(crate) fn new(norm: u32) -> Self {
        let size = norm as usize + 1;
        // pairs[z] = (a, b) with a² + b² = z, packed; all ones where there are none.
        let mut pairs = vec![u32::MAX; size];
        for a in 0..=norm.isqrt() {
            for b in a..=(norm - a * a).isqrt() {
                pairs[(a * a + b * b) as usize] = a << 16 | b;
            }
        }
        let sums: Vec<usize> = (0..size).filter(|&z| pairs[z] != u32::MAX).collect();
        let table = (0..size)
            .map(|z| {
                let first = sums.iter().find(|&&first| pairs[z - first] != u32::MAX);
                let first = *first.expect("every number is a sum of four squares");
                u64::from(pairs[first]) << 32 | u64::from(pairs[z - first])
            })
            .collect();
        Self(table)
    }

    /// Four integers whose squares sum to the secret `number`: the whole table is read.
    pub(crate) fn of(&self, number: u32) -> [i64; 4] {
        let mut packed = 0;
        for (index, entry) in (0_u64..).zip(&self.0) {
            let difference = index ^ u64::from(number);
            // All ones where the difference is zero: only then does it borrow.
            let mask = (difference.wrapping_sub(1) >> 63).wrapping_neg();
            packed |= entry & mask;
        }
        [48, 32, 16, 0].map(|shift| (packed >> shift & 0xFFFF) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_squares_add_up_for_every_number() {
        for norm in [1, 7, 2560, 100_000] {
            let squares = Squares::new(norm);
            let step = (norm / 2500).max(1) as usize;
            for number in (0..=norm).step_by(step).chain([norm]) {
                let sum: i64 = squares.of(number).iter().map(|u| u * u).sum();
                assert_eq!(sum, i64::from(number));
            }
        }
    }
}
