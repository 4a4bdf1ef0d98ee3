//! The machine that figures of speed come from.

use std::fs;

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
