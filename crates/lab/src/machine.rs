//! The machine that figures of speed come from.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__m512i;
use std::fs;
#[cfg(target_arch = "x86_64")]
use std::hint::black_box;
use std::num::NonZero;
#[cfg(target_arch = "x86_64")]
use std::time::Instant;

use serde::Serialize;

/// Features of a processor that kernels here or at the peers make use of.
const FLAGS: [&str; 11] = [
    "avx2",
    "fma",
    "bmi2",
    "sha_ni",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512_vnni",
    "avx512vbmi",
    "avx512_bf16",
    "gfni",
];

#[derive(Serialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) flags: Vec<&'static str>,
}

impl Machine {
    /// What the operating system says; a processor without a name where it says nothing.
    pub(crate) fn new() -> Self {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
            line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim())
        };
        let flags: Vec<&str> = field("flags").split_whitespace().collect();
        Self {
            processor: if field("model name").is_empty() {
                std::env::consts::ARCH
            } else {
                field("model name")
            }
            .to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            flags: FLAGS.into_iter().filter(|flag| flags.contains(flag)).collect(),
        }
    }
}

/// Signed additions a second that the vector units could do if nothing else were to be done, on so
/// many threads.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) struct Peaks {
    /// By multiplying 16-bit values by their signs and adding pairs, 32 an instruction.
    pub(crate) multiply_add: f64,
    /// By looking up the sums of five rows for 32 mixed rows, with two tables a value.
    pub(crate) lookup: f64,
}

impl Peaks {
    /// Measures them; nothing without AVX-512.
    pub(crate) fn measure(threads: NonZero<usize>) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let simd = pulp::x86::V4::try_new()?;
            // Additions of a step: one multiplication is of 32 values, two lookups are of 5 rows in
            // 32 mixed rows.
            let multiply_add = peak(threads, 32.0, || simd.vectorize(Steps { simd, lookup: false }));
            let lookup = peak(threads, 5.0 * 32.0 / 2.0, || simd.vectorize(Steps { simd, lookup: true }));
            Some(Self { multiply_add, lookup })
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = threads;
            None
        }
    }
}

#[cfg(target_arch = "x86_64")]
const CHAINS: usize = 8;
#[cfg(target_arch = "x86_64")]
const STEPS: usize = 4_000_000;

/// The best rate of several tries: additions a second of all threads together.
#[cfg(target_arch = "x86_64")]
fn peak(threads: NonZero<usize>, additions: f64, work: impl Fn() + Sync) -> f64 {
    let once = || {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads.get() {
                scope.spawn(&work);
            }
        });
        (STEPS * CHAINS * threads.get()) as f64 * additions / start.elapsed().as_secs_f64()
    };
    (0..9).map(|_| once()).fold(0.0, f64::max)
}

/// Independent chains of the kernels' instructions, on registers only.
#[cfg(target_arch = "x86_64")]
struct Steps {
    simd: pulp::x86::V4,
    lookup: bool,
}

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for Steps {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let bw = self.simd.avx512bw;
        let mut sums = black_box([pulp::cast::<_, __m512i>([1_u16; 32]); CHAINS]);
        let places: __m512i = black_box(pulp::cast([3_u16; 32]));
        let values: __m512i = black_box(pulp::cast([5_u16; 32]));
        if self.lookup {
            for _ in 0..STEPS {
                for sum in &mut sums {
                    // The table depends on the sum, so that nothing can be left out.
                    *sum = bw._mm512_add_epi16(*sum, bw._mm512_permutexvar_epi16(places, *sum));
                }
            }
        } else {
            for _ in 0..STEPS {
                for sum in &mut sums {
                    *sum = self.simd.avx512f._mm512_add_epi32(*sum, bw._mm512_madd_epi16(*sum, values));
                }
            }
        }
        black_box(sums);
    }
}
