//! What all linearisations say together: for each coefficient a mixture of Student's t
//! distributions.

use crate::learn::student;

/// One component a linearisation.
pub(super) struct Mixture {
    degrees: f64,
    components: Vec<Component>,
}

struct Component {
    weight: f64,
    centres: Vec<f64>,
    spreads: Vec<f64>,
}

impl Mixture {
    pub(super) fn new(degrees: usize) -> Self {
        Self { degrees: degrees as f64, components: Vec::new() }
    }

    pub(super) fn add(&mut self, weight: f64, centres: Vec<f64>, variances: Vec<f64>) {
        let spreads = variances.into_iter().map(f64::sqrt).collect();
        self.components.push(Component { weight, centres, spreads });
    }

    fn mean(&self, of: impl Fn(&Component) -> f64) -> f64 {
        let total: f64 = self.components.iter().map(|component| component.weight).sum();
        self.components.iter().map(|component| component.weight * of(component)).sum::<f64>() / total
    }

    /// The variance of a coefficient, within and between components.
    pub(super) fn variance(&self, at: usize) -> f64 {
        let centre = self.mean(|component| component.centres[at]);
        self.mean(|component| component.spreads[at].powi(2) + (component.centres[at] - centre).powi(2))
    }

    /// The value that a coefficient is below with this probability.
    pub(super) fn quantile(&self, at: usize, probability: f64) -> f64 {
        let reach = student::quantile(probability, self.degrees);
        let ends =
            self.components.iter().map(|component| component.centres[at] + reach * component.spreads[at]);
        let (mut low, mut high) =
            ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| (low.min(end), high.max(end)));
        let excess = |x: f64| {
            let below = |component: &Component| {
                student::distribution((x - component.centres[at]) / component.spreads[at], self.degrees)
            };
            self.mean(below) - probability
        };
        // The quantile lies between those of the components: regula falsi, with the end that stays
        // halved (Illinois).
        let (mut at_low, mut at_high) = (excess(low), excess(high));
        for _ in 0..100 {
            if at_low >= 0.0 {
                return low;
            }
            if at_high <= 0.0 {
                return high;
            }
            let x = (low * at_high - high * at_low) / (at_high - at_low);
            if high - low <= 1e-12 * (high.abs() + low.abs()) || !(low < x && x < high) {
                return f64::midpoint(low, high);
            }
            let value = excess(x);
            if value.abs() < 1e-13 {
                return x;
            }
            if value < 0.0 {
                (low, at_low, at_high) = (x, value, at_high / 2.0);
            } else {
                (high, at_high, at_low) = (x, value, at_low / 2.0);
            }
        }
        f64::midpoint(low, high)
    }
}
