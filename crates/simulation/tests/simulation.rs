//! Simulations against the stages they consist of.
#![allow(clippy::unwrap_used)]

use std::num::NonZero;
use std::ops::ControlFlow;

use potluck_core::encoding::{EncodedRows, Values};
use potluck_core::mixing::MixingKey;
use potluck_core::noise::Sigma;
use potluck_release::preview::Preview;
use potluck_release::{Draft, Study};
use potluck_simulation::{Column, Error, Noise, Off, People, Rehearsal, Simulation, Subjects, Wanted};

const ROWS: usize = 5000;

/// A study of two parties: `more` stands in its [study] table, and `hi` bounds the first column.
fn study(more: &str, hi: f64) -> Study {
    let text = format!(
        "format = 1\n[study]\nname = \"t\"\nrows = {ROWS}\n{more}\n[privacy]\nepsilon = 2.0\ndelta = 1e-6\n[[party]]\nname = \"north\"\n[[party.column]]\nname = \"age\"\nlo = 0\nhi = {hi:?}\n[[party.column]]\nname = \"home\"\nlevels = [\"city\", \"suburb\", \"country\"]\n[[party]]\nname = \"south\"\n[[party.column]]\nname = \"pressure\"\nlo = 80\nhi = 200\n"
    );
    Draft::parse(&text).unwrap().seal(MixingKey::new([3; 32])).unwrap()
}

fn people() -> People {
    let age = (0..ROWS).map(|row| (row * 7919 % 100) as f64).collect();
    let home = (0..ROWS).map(|row| row as u32 * 31 % 3).collect();
    let pressure = (0..ROWS).map(|row| 80.0 + (row * 104_729 % 120) as f64).collect();
    People::new(ROWS, vec![vec![Column::Numbers(age), Column::Levels(home)], vec![Column::Numbers(pressure)]])
}

fn subjects(study: &Study) -> Subjects {
    Subjects::new(study.seal().key().clone(), ROWS)
}

/// Noise that tells whose it is, so that parties and stages cannot be exchanged unnoticed.
struct Mark(i64);

impl Noise for Mark {
    fn add(&mut self, sums: &mut [i64], sigma: Sigma, _: i64) {
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum += self.0 * (sigma.get() as i64 / 8) * (at as i64 % 3 - 1);
        }
    }
}

/// The noised sums of every stage of a party, on its own and in one batch.
fn alone(study: &Study, people: &People, party: usize) -> Vec<Vec<i64>> {
    let name = study.definition().parties()[party].name();
    let subjects = subjects(study);
    let values: Vec<Values<'_>> = people.parties()[party]
        .iter()
        .map(|column| match column {
            Column::Numbers(numbers) => Values::Numbers(numbers),
            Column::Levels(codes) => Values::Levels(codes),
        })
        .collect();
    let mut published: Vec<Vec<i64>> = Vec::new();
    while let Some(stage) = study.stage(name, &published).unwrap() {
        let mut sums = vec![0; stage.coordinates()];
        let mut encoded = EncodedRows::default();
        stage.encode(&values, ROWS, &mut encoded);
        stage.accumulate(subjects.digests(), 0, &encoded, &mut sums);
        let mut start = 0;
        for &(count, sigma) in &stage.noise {
            Mark(1 + party as i64).add(&mut sums[start..start + count], sigma, 0);
            start += count;
        }
        published.push(sums);
    }
    published
}

#[test]
fn all_parties_at_once_give_the_sums_of_each_alone() {
    let methods = [
        ("id = \"integer\"", 4),
        ("id = \"integer\"\nmethod = \"rmgm\"\nk = 70", 1),
        ("id = \"integer\"\nmethod = \"rmgm\"\nmixing = \"bernoulli\"\nk = 70", 1),
        ("id = \"row\"\nmethod = \"dgm\"", 1),
    ];
    let people = people();
    for (method, stages) in methods {
        let study = study(method, 100.0);
        let subjects = subjects(&study);
        let simulation = Simulation::new(&study, &people, &subjects);
        let mut seen = 0;
        let sums = simulation
            .sums(
                |party, _| Box::new(Mark(1 + party as i64)),
                |rows, width| {
                    assert_eq!(width, 5);
                    seen += rows.len() / width;
                },
            )
            .unwrap();
        assert_eq!(sums, [alone(&study, &people, 0), alone(&study, &people, 1)], "{method}");
        assert!(sums.iter().all(|party| party.len() == stages), "{method}");
        assert_eq!(seen, if method.contains("dgm") { 0 } else { ROWS }, "{method}");
        let dataset = simulation.join(&sums).unwrap();
        assert_eq!(dataset.columns().rows() as u64, study.seal().k(), "{method}");
        assert_eq!(dataset.columns().names().len(), 5, "{method}");
    }
}

#[test]
fn first_sums_are_kept_for_the_same_columns_only() {
    let kept = people();
    for hi in [100.0, 100.0, 50.0, 100.0] {
        let study = study("id = \"integer\"", hi);
        let (subjects, fresh) = (subjects(&study), people());
        let sums = |people| {
            Simulation::new(&study, people, &subjects).sums(|_, _| Box::new(Off), |_, _| ()).unwrap()
        };
        assert_eq!(sums(&kept), sums(&fresh), "{hi}");
    }
}

#[test]
fn a_preview_does_not_depend_on_threads_and_ends_when_it_is_told_to() {
    let study = study("id = \"integer\"", 100.0);
    let wanted = Wanted { releases: 3, rows: Some(2000), ..Wanted::default() };
    let rehearsal = Rehearsal::new(&study, wanted).unwrap();
    let preview =
        |threads| rehearsal.preview(NonZero::new(threads).unwrap(), &|_| ControlFlow::Continue(())).unwrap();
    let one = preview(1);
    assert_eq!(one, preview(3));
    assert_eq!((one.label.as_str(), one.rows, one.releases), ("pressure", 2000, 3));
    let names: Vec<&str> = one.coefficients.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["age", "home=suburb", "home=country"]);
    assert!((one.r_squared.non_private - 0.5).abs() < 0.1, "the features explain half of the label");
    assert!((one.loss.non_private - 0.5).abs() < 0.1 && one.loss.private > one.loss.non_private);
    let stop = |done| if done < 1 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let stopped = rehearsal.preview(NonZero::<usize>::MIN, &stop);
    assert!(matches!(stopped, Err(Error::Stopped)));
}

#[test]
fn parties_that_hold_different_people_are_tried_with_overlaps_and_missing_values() {
    let text = "format = 2\n[study]\nname = \"t\"\nrows = 4000\nid = \"integer\"\n[privacy]\nepsilon = 20.0\ndelta = 1e-5\n[[party]]\nname = \"north\"\n[[party.column]]\nname = \"x\"\nlo = -1\nhi = 1\n[[party.column]]\nname = \"z\"\nlevels = [\"a\", \"b\"]\n[[party]]\nname = \"south\"\n[[party.column]]\nname = \"y\"\nlo = -1\nhi = 1\n";
    let sealed = |text: &str| Draft::parse(text).unwrap().seal(MixingKey::new([3; 32])).unwrap();
    let study = sealed(text);
    let preview = |overlap: f64, missing: f64| {
        let wanted = Wanted { releases: 6, overlap: Some(overlap), missing, ..Wanted::default() };
        Rehearsal::new(&study, wanted)
            .unwrap()
            .preview(NonZero::new(2).unwrap(), &|_| ControlFlow::Continue(()))
            .unwrap()
    };
    let (all, half) = (preview(1.0, 0.0), preview(0.5, 0.2));
    let width = |preview: &Preview| preview.coefficients[0].half_width;
    assert!(width(&half) > 1.5 * width(&all), "{} and {}", width(&half), width(&all));
    // The same effect, and seen: half of the people would be half of the slope.
    let one = &half.coefficients[0];
    assert!((one.mean - one.non_private).abs() < 0.3 * one.non_private.abs(), "{one:?}");
    let refused =
        |wanted: Wanted, text: &str| Rehearsal::new(&sealed(text), wanted).err().unwrap().to_string();
    let wanted = || Wanted { overlap: Some(0.5), ..Wanted::default() };
    assert!(refused(wanted(), &text.replacen("format = 2", "format = 1", 1)).contains("format = 2"));
    assert!(refused(Wanted { overlap: Some(0.0), ..wanted() }, text).contains("--overlap"));
}
