//! Noise scales of products between two parties, and what they protect: Lemmas X1 and X2,
//! docs/PRIVACY.md#exchange.

use num_bigint::BigUint;

use super::{Mu, MuSquared, SHARES, Share, sigma_for};
use crate::interval::div_up;
use crate::noise::{Sigma, SigmaError};

/// The scale of the noise of a pair among `parties` parties: the smallest that keeps each of the
/// two, with an equal share for each of its pairs, within its part of μ².
///
/// # Privacy
/// σ² ≥ 4·C_i·C_j·(m − 1)/μ_x² for both, decided in integers and rounded up: Lemma X1,
/// docs/PRIVACY.md#exchange. Each party's μ_x² is `share` of its μ².
pub fn scale_for_pair(norms: [u32; 2], budgets: [(Mu, Share); 2], parties: u16) -> Result<Sigma, SigmaError> {
    let squared = 4 * u128::from(norms[0]) * u128::from(norms[1]) * u128::from(parties.max(2) - 1);
    let [one, other] = budgets.map(|(mu, share)| sigma_for(mu, share, (squared, 1)));
    Ok(one?.max(other?))
}

/// What all exchanged blocks of m parties with the same μ_x together cost a subject whose rows are
/// replaced at all `honest` ones, while the rest work together: a multiple of μ_x².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointShare {
    /// Numerator of the factor.
    pub numerator: u64,
    /// Denominator of the factor.
    pub denominator: u64,
}

/// The factor of μ_x² for `honest` of `parties` parties; `honest = parties` is the public's view.
///
/// # Privacy
/// max over a of [a(m − h) + a(h − a)/2]/(m − 1), exactly: Lemma X2, docs/PRIVACY.md#exchange. It
/// holds for pairs with equal shares of one μ_x.
pub fn joint_share(parties: u16, honest: u16) -> JointShare {
    let (m, h) = (u64::from(parties.max(2)), u64::from(honest.min(parties)));
    let largest = (0..=h).map(|a| 2 * a * (m - h) + a * (h - a)).max().unwrap_or(0);
    JointShare { numerator: largest, denominator: 2 * (m - 1) }
}

impl JointShare {
    /// This factor of a part of μ², rounded up; nothing if it reaches 2⁶⁴.
    fn of(self, squared: MuSquared, parts: u32) -> Option<MuSquared> {
        let numerator = BigUint::from(squared.units()) * parts * self.numerator;
        let units = div_up(&numerator, &(BigUint::from(SHARES) * self.denominator));
        u128::try_from(units).ok().map(MuSquared::from_units)
    }
}

/// μ² of a study in which every two of m `parties` exchange, for a subject whose rows are replaced
/// at all `honest` ones, against all other parties together: each has `mu`, of which `exchanged`
/// goes to its pairs and the rest to what it publishes by itself. Nothing if it reaches 2⁶⁴.
///
/// # Privacy
/// What parties publish by themselves adds up (Theorem 4, docs/PRIVACY.md#composition), and so does
/// what Lemma X2 (docs/PRIVACY.md#exchange) says of their pairs; both rounded up.
pub fn joint_of_exchange(mu: Mu, exchanged: Share, parties: u16, honest: u16) -> Option<MuSquared> {
    let alone = JointShare { numerator: honest.into(), denominator: 1 };
    let published = alone.of(mu.squared(), SHARES - exchanged.parts())?;
    published.checked_add(joint_share(parties, honest).of(mu.squared(), exchanged.parts())?)
}

#[cfg(test)]
mod tests {
    use super::super::{Delta, Epsilon, epsilon_for, satisfies};
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    type Vector = Vec<i64>;

    fn norm(v: &Vector) -> i64 {
        v.iter().map(|v| v * v).sum()
    }

    /// Σ over the entries of a block of the squared change when v becomes v2 and y becomes y2.
    fn moved(v: &Vector, y: &Vector, v2: &Vector, y2: &Vector) -> i64 {
        let entries = (0..v.len()).flat_map(|j| (0..y.len()).map(move |l| (j, l)));
        entries.map(|(j, l)| (v2[j] * y2[l] - v[j] * y[l]).pow(2)).sum()
    }

    fn below(rng: &mut ChaCha20Rng, n: usize) -> usize {
        (rng.next_u64() % n as u64) as usize
    }

    /// A row in its ball, anywhere.
    fn random_row(rng: &mut ChaCha20Rng, columns: usize, bound: u32) -> Vector {
        let root = bound.isqrt() as usize;
        loop {
            let row: Vector = (0..columns).map(|_| below(rng, 2 * root + 1) as i64 - root as i64).collect();
            if norm(&row) <= i64::from(bound) {
                return row;
            }
        }
    }

    /// Climbs: changes one entry of one row, turns a row round or draws another, and keeps what
    /// moves more and stays in the ball.
    fn climb(
        rng: &mut ChaCha20Rng,
        rows: &mut [Vector],
        bounds: &[u32],
        steps: usize,
        value: impl Fn(&[Vector]) -> i64,
    ) -> i64 {
        let mut best = value(rows);
        for _ in 0..steps {
            let which = below(rng, rows.len());
            let before = rows[which].clone();
            match below(rng, 8) {
                0 => rows[which].iter_mut().for_each(|v| *v = -*v),
                1 => rows[which] = random_row(rng, before.len(), bounds[which]),
                2 => rows[which].clone_from(&rows[which ^ 1].iter().map(|v| -v).collect()),
                _ => {
                    let entry = below(rng, before.len());
                    rows[which][entry] += below(rng, 7) as i64 - 3;
                }
            }
            let now = value(rows);
            if norm(&rows[which]) <= i64::from(bounds[which]) && now >= best {
                best = now;
            } else {
                rows[which] = before;
            }
        }
        best
    }

    fn budget() -> (Mu, Share) {
        let epsilon = Epsilon::new(1.0).expect("valid");
        let mu = Mu::analytic(epsilon, Delta::new(1e-5).expect("valid")).expect("valid");
        (mu, Share::new(700_000).expect("valid"))
    }

    #[test]
    fn one_party_comes_within_one_percent_of_the_bound_and_never_above() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let (mu, share) = budget();
        for (parties, own, others) in
            [(2_u16, 2500, [1600, 1600]), (3, 1600, [2500, 900]), (6, 900, [2916, 400])]
        {
            for partner in others {
                let sigma = scale_for_pair([own, partner], [(mu, share); 2], parties).expect("in range");
                let mut best = 0;
                for columns in [(1, 1), (2, 3), (3, 1)] {
                    let mut rows = [
                        random_row(&mut rng, columns.0, own),
                        random_row(&mut rng, columns.0, own),
                        random_row(&mut rng, columns.1, partner),
                        random_row(&mut rng, columns.1, partner),
                    ];
                    let bounds = [own, own, partner, partner];
                    // The partner's row, the third, stays.
                    let value = |r: &[Vector]| moved(&r[0], &r[2], &r[1], &r[2]);
                    best = best.max(climb(&mut rng, &mut rows, &bounds, 20_000, value));
                }
                let pairs = u128::from(parties - 1);
                let cost = |sigma| satisfies(sigma, mu, share, (best as u128 * pairs, 1));
                assert!(cost(sigma), "a block of {best} exceeds its share");
                let smaller = Sigma::new(sigma.get() * 98 / 100).expect("in range");
                assert!(!cost(smaller), "the search finds no more than {best}: a σ of 98% is not noticed");
                assert!(best as f64 >= 0.99 * 4.0 * f64::from(own) * f64::from(partner));
            }
        }
    }

    #[test]
    fn joint_worst_cases_come_within_one_percent_and_never_above() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let bound = 2500;
        for parties in 2..=6_usize {
            for honest in 1..=parties {
                // Rows before and after at every honest party, then one row at each dishonest one.
                let count = 2 * honest + (parties - honest);
                let value = |rows: &[Vector]| -> i64 {
                    let row = |i: usize, after: usize| &rows[2 * i + after];
                    let mut sum = 0;
                    for i in 0..honest {
                        for j in 0..i {
                            sum += moved(row(i, 0), row(j, 0), row(i, 1), row(j, 1));
                        }
                        for partner in &rows[2 * honest..] {
                            sum += 2 * moved(row(i, 0), partner, row(i, 1), partner);
                        }
                    }
                    sum
                };
                let share = joint_share(parties as u16, honest as u16);
                // With κ = 1/(m − 1), Σ/(8C²(m − 1)) against the factor.
                let limit = 4 * i64::from(bound).pow(2) * share.numerator as i64;
                let mut best = 0;
                for restart in 0..12 {
                    let columns = 1 + restart % 3;
                    let mut rows: Vec<Vector> =
                        (0..count).map(|_| random_row(&mut rng, columns, bound)).collect();
                    if count % 2 == 1 {
                        rows.push(vec![0; columns]); // so that every row has a neighbour to copy
                    }
                    let bounds = vec![bound; rows.len()];
                    let all = |rows: &[Vector]| value(&rows[..count]);
                    best = best.max(climb(&mut rng, &mut rows, &bounds, 6000, all));
                }
                assert!(best <= limit, "{honest} of {parties}: {best} above {limit}");
                assert!(best as f64 >= 0.99 * limit as f64, "{honest} of {parties}: {best} of {limit}");
            }
        }
    }

    #[test]
    fn the_public_sees_what_the_lemma_says() {
        for m in 2..=12_u16 {
            let JointShare { numerator, denominator } = joint_share(m, m);
            let (m, odd) = (u64::from(m), u64::from(m % 2));
            assert_eq!(numerator * 8 * (m - 1), (m * m - odd) * denominator);
            // Alone among all others, a party has X1: all of μ_x².
            let alone = joint_share(m as u16, 1);
            assert_eq!(alone.numerator, alone.denominator);
        }
    }

    /// The figures of docs/PRIVACY.md#exchange: 30% of μ² for stages 1 to 3, which add up.
    #[test]
    fn three_and_six_parties_of_epsilon_one_have_the_joint_epsilon_of_the_document() {
        let delta = Delta::new(1e-5).expect("valid");
        let (mu, _) = budget();
        let share = Share::new(SHARES / 10 * 7).expect("valid");
        for (parties, exchanged, one_shot) in [(3_u16, 1.13, 1.83), (6, 1.63, 2.71)] {
            let joint = joint_of_exchange(mu, share, parties, parties).expect("in range");
            assert!((epsilon_for(joint, delta) - exchanged).abs() < 0.01);
            let together = mu.squared().units() * u128::from(parties);
            assert!((epsilon_for(MuSquared::from_units(together), delta) - one_shot).abs() < 0.01);
        }
    }

    #[test]
    fn joint_costs_are_the_sums_of_their_parts_rounded_up() {
        let (mu, _) = budget();
        let unit = mu.squared().units();
        for share in [1, 3, SHARES / 3, SHARES - 1] {
            let exchanged = Share::new(share).expect("valid");
            for (parties, honest) in [(2_u16, 1_u16), (2, 2), (3, 2), (5, 5), (7, 3)] {
                let joint = joint_of_exchange(mu, exchanged, parties, honest).expect("in range").units();
                let JointShare { numerator, denominator } = joint_share(parties, honest);
                let alone = unit * u128::from(SHARES - share) * u128::from(honest);
                let pairs = unit * u128::from(share) * u128::from(numerator);
                let exact = alone * u128::from(denominator) + pairs;
                let whole = u128::from(SHARES) * u128::from(denominator);
                assert!(joint * whole >= exact, "{parties} {honest} {share}");
                assert!((joint - 2) * whole < exact, "{parties} {honest} {share}");
            }
        }
    }

    #[test]
    fn the_scale_of_a_pair_serves_the_stricter_party() {
        let (mu, share) = budget();
        let strict = (Mu::from_numerator(mu.numerator() / 3).expect("valid"), share);
        let scale = |budgets| scale_for_pair([100, 900], budgets, 4).expect("in range");
        assert_eq!(scale([(mu, share), strict]), scale([strict, (mu, share)]));
        assert_eq!(scale([(mu, share), strict]), scale([strict; 2]));
        assert!(scale([(mu, share); 2]) < scale([strict; 2]));
        let squared = 4 * 100 * 900 * 3;
        assert!(satisfies(scale([strict; 2]), strict.0, share, (squared, 1)));
        let less = Sigma::new(scale([strict; 2]).get() - 1).expect("in range");
        assert!(!satisfies(less, strict.0, share, (squared, 1)));
    }
}
