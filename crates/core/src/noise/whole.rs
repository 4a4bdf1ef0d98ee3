//! The whole part k of 16·|g|, as proposed: P(k) = e^(−k²/512)/Σ_j e^(−j²/512), by inversion.
//!
//! k is the number of thresholds T_k = Σ_{j≤k} e^(−j²/512)/Σ_j e^(−j²/512) that a uniform deviate
//! reaches. The deviate and the thresholds are compared digit by digit. A table holds 64 binary
//! digits of each threshold; a deviate that agrees with all of them is compared further by interval
//! arithmetic.

use super::bits::RandomBits;
use super::karney::PARTS;
use crate::interval::{Interval, Ratio};
use num_bigint::BigUint;
use rand_core::Rng;

/// The first 64 binary digits of T_0, T_1, …, as integers, up to the first that is all ones, as are
/// those after it.
#[rustfmt::skip]
const THRESHOLDS: [u64; 147] = [
    0x0C74_A154_AE57_911B, 0x18E3_09E7_041C_D20C, 0x253E_DAD1_B889_BA28, 0x317B_ECB0_F409_B372,
    0x3D8E_7370_879C_14CB, 0x496B_2056_C597_0D20, 0x5507_41A8_9E32_9F17, 0x6058_DF54_18F5_9642,
    0x6B56_D422_70FE_FEA4, 0x75F8_E30A_4D94_DE59, 0x8037_C854_0352_0D6F, 0x8A0D_465C_A66F_432C,
    0x9374_2DE0_1EF5_92E6, 0x9C68_61CD_891E_80C8, 0xA4E6_D6C3_25F4_35F6, 0xACED_8E67_3B75_1FF8,
    0xB47B_8EE8_D97C_3592, 0xBB90_D706_0086_83AF, 0xC22E_4F03_B994_AE57, 0xC855_B710_06ED_9905,
    0xCE09_938D_14B8_8EFB, 0xD34D_17C8_B9D6_0544, 0xD824_0FA3_5199_A411, 0xDC92_C8A5_8005_7210,
    0xE09D_FAFD_E6C3_8AAA, 0xE44A_B2D6_9FE9_3B3C, 0xE79E_3A66_F929_DBCE, 0xEA9E_0518_EB71_A7FD,
    0xED4F_9C0B_AF7A_261F, 0xEFB8_8C2E_1CC1_6EDB, 0xF1DE_561C_B312_4829, 0xF3C6_5FE0_B9EE_1722,
    0xF575_E8A0_28C1_FBFA, 0xF6F1_FE41_6260_7454, 0xF83F_74FA_775B_7D60, 0xF962_E0B9_CCCD_6E83,
    0xFA60_904D_CD13_FBDA, 0xFB3C_8A2A_BA26_A9F9, 0xFBFA_8AA8_D244_D43A, 0xFC9E_0391_A704_19F5,
    0xFD2A_1CD1_B077_7EE0, 0xFDA1_B622_A5B1_2880, 0xFE07_6983_CE83_557C, 0xFE5D_8E57_298A_DC1F,
    0xFEA6_3CFC_B501_4F3C, 0xFEE3_52C8_38BA_23FD, 0xFF16_7631_6E2B_316E, 0xFF41_1B22_25F6_B4F2,
    0xFF64_8749_EAF9_7DF5, 0xFF81_D662_804B_FAA0, 0xFF99_FE54_5645_1556, 0xFFAD_D32D_9C3C_C06F,
    0xFFBE_0AE1_D8C9_671C, 0xFFCB_40CA_E4D2_C2BB, 0xFFD5_F8E6_C007_17B9, 0xFFDE_A2CF_F405_4AF5,
    0xFFE5_9C70_1F56_5D53, 0xFFEB_346D_CD57_ACA1, 0xFFEF_AC57_F9E3_AD75, 0xFFF3_3A92_8DD1_7F2D,
    0xFFF6_0C07_CC4C_5D51, 0xFFF8_45A3_1916_6675, 0xFFFA_0599_BDB6_B4EE, 0xFFFB_6486_67D9_5709,
    0xFFFC_765C_0DD6_677E, 0xFFFD_4B34_BED8_AA1B, 0xFFFD_F000_A91E_724F, 0xFFFE_6F19_5828_D6AE,
    0xFFFE_D0BC_DB5B_D896, 0xFFFF_1B74_2FBF_42FB, 0xFFFF_5467_F09A_0D9C, 0xFFFF_7FA5_FD2C_F8A3,
    0xFFFF_A05A_6FD9_AFD3, 0xFFFF_B8FD_F5F5_17A6, 0xFFFF_CB7B_504C_683C, 0xFFFF_D94D_838D_9C08,
    0xFFFF_E398_0581_F553, 0xFFFF_EB3A_0052_0349, 0xFFFF_F0DD_97A2_739C, 0xFFFF_F503_F3E2_BFF6,
    0xFFFF_F80E_B62E_902D, 0xFFFF_FA47_5A27_CD06, 0xFFFF_FBE4_F2AB_F5C3, 0xFFFF_FD10_99B6_0E6D,
    0xFFFF_FDE8_DA9F_12FF, 0xFFFF_FE84_4FC8_CCC7, 0xFFFF_FEF3_A123_836B, 0xFFFF_FF43_078A_6787,
    0xFFFF_FF7B_714C_040C, 0xFFFF_FFA3_5E0D_BE7B, 0xFFFF_FFBF_8350_30B0, 0xFFFF_FFD3_46F4_6915,
    0xFFFF_FFE1_1A0F_2F2E, 0xFFFF_FFEA_BBEE_7FAF, 0xFFFF_FFF1_6B54_AE77, 0xFFFF_FFF6_0A78_213E,
    0xFFFF_FFF9_3937_A734, 0xFFFF_FFFB_6817_A9DC, 0xFFFF_FFFC_E5F5_0B36, 0xFFFF_FFFD_E9DB_B527,
    0xFFFF_FFFE_9A0F_53F6, 0xFFFF_FFFF_110D_1DE6, 0xFFFF_FFFF_6118_2D47, 0xFFFF_FFFF_96BA_617C,
    0xFFFF_FFFF_BA86_8CBB, 0xFFFF_FFFF_D253_4A71, 0xFFFF_FFFF_E216_3842, 0xFFFF_FFFF_EC7B_F0F2,
    0xFFFF_FFFF_F350_F415, 0xFFFF_FFFF_F7C9_BEDE, 0xFFFF_FFFF_FAB4_21E4, 0xFFFF_FFFF_FC98_DE2C,
    0xFFFF_FFFF_FDD2_72D0, 0xFFFF_FFFF_FE9C_842C, 0xFFFF_FFFF_FF1E_3808, 0xFFFF_FFFF_FF71_25B8,
    0xFFFF_FFFF_FFA5_F683, 0xFFFF_FFFF_FFC7_7814, 0xFFFF_FFFF_FFDC_A476, 0xFFFF_FFFF_FFE9_F862,
    0xFFFF_FFFF_FFF2_53AE, 0xFFFF_FFFF_FFF7_8BCF, 0xFFFF_FFFF_FFFA_CB0D, 0xFFFF_FFFF_FFFC_CE2D,
    0xFFFF_FFFF_FFFE_0C27, 0xFFFF_FFFF_FFFE_CFAC, 0xFFFF_FFFF_FFFF_476C, 0xFFFF_FFFF_FFFF_907C,
    0xFFFF_FFFF_FFFF_BCE2, 0xFFFF_FFFF_FFFF_D7C3, 0xFFFF_FFFF_FFFF_E7F7, 0xFFFF_FFFF_FFFF_F1B3,
    0xFFFF_FFFF_FFFF_F786, 0xFFFF_FFFF_FFFF_FAFF, 0xFFFF_FFFF_FFFF_FD0E, 0xFFFF_FFFF_FFFF_FE46,
    0xFFFF_FFFF_FFFF_FEFE, 0xFFFF_FFFF_FFFF_FF6A, 0xFFFF_FFFF_FFFF_FFA9, 0xFFFF_FFFF_FFFF_FFCE,
    0xFFFF_FFFF_FFFF_FFE3, 0xFFFF_FFFF_FFFF_FFEF, 0xFFFF_FFFF_FFFF_FFF6, 0xFFFF_FFFF_FFFF_FFFA,
    0xFFFF_FFFF_FFFF_FFFC, 0xFFFF_FFFF_FFFF_FFFE, 0xFFFF_FFFF_FFFF_FFFF,
];

/// Leading digits that choose where the search among the thresholds begins.
const GUIDE_BITS: u32 = 10;

/// For each choice of leading digits, the number of thresholds below every deviate that begins with
/// them.
const GUIDE: [u8; 1 << GUIDE_BITS] = {
    let mut guide = [0; 1 << GUIDE_BITS];
    let mut leading = 0;
    let mut k = 0;
    while leading < guide.len() {
        while THRESHOLDS[k] < (leading as u64) << (u64::BITS - GUIDE_BITS) {
            k += 1;
        }
        guide[leading] = k as u8;
        leading += 1;
    }
    guide
};

/// Draws k with probability e^(−k²/512)/Σ_j e^(−j²/512).
///
/// # Privacy
/// Exactly so, with probability 1 after finitely many digits: Lemma 1a,
/// docs/PRIVACY.md#digits-are-drawn-when-needed.
#[inline]
pub(super) fn whole<const DIGIT_BITS: u32, R: Rng + ?Sized>(bits: &mut RandomBits<'_, R>) -> u64 {
    let mut low = 0; // the deviate with zeros for the digits not yet drawn
    let mut unknown = u64::BITS;
    while unknown > 0 {
        unknown -= DIGIT_BITS;
        low |= bits.digit::<DIGIT_BITS>() << unknown;
        let high = low | ((1 << unknown) - 1);
        let k = thresholds_below(low);
        if high < THRESHOLDS[k] {
            return k as u64;
        }
    }
    whole_after_tie::<DIGIT_BITS, R>(low, bits)
}

/// How many entries of the table are below `deviate`: fewer than all, as the last is all ones.
#[inline]
fn thresholds_below(deviate: u64) -> usize {
    let mut k = usize::from(GUIDE[(deviate >> (u64::BITS - GUIDE_BITS)) as usize]);
    while THRESHOLDS[k] < deviate {
        k += 1;
    }
    k
}

/// [`whole`] for a deviate whose first 64 digits are those of a threshold.
#[cold]
fn whole_after_tie<const DIGIT_BITS: u32, R: Rng + ?Sized>(first: u64, bits: &mut RandomBits<'_, R>) -> u64 {
    let mut digits = BigUint::from(first);
    let mut known = u64::from(u64::BITS);
    loop {
        digits = (digits << DIGIT_BITS) + bits.digit::<DIGIT_BITS>();
        known += u64::from(DIGIT_BITS);
        if let Some(k) = thresholds_reached(&digits, known) {
            return k;
        }
    }
}

/// How many thresholds a deviate reaches whose first `known` binary digits are given, if they tell.
fn thresholds_reached(digits: &BigUint, known: u64) -> Option<u64> {
    let denominator = BigUint::from(1_u32) << known;
    let least = Ratio { numerator: digits.clone(), denominator: denominator.clone() };
    let most = Ratio { numerator: digits + 1_u32, denominator };
    let mut reached = 0;
    for threshold in thresholds(known + 64) {
        if threshold.is_at_most(&least) == Some(true) {
            reached += 1;
        } else {
            return (threshold.is_at_most(&most) == Some(false)).then_some(reached);
        }
    }
    None
}

/// T_0, T_1, … to about `precision` binary digits, up to one that is as close to 1.
fn thresholds(precision: u64) -> Vec<Interval> {
    // e^(−(k + 1)²/512) is e^(−k²/512) times a ratio that shrinks by e^(−2/512) each time.
    let exponent = Ratio { numerator: 1_u32.into(), denominator: (2 * PARTS * PARTS).into() };
    let one = Interval::integer(1, precision);
    let mut ratio = one.over(&Interval::ratio(&exponent, precision).exp());
    let shrink = &ratio * &ratio;
    let half = Ratio { numerator: 1_u32.into(), denominator: 2_u32.into() };
    let mut term = one.clone();
    let mut sums = vec![one];
    while !(term.is_negligible() && ratio.is_at_most(&half) == Some(true)) {
        term = &term * &ratio;
        ratio = &ratio * &shrink;
        sums.push(&sums[sums.len() - 1] + &term);
    }
    // From here on each term is at most half of the one before: the rest sums to at most the last.
    let total = sums[sums.len() - 1].plus_at_most(&term);
    sums.iter().map(|sum| sum.over(&total)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::bits::tests::{Script, assert_brackets, exact_masses};
    use super::*;

    #[test]
    fn the_table_holds_the_first_digits_of_the_thresholds() {
        let thresholds = thresholds(256);
        assert!(thresholds.len() > THRESHOLDS.len());
        for (threshold, digits) in thresholds.iter().zip(THRESHOLDS) {
            let over = |numerator| Ratio { numerator, denominator: BigUint::from(1_u32) << 64 };
            assert_eq!(threshold.is_at_most(&over(digits.into())), Some(false));
            assert_eq!(threshold.is_at_most(&over(BigUint::from(digits) + 1_u32)), Some(true));
        }
        assert!(THRESHOLDS.is_sorted_by(|a, b| a < b));
        assert_eq!(THRESHOLDS.last(), Some(&u64::MAX));
    }

    #[test]
    fn the_search_counts_the_thresholds_below() {
        let near = THRESHOLDS.iter().flat_map(|&t| [t - 1, t, t.saturating_add(1)]);
        let edges = (0..1 << GUIDE_BITS).map(|leading| leading << (u64::BITS - GUIDE_BITS));
        for deviate in near.chain(edges.flat_map(|edge: u64| [edge, edge.wrapping_sub(1)])) {
            let expected = THRESHOLDS.iter().filter(|&&threshold| threshold < deviate).count();
            assert_eq!(thresholds_below(deviate), expected, "{deviate:#x}");
        }
    }

    /// One narrow width: each k has exactly its probability.
    fn masses_of_whole<const DIGIT_BITS: u32>() {
        let (masses, undecided) = exact_masses(40, whole::<DIGIT_BITS, _>);
        assert!(undecided < 1e-9, "{undecided}");
        let mass = |k: u64| (-((k * k) as f64) / 512.0).exp();
        let total: f64 = (0..1000).map(mass).sum();
        for k in 0..100 {
            assert_brackets(masses[&k], undecided, mass(k) / total);
        }
    }

    #[test]
    fn whole_parts_have_their_probabilities() {
        masses_of_whole::<1>();
        masses_of_whole::<2>();
        masses_of_whole::<4>();
        masses_of_whole::<8>();
    }

    /// k, and 192 binary digits of T_k computed in Python's `decimal` to 160 decimal places.
    const LONGER: [(u64, [u64; 3]); 5] = [
        (0, [0x0C74_A154_AE57_911B, 0x63C4_E75C_98DD_E5FD, 0xE65F_6A8B_CC1F_EFA2]),
        (20, [0xCE09_938D_14B8_8EFB, 0xFD96_1E00_4952_F3FB, 0x1C69_9DB9_3330_6DC0]),
        (145, [0xFFFF_FFFF_FFFF_FFFE, 0x4D1A_331F_B04E_0102, 0x0DC4_7863_F95F_C3F6]),
        (146, [0xFFFF_FFFF_FFFF_FFFF, 0x0BD1_0D27_CEDB_6220, 0x28B4_9E25_FAE8_235B]),
        (150, [0xFFFF_FFFF_FFFF_FFFF, 0xE8A6_EB9F_6303_E3D2, 0x8913_2F07_6ACA_FB5B]),
    ];

    #[track_caller]
    fn assert_whole<const DIGIT_BITS: u32>(words: &[u64], expected: u64, used: u32) {
        let mut script = Script::new(words.iter().copied());
        let mut bits = RandomBits::new(&mut script);
        assert_eq!(whole::<DIGIT_BITS, _>(&mut bits), expected);
        assert_eq!(bits.used(), used);
    }

    #[test]
    fn full_width_ties_are_broken_by_further_digits() {
        for (k, [first, second, third]) in LONGER {
            assert_whole::<64>(&[first, second - 1], k, 128);
            assert_whole::<64>(&[first, second + 1], k + 1, 128);
            assert_whole::<64>(&[first, second, third - 1], k, 192);
            assert_whole::<64>(&[first, second, third + 1], k + 1, 192);
        }
    }

    /// Narrow digits arrive lowest first within a word, so the words are those of the threshold,
    /// reversed.
    #[test]
    fn narrow_ties_are_broken_at_the_first_digit_that_differs() {
        for (k, [first, second, _]) in LONGER {
            let first = first.reverse_bits();
            let differing = 1_u64 << 17;
            let other = second.reverse_bits() ^ differing;
            let above = u64::from(other & differing != 0);
            assert_whole::<1>(&[first, other], k + above, 64 + 18);
        }
    }

    #[test]
    fn a_deviate_of_ones_goes_on_beyond_the_table() {
        // T_210 is the first beyond 1 − 2^−128, and the next digit is far below its own.
        assert_whole::<64>(&[u64::MAX, u64::MAX, 0], 210, 192);
    }
}
