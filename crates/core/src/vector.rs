//! The vector units of the processor that the program runs on.

use pulp::Arch;

/// All of them, the best first, and last none at all.
pub(crate) fn units() -> Vec<Arch> {
    #[cfg(target_arch = "x86_64")]
    {
        use pulp::x86::{V3, V4};
        let wide = V4::try_new().map(Arch::V4).into_iter().chain(V3::try_new().map(Arch::V3));
        wide.chain([Arch::Scalar]).collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    vec![Arch::new(), Arch::Scalar]
}
