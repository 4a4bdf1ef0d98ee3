//! Numbers that look random and are always the same.

/// Numbers that look random, always the same ones: a fit has to give the same answer twice
/// (`SplitMix64`: Steele, Lea and Flood 2014).
pub(super) struct Sequence(u64);

impl Sequence {
    pub(super) fn new() -> Self {
        Self(0)
    }

    /// Evenly spread strictly between 0 and 1.
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((z >> 11) as f64 + 0.5) * 2.0_f64.powi(-53)
    }

    /// From a bell curve.
    pub(super) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (2.0 * std::f64::consts::PI * angle).cos()
    }
}
