//! The bins that the shapes of numeric columns are counted in: constants of the format.

use crate::encoding::{Bins, Bounds};

/// Even steps over the public range.
const STEPS: i32 = 16;
/// Powers of a half down to which edges come nearer to the middle and to both ends.
const FINEST: i32 = 16;

/// The bins of a numeric column with these bounds.
pub fn bins(bounds: Bounds) -> Bins {
    Bins::new(edges(), bounds)
}

/// Edges in units of the public range: even steps, refined by halves towards −1, 0 and 1. All of
/// them are dyadic, so exact, and none is closer to 0 than 2⁻³⁰.
fn edges() -> Vec<f64> {
    let step = 1.0 / f64::from(STEPS);
    let even = (1..STEPS).map(|i| f64::from(i) * step);
    let finer = (1..=FINEST).map(|halving| 0.5_f64.powi(halving)).filter(|&part| part < step);
    let near = finer.flat_map(|part| [part, 1.0 - part]);
    let mut edges: Vec<f64> = even.chain(near).flat_map(|edge| [-edge, edge]).collect();
    edges.sort_by(f64::total_cmp);
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_distinct_and_none_is_so_small_that_an_engine_could_lose_it() {
        let edges = edges();
        assert!(edges.is_sorted_by(|a, b| a < b));
        assert!(edges.iter().all(|edge| edge.abs() < 1.0 && edge.abs() >= 0.5_f64.powi(30)));
    }
}
