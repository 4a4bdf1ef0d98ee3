//! The product of the Bernoulli matrix with encoded rows, in exact integers.
//!
//! With bits b ∈ {0, 1} for the signs s = 2b − 1, Σs·q = 2Σb·q − Σq: kernels add up the values
//! whose sign is +, and the rest is done once. Subjects come in blocks, mixed rows in blocks of the
//! key stream, so that signs, rows and sums in progress stay in cache. Three kernels do the same:
//! one for any processor, one that multiplies and adds pairs (AVX2), one that looks up the sums of
//! five rows at once (AVX-512).

#[cfg(target_arch = "x86_64")]
mod lookup;
#[cfg(target_arch = "x86_64")]
mod multiply_add;
mod plain;

use pulp::{Arch, NullaryFnOnce};

use super::SubjectDigest;
use super::lanes::{LANES, VectorUnit};
use super::signs::{BLOCK, Keys, WORDS};
use crate::vector::units;

/// Subjects in a block: whole lanes, whole groups of every kernel, and few enough for sums of bytes
/// in 16 bits.
const ROWS: usize = 240;

/// Mixed rows turned from columns to rows at a time.
const TURNED: usize = 16;

/// Signs of a block of subjects in a block of mixed rows: bit i of `[w][s]` is that of subject s in
/// row 32w + i.
type Signs = [[u32; ROWS]; WORDS];

/// Adds up, for each column and mixed row, the values of the subjects whose bit is set.
trait Kernel {
    /// What computes the signs for it.
    type Unit: VectorUnit;

    /// Largest value in size that it takes.
    const LARGEST: u32;

    fn unit(&self) -> Self::Unit;

    /// Takes a block of rows; those that are missing to a full block are zero.
    fn load(&mut self, rows: &[i32], width: usize);

    /// Adds to `sums`, which hold `stride` mixed rows of each column, the values of the loaded rows
    /// whose bits are set; only for the first `words`·32 rows after `first`.
    fn add(&mut self, signs: &Signs, words: usize, sums: &mut [i32], stride: usize, first: usize);
}

/// A kernel that this processor can run.
#[derive(Clone, Copy, Debug)]
enum Version {
    Plain(Arch),
    #[cfg(target_arch = "x86_64")]
    MultiplyAdd(pulp::x86::V3),
    #[cfg(target_arch = "x86_64")]
    Lookup(pulp::x86::V4),
}

impl Version {
    /// All of them, the fastest first.
    fn all() -> Vec<Self> {
        let mut versions = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            versions.extend(pulp::x86::V4::try_new().map(Self::Lookup));
            versions.extend(pulp::x86::V3::try_new().map(Self::MultiplyAdd));
        }
        versions.extend(units().into_iter().map(Self::Plain));
        versions
    }

    /// The fastest that takes values of this size.
    fn best_for(largest: u32) -> Self {
        let version = Self::all().into_iter().find(|version| largest <= version.largest());
        version.expect("the plain kernel takes every encoded value")
    }

    fn largest(self) -> u32 {
        match self {
            Self::Plain(_) => plain::Plain::LARGEST,
            #[cfg(target_arch = "x86_64")]
            Self::MultiplyAdd(_) => multiply_add::MultiplyAdd::LARGEST,
            #[cfg(target_arch = "x86_64")]
            Self::Lookup(_) => lookup::Lookup::LARGEST,
        }
    }

    fn run(self, product: Product<'_>, sums: &mut [i64]) {
        match self {
            Self::Plain(arch) => arch.dispatch(Task { product, kernel: plain::Plain::default(), sums }),
            #[cfg(target_arch = "x86_64")]
            Self::MultiplyAdd(simd) => {
                simd.vectorize(Task { product, kernel: multiply_add::MultiplyAdd::new(simd), sums });
            }
            #[cfg(target_arch = "x86_64")]
            Self::Lookup(simd) => {
                simd.vectorize(Task { product, kernel: lookup::Lookup::new(simd), sums });
            }
        }
    }
}

/// A product to be computed by a kernel, compiled for the kernel's vector unit.
struct Task<'a, K> {
    product: Product<'a>,
    kernel: K,
    sums: &'a mut [i64],
}

impl<K: Kernel> NullaryFnOnce for Task<'_, K> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.product.add_to(self.kernel, self.sums);
    }
}

/// Adds to `sums` the rows of these subjects, with their signs in every row of the Bernoulli
/// matrix.
///
/// # Privacy
/// The sum Σ b qᵀ of Theorem M, docs/PRIVACY.md#mixed-rows, in exact integers.
pub fn add_bernoulli(subjects: &[SubjectDigest], rows: &[i32], width: usize, k: u64, sums: &mut [i64]) {
    let product = Product::new(subjects, rows, width, k);
    Version::best_for(product.largest).run(product, sums);
}

/// What is to be multiplied.
#[derive(Clone, Copy)]
struct Product<'a> {
    subjects: &'a [SubjectDigest],
    rows: &'a [i32],
    width: usize,
    k: usize,
    /// Largest value in size.
    largest: u32,
}

impl<'a> Product<'a> {
    fn new(subjects: &'a [SubjectDigest], rows: &'a [i32], width: usize, k: u64) -> Self {
        assert_eq!(rows.len(), subjects.len() * width, "one row a subject");
        let largest = rows.iter().fold(0, |largest, q| q.unsigned_abs().max(largest));
        Self { subjects, rows, width, k: k as usize, largest }
    }

    /// So many blocks of subjects that sums of their values fit 32 bits.
    fn chunk(&self) -> usize {
        let most = (i32::MAX as u32 / self.largest.max(1)) as usize;
        (most.min(1 << 16) / ROWS).max(1) * ROWS
    }

    #[inline(always)]
    fn add_to(self, mut kernel: impl Kernel, sums: &mut [i64]) {
        let (width, k) = (self.width, self.k);
        let stride = k.next_multiple_of(BLOCK);
        let mut parts = vec![0_i32; width * stride];
        let mut signs: Box<Signs> = Box::new([[0; ROWS]; WORDS]);
        let chunk = self.chunk();
        for (subjects, rows) in self.subjects.chunks(chunk).zip(self.rows.chunks(chunk * width)) {
            parts.fill(0);
            for (subjects, rows) in subjects.chunks(ROWS).zip(rows.chunks(ROWS * width)) {
                kernel.load(rows, width);
                let keys: Vec<Keys> = subjects.chunks(LANES).map(Keys::new).collect();
                for first in (0..k).step_by(BLOCK) {
                    for (at, keys) in keys.iter().enumerate() {
                        let block = keys.block(kernel.unit(), (first / BLOCK) as u64);
                        for (signs, word) in signs.iter_mut().zip(block) {
                            kernel.unit().store(word, &mut signs.as_chunks_mut().0[at]);
                        }
                    }
                    let words = (k - first).min(BLOCK).div_ceil(32);
                    kernel.add(&signs, words, &mut parts, stride, first);
                }
            }
            let mut totals = vec![0_i32; width];
            for row in rows.chunks_exact(width) {
                totals.iter_mut().zip(row).for_each(|(total, &q)| *total = total.wrapping_add(q));
            }
            // A few mixed rows at a time stay in cache.
            for (first, sums) in (0..).step_by(TURNED).zip(sums.chunks_mut(TURNED * width)) {
                for (j, &total) in totals.iter().enumerate() {
                    let parts = &parts[j * stride + first..];
                    for (row, &part) in sums.chunks_exact_mut(width).zip(parts) {
                        // Overflow is excluded when the study is checked: n·C < 2⁶².
                        row[j] = row[j].wrapping_add((i64::from(part) << 1).wrapping_sub(i64::from(total)));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixing::{MixingKey, reference_product};
    use proptest::prelude::*;

    fn subjects(count: usize) -> Vec<SubjectDigest> {
        let key = MixingKey::new([5; 32]);
        (0..count).map(|id| key.subject(id.to_string().as_bytes())).collect()
    }

    /// The product by its definition.
    fn expected(subjects: &[SubjectDigest], rows: &[i32], width: usize, k: u64) -> Vec<i64> {
        reference_product(subjects, rows, width, k, |subject, i| {
            let mut words = vec![0; k.div_ceil(64) as usize];
            subject.bernoulli_signs(&mut words);
            if words[i as usize / 64] >> (i % 64) & 1 == 1 { 1 } else { -1 }
        })
    }

    proptest! {
        /// Each kernel and each vector unit in turn.
        #[test]
        fn every_kernel_gives_the_product_of_the_definition(
            count in prop_oneof![0usize..20, 235usize..245, 475usize..490],
            width in 1usize..6,
            k in prop_oneof![1u64..200, 505u64..530, 1020u64..1030],
            bits in 1u32..=20,
            values in prop::collection::vec(-(1i32 << 20)..=1 << 20, 5 * 490),
        ) {
            let subjects = subjects(count);
            let rows: Vec<i32> = values[..count * width].iter().map(|q| q >> (20 - bits)).collect();
            let expected = expected(&subjects, &rows, width, k);
            let product = Product::new(&subjects, &rows, width, k);
            for version in Version::all() {
                if product.largest <= version.largest() {
                    let mut sums = vec![-3; k as usize * width];
                    version.run(product, &mut sums);
                    prop_assert!(sums.iter().zip(&expected).all(|(sum, expected)| sum + 3 == *expected), "{version:?}");
                }
            }
        }
    }

    #[test]
    fn values_as_large_as_a_kernel_takes_do_not_overflow() {
        for version in Version::all() {
            for extreme in [version.largest() as i32, -(version.largest() as i32)] {
                // Chunks must be cut where sums of so many equal values would not fit.
                let count = (Product { largest: version.largest(), ..Product::new(&[], &[], 1, 1) }).chunk()
                    + ROWS
                    + 1;
                let subjects = vec![MixingKey::new([5; 32]).subject(b"same"); count];
                let rows = vec![extreme; count];
                let mut sums = vec![0; 3];
                version.run(Product::new(&subjects, &rows, 1, 3), &mut sums);
                let all = u64::from(extreme.unsigned_abs()) * count as u64;
                assert!(sums.iter().all(|sum| sum.unsigned_abs() == all), "{version:?}");
            }
        }
    }

    #[test]
    fn the_best_kernel_that_takes_the_values_is_used() {
        let name = |version: Version| format!("{version:?}");
        let versions = Version::all();
        assert_eq!(name(Version::best_for(1)), name(versions[0]));
        let plain = versions.iter().find(|version| matches!(version, Version::Plain(_))).unwrap();
        assert_eq!(name(Version::best_for(plain::Plain::LARGEST)), name(*plain));
    }
}
