//! Posterior means of noisy values under priors whose width the values themselves decide
//! (docs/LEARNERS.md#posterior, steps 4 to 6).

/// Points of a grid of prior variances.
const GRID: usize = 16;
/// Shares of features that have an effect.
const SHARES: [f64; 4] = [1.0, 0.5, 0.25, 0.1];
/// Largest prior variance of one effect.
const LARGEST_EFFECT: f64 = 0.3;
/// Prior probability that effects elsewhere are like those in the label's own party.
const ALIKE: f64 = 0.5;
/// Prior probability that nothing elsewhere has an effect.
const NOTHING: f64 = 0.1;

/// Points from `low` to 1 in equal ratios, times `scale`.
pub(super) fn geometric_grid(scale: f64, low: f64) -> Vec<f64> {
    (0..GRID).map(|i| scale * low.powf(1.0 - i as f64 / (GRID - 1) as f64)).collect()
}

/// Weights that are proportional to the exponentials, and sum to one.
pub(super) fn normalised(logs: &[f64]) -> Vec<f64> {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// Logarithm of the density of x ~ N(0, v), without the constant.
pub(super) fn log_density(x: f64, v: f64) -> f64 {
    -0.5 * (v.ln() + x * x / v)
}

/// Factors of the posterior means of x ~ N(θ, v), θ ~ N(0, g), with g averaged over a grid by its
/// likelihood.
pub(super) fn factors(x: &[f64], v: &[f64], grid: &[f64]) -> Vec<f64> {
    let log = |g: &f64| -> f64 { x.iter().zip(v).map(|(&x, v)| log_density(x, g + v)).sum() };
    let weights = normalised(&grid.iter().map(log).collect::<Vec<_>>());
    let factor = |v: &f64| weights.iter().zip(grid).map(|(w, g)| w * g / (g + v)).sum::<f64>();
    v.iter().map(factor).collect()
}

/// Smallest and largest variance of a [`ScaleMixture`], and how many there are.
const SCALES: (f64, f64, usize) = (1e-4, 0.5, 14);
/// By how many values' worth the weights of all variances are alike beforehand.
const PSEUDO: f64 = 2.0;
const MOST_ROUNDS: usize = 50;

/// A prior of many widths: x ~ N(θ, v), θ ~ Σ π N(0, g), with the weights π that the values
/// themselves suggest (adaptive shrinkage: Stephens 2017). Small values are shrunk to nothing, a
/// large one beside them hardly at all.
pub(super) struct ScaleMixture {
    variances: Vec<f64>,
    /// For each value, how likely each variance is its own.
    chances: Vec<Vec<f64>>,
}

impl ScaleMixture {
    /// All variances that are tried.
    pub(super) fn scales() -> Vec<f64> {
        let (low, high, count) = SCALES;
        (0..count).map(|i| low * (high / low).powf(i as f64 / (count - 1) as f64)).collect()
    }

    /// The weights are found by expectation and maximisation.
    pub(super) fn of(noisy: &Noisy) -> Self {
        let variances = Self::scales();
        let count = variances.len() as f64;
        let likelihoods: Vec<Vec<f64>> = noisy
            .values
            .iter()
            .zip(&noisy.variances)
            .map(|(&x, v)| normalised(&variances.iter().map(|g| log_density(x, g + v)).collect::<Vec<_>>()))
            .collect();
        let mut weights = vec![1.0 / count; variances.len()];
        let mut chances: Vec<Vec<f64>> = Vec::new();
        for _ in 0..MOST_ROUNDS {
            chances = likelihoods.iter().map(|of_value| proportional(of_value, &weights)).collect();
            for (scale, weight) in weights.iter_mut().enumerate() {
                let total: f64 = chances.iter().map(|of_value| of_value[scale]).sum();
                *weight = (total + PSEUDO / count) / (chances.len() as f64 + PSEUDO);
            }
        }
        Self { variances, chances }
    }

    /// By what each value is multiplied to become its posterior mean.
    pub(super) fn factors(&self, noisy: &Noisy) -> Vec<f64> {
        let factor = |(chances, v): (&Vec<f64>, &f64)| {
            chances.iter().zip(&self.variances).map(|(chance, g)| chance * g / (g + v)).sum()
        };
        self.chances.iter().zip(&noisy.variances).map(factor).collect()
    }
}

/// Products that sum to one.
pub(super) fn proportional(a: &[f64], b: &[f64]) -> Vec<f64> {
    let products: Vec<f64> = a.iter().zip(b).map(|(a, b)| a * b).collect();
    let total: f64 = products.iter().sum();
    products.into_iter().map(|product| product / total).collect()
}

/// Values with the variances of their errors.
pub(super) struct Noisy {
    pub(super) values: Vec<f64>,
    pub(super) variances: Vec<f64>,
}

impl Noisy {
    /// Logarithm of the likelihood if a share of the values are effects of variance g, and the
    /// others nothing; and of each value, the part that is due to an effect.
    fn likelihood(&self, share: f64, g: f64) -> (f64, Vec<f64>) {
        let mut total = 0.0;
        let mut due = Vec::with_capacity(self.values.len());
        for (&x, &v) in self.values.iter().zip(&self.variances) {
            let effect = share.ln() + log_density(x, g + v);
            let both = if share < 1.0 {
                let nothing = (1.0 - share).ln() + log_density(x, v);
                let largest = effect.max(nothing);
                largest + ((effect - largest).exp() + (nothing - largest).exp()).ln()
            } else {
                effect
            };
            total += both;
            due.push((effect - both).exp());
        }
        (total, due)
    }

    fn likelihood_of_nothing(&self) -> f64 {
        self.values.iter().zip(&self.variances).map(|(&x, &v)| log_density(x, v)).sum()
    }

    /// Posterior means where few or many values may be effects, of any size, like those of `own` or
    /// not.
    pub(super) fn sparse_means(&self, own: &Self) -> Vec<f64> {
        let count = self.values.len();
        let mut prior = Vec::new();
        let (mut here, mut there) = (Vec::new(), Vec::new());
        let mut means = Vec::new();
        for share in SHARES {
            for g in geometric_grid((2.0 / (count as f64 * share)).min(LARGEST_EFFECT), 1e-2) {
                let (log, due) = self.likelihood(share, g);
                let mean = |i: usize| due[i] * g / (g + self.variances[i]) * self.values[i];
                prior.push((1.0 - NOTHING) * share / (SHARES.iter().sum::<f64>() * GRID as f64));
                here.push(log);
                there.push(own.likelihood(share, g).0);
                means.push((0..count).map(mean).collect());
            }
        }
        prior.push(NOTHING);
        here.push(self.likelihood_of_nothing());
        there.push(own.likelihood_of_nothing());
        means.push(vec![0.0; count]);

        let like = normalised(&there);
        let expected: f64 = prior.iter().zip(&like).map(|(prior, like)| prior * like).sum();
        let weighed = prior.iter().zip(&like).zip(normalised(&here));
        let weights: Vec<f64> = weighed
            .map(|((prior, like), here)| prior * here * (1.0 - ALIKE + ALIKE * like / expected))
            .collect();
        let total: f64 = weights.iter().sum();
        let mean =
            |i: usize| weights.iter().zip(&means).map(|(w, of): (_, &Vec<f64>)| w * of[i]).sum::<f64>();
        (0..count).map(|i| mean(i) / total).collect()
    }
}
