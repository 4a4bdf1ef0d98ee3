//! Stages with presence groups, held against plain loops over one subject at a time.

use super::*;
use crate::encoding::{Ball, Bounds, Encoder, LevelCount, MISSING_LEVEL, Presence, Scaling};
use crate::mixing::MixingKey;
use proptest::prelude::*;

const LEVELS: [usize; 2] = [2, 3];

fn bounds(column: usize) -> Bounds {
    let (low, high) = [(-1.0, 1.0), (0.5, 4.0)][column];
    Bounds::new(low, high).unwrap()
}

/// Two numeric columns, one with two levels, one with three.
fn encoders() -> Vec<Encoder> {
    let levels = LEVELS.map(|count| Encoder::Categorical(LevelCount::new(count).unwrap()));
    vec![Encoder::Numeric(bounds(0)), levels[0], Encoder::Numeric(bounds(1)), levels[1]]
}

const WIDTH: usize = 6;

#[derive(Clone, Debug)]
struct Person {
    numbers: [f64; 2],
    levels: [u32; 2],
}

fn person() -> impl Strategy<Value = Person> {
    let number = prop_oneof![
        4 => -2.0f64..5.0,
        2 => prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, 0.5, 4.0, f64::MAX, 1e-300]),
        2 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
    ];
    let level = |count: u32| prop_oneof![3 => 0..count, 1 => Just(MISSING_LEVEL)];
    let levels = (level(2), level(3)).prop_map(|(two, three)| [two, three]);
    (number.clone(), number, levels).prop_map(|(a, b, levels)| Person { numbers: [a, b], levels })
}

impl Person {
    fn has(&self, column: usize) -> bool {
        match column {
            0 => self.numbers[0].is_finite(),
            1 => self.levels[0] < 2,
            2 => self.numbers[1].is_finite(),
            _ => self.levels[1] < 3,
        }
    }

    /// Which presence groups are there.
    fn groups(&self, presence: &Presence) -> Vec<i64> {
        let mut groups = vec![0; presence.count()];
        for column in 0..4 {
            let there = !presence.may_miss(column) || self.has(column);
            groups[presence.group(column)] |= i64::from(there);
        }
        groups
    }

    /// The row before any ball.
    fn row(&self, scalings: &[Scaling]) -> Vec<i64> {
        let number = |at: usize, scaling: Scaling| {
            let x = self.numbers[at];
            let (middle, half) = (bounds(at).midpoint(), bounds(at).half_width());
            let u = (x.max(bounds(at).lo()).min(bounds(at).hi()) - middle) / half;
            if x.is_finite() { i64::from(scaling.encode(u)) } else { 0 }
        };
        let level = |at: usize, code: u32, scaling: Scaling| match self.levels[at] {
            MISSING_LEVEL => 0,
            found => i64::from(scaling.encode(if found == code { 1.0 } else { 0.0 })),
        };
        vec![
            number(0, scalings[0]),
            level(0, 1, scalings[1]),
            number(1, scalings[2]),
            level(1, 0, scalings[3]),
            level(1, 1, scalings[4]),
            level(1, 2, scalings[5]),
        ]
    }
}

/// The sums of every vector unit, over two batches.
fn sums(stage: &Stage, people: &[Person], subjects: &[SubjectDigest]) -> Vec<Vec<i64>> {
    let of = |arch| {
        let mut sums = vec![3; stage.coordinates()];
        let mut encoded = EncodedRows::default();
        let (early, late) = people.split_at(people.len() / 3);
        for (first, batch) in [(0, early), (early.len(), late)] {
            let number = |at: usize| batch.iter().map(|person| person.numbers[at]).collect::<Vec<_>>();
            let level = |at: usize| batch.iter().map(|person| person.levels[at]).collect::<Vec<_>>();
            let (numbers, levels) = ([number(0), number(1)], [level(0), level(1)]);
            let values = [
                Values::Numbers(&numbers[0]),
                Values::Levels(&levels[0]),
                Values::Numbers(&numbers[1]),
                Values::Levels(&levels[1]),
            ];
            stage.encoder.encode_on(arch, &values, batch.len(), &mut encoded);
            let subjects = &subjects[first..][..batch.len()];
            stage.accumulate_on(arch, subjects, first as u64, &encoded, &mut sums);
        }
        sums.into_iter().map(|sum| sum - 3).collect()
    };
    crate::vector::units().into_iter().map(of).collect()
}

fn stage(encoder: RowEncoder, statistic: Statistic) -> Stage {
    Stage { name: "test", share: Share::WHOLE, encoder, statistic, noise: Vec::new() }
}

fn scalings() -> Vec<Scaling> {
    let number = Scaling { low: -0.75, high: 0.9, centre: 0.1, scale: 0.3, limit: 64 * Q };
    let level = Scaling { low: 0.0, high: 1.0, centre: 0.3, scale: 0.5, limit: 64 * Q };
    vec![number, level, number, level, level, level]
}

fn project(row: &mut [i64], c: u64) {
    let norm: i64 = row.iter().map(|q| q * q).sum();
    if norm as u64 > c {
        let factor = (c as f64 / norm as f64).sqrt();
        for q in row {
            *q = (*q as f64 * factor).trunc() as i64;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn stages_with_presence_are_those_of_a_plain_loop(
        people in prop_oneof![
            4 => prop::collection::vec(person(), 0..40),
            1 => prop::collection::vec(person(), 1100..1200),
        ],
        may_miss in prop::collection::vec(any::<bool>(), 4),
        c in 1u64 << 26..1 << 32,
        k in 1u64..30,
    ) {
        let presence = Presence::new(&may_miss);
        let groups = presence.count();
        let group_of = [0, 1, 2, 3, 3, 3].map(|column| presence.group(column));
        let encoder = || RowEncoder::new(&encoders(), &scalings()).with_presence(presence.clone());
        let key = MixingKey::new([9; 32]);
        let subjects: Vec<SubjectDigest> =
            (0..people.len()).map(|id| key.subject(id.to_string().as_bytes())).collect();

        // The first stage and the second: with cells and without.
        let bins: Vec<Bins> =
            (0..2).map(|at| Bins::new(vec![-0.5, -0.1, 0.0, 0.001, 0.7], bounds(at))).collect();
        let statistic = || Statistic::Standardise { squares: vec![0, 2] };
        let shapes = stage(encoder().with_bins(bins.clone()), statistic());
        let round = stage(encoder(), statistic());
        let at_groups = WIDTH + 2;
        let at_cells = [at_groups + groups, at_groups + groups + bins[0].count()];
        let mut expected = vec![0; at_cells[1] + bins[1].count()];
        for person in &people {
            let row = person.row(&scalings());
            row.iter().enumerate().for_each(|(j, q)| expected[j] += q);
            [0, 2].iter().enumerate().for_each(|(at, &j)| expected[WIDTH + at] += row[j] * row[j]);
            person.groups(&presence).iter().enumerate().for_each(|(g, m)| expected[at_groups + g] += m);
            for at in 0..2 {
                let x = person.numbers[at];
                if x.is_finite() {
                    expected[at_cells[at] + bins[at].place(x) as usize] += 1;
                } else if !presence.may_miss(2 * at) {
                    expected[at_cells[at] + bins[at].place(bounds(at).midpoint()) as usize] += 1;
                }
            }
        }
        prop_assert_eq!(shapes.coordinates(), expected.len());
        prop_assert!(sums(&shapes, &people, &subjects).iter().all(|sums| *sums == expected));
        expected.truncate(at_cells[0]);
        prop_assert!(sums(&round, &people, &subjects).iter().all(|sums| *sums == expected));

        // Moments.
        let ball = Ball::new(c).unwrap();
        let moments = stage(encoder().within(ball), Statistic::Moments);
        let mut expected = vec![0; moments.coordinates()];
        for person in &people {
            let (mut row, there) = (person.row(&scalings()), person.groups(&presence));
            project(&mut row, c);
            let sums = there.iter().flat_map(|m| row.iter().map(move |q| m * q));
            let squares = row.iter().map(|q| q * q);
            let products = pairs(WIDTH).map(|(i, j)| row[i] * row[j]);
            let both = pairs(groups).map(|(g, h)| there[g] * there[h]);
            let all = sums.chain(squares).chain(products).chain(there.iter().copied()).chain(both);
            expected.iter_mut().zip(all).for_each(|(sum, term)| *sum += term);
        }
        prop_assert!(sums(&moments, &people, &subjects).iter().all(|sums| *sums == expected));

        // Buckets.
        let centre = vec![900, -700, 12_000, -5, 30_000, 1];
        let weight = c.isqrt() as i32;
        let encoder = encoder().within(ball).about(centre.clone()).weighing(weight);
        let mixed = stage(encoder, Statistic::Mixed { mixing: Mixing::Buckets, k });
        let mut expected = vec![0; k as usize * (WIDTH + 1)];
        for (person, subject) in people.iter().zip(&subjects) {
            let (mut row, there) = (person.row(&scalings()), person.groups(&presence));
            project(&mut row, c);
            for j in 0..WIDTH {
                row[j] -= there[group_of[j]] * i64::from(centre[j]);
            }
            project(&mut row, c);
            row.push(i64::from(weight) * there.iter().max().unwrap());
            let start = subject.bucket(k) as usize * (WIDTH + 1);
            row.iter().enumerate().for_each(|(j, q)| expected[start + j] += q);
        }
        prop_assert_eq!(mixed.encoder.width(), WIDTH + 1);
        prop_assert_eq!(mixed.scale_of(WIDTH).to_bits(), f64::from(weight).to_bits());
        prop_assert!(sums(&mixed, &people, &subjects).iter().all(|sums| *sums == expected));
    }
}

#[test]
fn every_sum_has_a_label_of_its_own() {
    let names: Vec<String> = ["a", "b=1", "c", "d=0", "d=1", "d=2"].map(str::to_owned).to_vec();
    let presence = Presence::new(&[false, true, true, false]);
    let encoder = RowEncoder::new(&encoders(), &scalings()).with_presence(presence);
    let bins: Vec<Bins> = (0..2).map(|at| Bins::new(vec![0.5], bounds(at))).collect();
    let round = || Statistic::Standardise { squares: vec![0, 2] };
    let stages = [
        stage(encoder.clone().with_bins(bins), round()),
        stage(encoder.clone(), round()),
        stage(encoder, Statistic::Moments),
    ];
    for stage in stages {
        let labels: std::collections::HashSet<_> =
            (0..stage.coordinates()).map(|at| stage.label(at, &names)).collect();
        assert_eq!(labels.len(), stage.coordinates(), "{:?}", stage.statistic);
        let last = stage.label(stage.coordinates() - 1, &names);
        let expected = match stage.statistic {
            Statistic::Moments => ("present with b=1".to_owned(), "c"),
            _ if stage.encoder.bins().is_empty() => ("present".to_owned(), "c"),
            _ => ("cell 1".to_owned(), "c"),
        };
        assert_eq!(last, expected);
    }
}
