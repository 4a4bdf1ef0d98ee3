//! The mathematics of potluck on plain arrays: encoding, mixing, noise, accounting and learning.
//!
//! This crate knows no files, no clock, no network and no table format. What guards privacy is in
//! [`accounting`], [`encoding`], [`mixing`], [`noise`], [`stage`] and [`calibrated`]: every
//! function whose result does has a `# Privacy` section that says what it promises, by which lemma
//! or theorem, and where in docs/PRIVACY.md the proof is. What guesses well from published numbers,
//! at no cost to privacy, is in [`learn`] and [`planning`], and explained in docs/LEARNERS.md.
//!
//! A release and what can be learned from it, from a budget to a slope:
//!
//! ```
//! use potluck_core::accounting::{Delta, Epsilon, Mu, Share, sigma_for};
//! use potluck_core::encoding::{Ball, Bounds, EncodedRows, Encoder, RowEncoder, Values};
//! use potluck_core::learn::{Affine, Released, Ridge, debiased};
//! use potluck_core::mixing::{Mixing, MixingKey};
//! use potluck_core::stage::{Stage, Statistic};
//! use rand_chacha::ChaCha20Rng;
//! use rand_core::SeedableRng;
//!
//! // 400,000 people, whose blood pressure rises by 0.6 a year of age.
//! let people = 400_000_u32;
//! let ages: Vec<f64> = (0..people).map(|person| f64::from(20 + person % 61)).collect();
//! let pressures: Vec<f64> = ages.iter().map(|age| 110.0 + 0.6 * age).collect();
//! let mut subjects = Vec::new();
//! MixingKey::new([7; 32]).add_numbered(0..people, &mut subjects);
//!
//! // What a budget and public bounds allow: Theorem M of docs/PRIVACY.md#mixed-rows.
//! let (age, pressure) = (Bounds::new(20.0, 80.0)?, Bounds::new(80.0, 200.0)?);
//! let ball = Ball::of_columns(2)?;
//! let mu = Mu::analytic(Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
//! let sigma = sigma_for(mu, Share::WHOLE, (4 * u128::from(ball.norm_squared()), 1))?;
//! let k = 500;
//! let columns = [Encoder::Numeric(age), Encoder::Numeric(pressure)];
//! let stage = Stage {
//!     name: "mixed",
//!     share: Share::WHOLE,
//!     encoder: RowEncoder::plain(&columns).within(ball),
//!     statistic: Statistic::Mixed { mixing: Mixing::Sparse, k },
//!     noise: vec![(2 * k as usize, sigma)],
//! };
//!
//! // Encode, mix, add noise. A real release never has a seed that anyone knows.
//! let mut rows = EncodedRows::default();
//! let values = [Values::Numbers(&ages), Values::Numbers(&pressures)];
//! stage.encode(&values, subjects.len(), &mut rows);
//! let mut sums = vec![0; stage.coordinates()];
//! stage.accumulate(&subjects, 0, &rows, &mut sums);
//! stage.add_noise(&mut sums, &mut ChaCha20Rng::seed_from_u64(1));
//!
//! // From here on everything is public.
//! let column = |at: usize| -> Vec<f64> {
//!     sums.iter().skip(at).step_by(2).map(|&sum| sum as f64 / stage.scale()).collect()
//! };
//! let (noise, columns) = ([stage.noise_level(); 2], [column(0), column(1)]);
//! let columns = columns.each_ref().map(Vec::as_slice);
//! let fit = debiased(&Released::new(&columns, &noise, people.into())?, 1, &[0], Ridge::NONE)?;
//! let affine = |bounds: Bounds| Affine::new(bounds.midpoint(), bounds.half_width());
//! let line = fit.coefficients.to_original(&[affine(age)?], affine(pressure)?)?;
//! assert!((line.slopes()[0] - 0.6).abs() < 0.2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod accounting;
pub mod calibrated;
pub mod encoding;
mod interval;
pub mod learn;
pub mod mixing;
pub mod noise;
pub mod planning;
pub mod stage;
mod vector;
