//! The verifier's equations, all in one sum of points with weights. Everything here is public, or a
//! weight that is of no use once the message is fixed; so time may vary.

use std::ops::AddAssign;

use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, IsIdentity, VartimeMultiscalarMul};

use crate::generators::Generators;

/// Σ scalar·point over points of a message, and scalars of the points that occur in every row.
pub(crate) struct Equations {
    scalars: Vec<Scalar>,
    points: Vec<RistrettoPoint>,
    sum: RistrettoPoint,
    pub(crate) fixed: Fixed,
}

/// The scalars of points that occur in every row.
#[derive(Clone)]
pub(crate) struct Fixed {
    pub(crate) g: Scalar,
    pub(crate) g2: Scalar,
    pub(crate) b: Scalar,
    /// L, then F.
    pub(crate) lf: Vec<Scalar>,
    /// H.
    pub(crate) keys: Vec<Scalar>,
}

impl Equations {
    /// For `l` generators L and `keys` keys H.
    pub(crate) fn new(l: usize, keys: usize) -> Self {
        Self {
            scalars: Vec::new(),
            points: Vec::new(),
            sum: RistrettoPoint::identity(),
            fixed: Fixed {
                g: Scalar::ZERO,
                g2: Scalar::ZERO,
                b: Scalar::ZERO,
                lf: vec![Scalar::ZERO; l + 4],
                keys: vec![Scalar::ZERO; keys],
            },
        }
    }

    pub(crate) fn push(&mut self, scalar: Scalar, point: RistrettoPoint) {
        self.scalars.push(scalar);
        self.points.push(point);
    }

    /// Adds up what was pushed, so that no points are held any longer.
    pub(crate) fn settled(mut self) -> Self {
        self.sum += RistrettoPoint::vartime_multiscalar_mul(&self.scalars, &self.points);
        self.scalars.clear();
        self.points.clear();
        self
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        assert!(other.points.is_empty(), "only what is settled is merged");
        self.sum += other.sum;
        self.fixed += &other.fixed;
    }

    /// Whether all of it is zero.
    pub(crate) fn hold(mut self, generators: &Generators, keys: &[RistrettoPoint]) -> bool {
        let fixed = self.fixed.clone();
        self.push(fixed.g, generators.g);
        self.push(fixed.g2, generators.g2);
        self.push(fixed.b, generators.b);
        for (scalar, point) in fixed.lf.into_iter().zip(generators.l.iter().chain(&generators.f)) {
            self.push(scalar, *point);
        }
        for (scalar, point) in fixed.keys.into_iter().zip(keys) {
            self.push(scalar, *point);
        }
        self.settled().sum.is_identity()
    }
}

impl AddAssign<&Fixed> for Fixed {
    fn add_assign(&mut self, other: &Self) {
        self.g += other.g;
        self.g2 += other.g2;
        self.b += other.b;
        add(&mut self.lf, &other.lf);
        add(&mut self.keys, &other.keys);
    }
}

fn add(all: &mut [Scalar], others: &[Scalar]) {
    for (one, other) in all.iter_mut().zip(others) {
        *one += other;
    }
}

/// The left side of the equation *norm* less eE₁ + E₀, as far as rows say it:
/// Σρ(Σf² + Σg² − e²C).
pub(crate) struct NormCheck {
    e_squared_c: Scalar,
    pub(crate) sum: Scalar,
}

impl NormCheck {
    pub(crate) fn new(e: &Scalar, norm: u32) -> Self {
        Self { e_squared_c: e * e * Scalar::from(norm), sum: Scalar::ZERO }
    }

    pub(crate) fn add(&mut self, rho: &Scalar, responses: &[Scalar]) {
        let squares: Scalar = responses.iter().map(|f| f * f).sum();
        self.sum += rho * (squares - self.e_squared_c);
    }

    /// *norm*: Σρ(Σf² + Σg² − e²C)·G + f_bB = eE₁ + E₀.
    pub(crate) fn holds(
        &self,
        e: &Scalar,
        closing: &Scalar,
        [e1, e0]: [RistrettoPoint; 2],
        generators: &Generators,
    ) -> bool {
        let scalars = [self.sum, *closing, -e, -Scalar::ONE];
        let points = [generators.g, generators.b, e1, e0];
        RistrettoPoint::vartime_multiscalar_mul(scalars, points).is_identity()
    }
}
