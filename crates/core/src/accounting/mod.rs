//! Privacy budgets: μ-Gaussian differential privacy with exact integers
//! (docs/PRIVACY.md#accounting).
//!
//! A study asks for an ([`Epsilon`], [`Delta`]) per party. [`Mu::analytic`] turns that into the
//! largest allowed [`Mu`] on a grid of 2^-32, so that its square, a [`MuSquared`], is an exact
//! multiple of 2^-64: budgets are kept and added in μ², over stages, releases and parties, and
//! never rounded. [`Shares`] divide a μ² among the stages of a release, and [`sigma_for`] gives the
//! smallest integer noise scale a stage may use, decided with exact rational numbers.
//! [`epsilon_for`] and [`delta_for`] turn a sum of μ² back into a statement for people.
//!
//! The one transcendental function, δ(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), is enclosed by
//! integer interval arithmetic until the question asked of it is decided, so every answer is the
//! mathematically right one and the same on every machine. Nothing in this module uses
//! floating-point arithmetic for a decision.
//!
//! A number of type `f64` that came from, or goes to, decimal text stands for any real number
//! within one step of it; wherever that matters the step that costs privacy is taken against us
//! ([`f64::next_down`] of a target, [`f64::next_up`] of a statement).

mod budget;
mod curve;
mod memo;
mod pairs;
mod sigma;

pub use budget::{BudgetError, Delta, Epsilon, Mu, MuSquared};
pub use curve::{delta_for, delta_upper, epsilon_for};
pub use pairs::{JointShare, joint_of_exchange, joint_share, scale_for_pair};
pub use sigma::{SHARES, Share, Shares, SharesError, satisfies, sigma_for, smallest_sigma};
