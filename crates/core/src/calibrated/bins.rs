//! The cells that the shapes of numeric columns are counted in: constants of the format.

use crate::encoding::{Bins, Bounds};

/// Steps of the even grid on [0, 1].
const GRID: i32 = 32;
/// Cells about an anchor end at this distance from it.
const FINEST: f64 = 1.0 / 65_536.0;
/// Edges are at least this far apart.
const SEPARATE: f64 = FINEST / 2.0;
/// No edge is nearer to 0 than this: engines may take smaller quotients for 0.
const TINY: f64 = 1.0 / (1_u64 << 30) as f64;

/// The cells of a numeric column with these bounds, and a value that it is declared to be near.
pub fn bins(bounds: Bounds, typical: Option<f64>) -> Bins {
    Bins::new(edges(bounds, typical), bounds)
}

/// Edges in units of the public range: an even grid, refined by halves towards both ends, the
/// middle, the number zero and the typical value.
///
/// Doubles in exactly this order, so that every party and every verifier gets the same edges.
fn edges(bounds: Bounds, typical: Option<f64>) -> Vec<f64> {
    let mut anchors = vec![-1.0, 0.0, 1.0];
    for value in std::iter::once(0.0).chain(typical) {
        if bounds.lo() <= value && value <= bounds.hi() {
            let anchor = bounds.unit_of(value);
            if anchors.iter().all(|other: &f64| (anchor - other).abs() >= FINEST) {
                anchors.push(anchor);
            }
        }
    }
    let mut found: Vec<f64> = (1 - GRID..GRID).map(|i| f64::from(i) / f64::from(GRID)).collect();
    for anchor in anchors {
        let mut step = 1.0 / f64::from(GRID);
        while step > FINEST {
            step /= 2.0;
            found.extend([anchor - step, anchor + step]);
        }
    }
    found.sort_by(f64::total_cmp);
    let mut kept: Vec<f64> = Vec::with_capacity(found.len());
    for edge in found {
        let apart = kept.last().is_none_or(|last| edge - last >= SEPARATE);
        if -1.0 < edge && edge < 1.0 && edge.abs() >= TINY && apart {
            kept.push(edge);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_rise_and_none_is_so_small_that_an_engine_could_lose_it() {
        for (lo, hi) in
            [(-1.0, 1.0), (0.0, 4.0), (0.0, 1e300), (-1e-7, 1.0), (18.0, 100.0), (1.0, 1.0 + 1e-15)]
        {
            let bounds = Bounds::new(lo, hi).unwrap();
            for typical in [None, Some(lo), Some(0.3 * lo + 0.7 * hi), Some(hi)] {
                let edges = edges(bounds, typical);
                assert!(edges.windows(2).all(|pair| pair[1] - pair[0] >= SEPARATE));
                assert!(edges.iter().all(|edge| edge.abs() < 1.0 && edge.abs() >= TINY));
                assert!((90..=220).contains(&edges.len()), "{}", edges.len());
            }
        }
    }

    #[test]
    fn every_value_is_in_one_cell_and_zeros_are_in_their_own() {
        let bounds = Bounds::new(-1.0, 3.0).unwrap();
        let bins = bins(bounds, None);
        let intervals = bins.intervals();
        assert_eq!((intervals.len(), bins.zeros().map(|at| intervals[at])), (bins.count(), Some([-0.5; 2])));
        for value in [-2.0, -1.0, -1e-9, 1e-9, 0.3, 1.0, 2.9, 3.0, 7.0] {
            let (u, [low, high]) = (bounds.unit_of(value), intervals[bins.place(value) as usize]);
            assert!(low <= u && (u < high || high >= 1.0), "{value}");
        }
        assert_eq!([0.0, -0.0].map(|zero| bins.place(zero) as usize), [bins.zeros().unwrap(); 2]);
    }
}
