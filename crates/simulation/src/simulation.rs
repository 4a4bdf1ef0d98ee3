//! The releases of all parties at once.

use potluck_core::calibrated::ExchangedRows;
use potluck_core::encoding::{EncodedRows, Values};
use potluck_core::mixing::{Mixing, add_bernoulli, add_buckets, add_sparse};
use potluck_core::noise::NOISED_SUM_LIMIT;
use potluck_core::stage::{Stage, Statistic};
use potluck_release::block::{Block, Pair};
use potluck_release::dataset::Completeness;
use potluck_release::study::{Method, Party};
use potluck_release::{Error, PublicDataset, Release, Study};

use crate::noise::Noise;
use crate::people::{People, Subjects};

/// People encoded at a time: their rows stay in cache.
const BATCH: usize = 4096;

/// Made-up people under a sealed study.
pub struct Simulation<'a> {
    study: &'a Study,
    people: &'a People,
    subjects: &'a Subjects,
}

impl<'a> Simulation<'a> {
    /// People, in the order of the study's parties and columns, and what stands for them under its
    /// mixing key.
    pub fn new(study: &'a Study, people: &'a People, subjects: &'a Subjects) -> Self {
        let definition = study.definition();
        let columns = definition.parties().iter().map(|party| party.columns().len());
        assert!(columns.eq(people.parties().iter().map(Vec::len)), "the columns are those of the study");
        for (at, party) in definition.parties().iter().enumerate() {
            let (rows, allowed) = (people.rows_of(at) as u64, definition.table_rows(party));
            let as_said = (allowed.fewest()..=allowed.most()).contains(&rows);
            assert!(as_said, "as many people as the study says");
        }
        assert_eq!(subjects.digests().len(), people.rows(), "one subject a person");
        assert!(study.seal().key() == subjects.key(), "subjects are mixed by the study's key");
        Self { study, people, subjects }
    }

    /// The public dataset of all releases, none of which is signed. The noise of each stage of a
    /// party, counted from 0, comes from what `noise` gives for its name, and so does that of its
    /// exchange with another party.
    pub fn dataset(&self, noise: impl FnMut(usize, &str) -> Box<dyn Noise>) -> Result<PublicDataset, Error> {
        self.dataset_seen(noise, |_, _| ())
    }

    /// The same; `look` sees what is mixed or exchanged, in batches: encoded rows of all parties
    /// side by side, and their width.
    pub fn dataset_seen(
        &self,
        mut noise: impl FnMut(usize, &str) -> Box<dyn Noise>,
        mut look: impl FnMut(&[i32], usize),
    ) -> Result<PublicDataset, Error> {
        let sums = self.sums(&mut noise, &mut look)?;
        let blocks = match self.study.definition().method() {
            Method::Exchange => self.blocks(&sums, &mut noise, &mut look)?,
            Method::Calibrated | Method::Rmgm | Method::Dgm => Vec::new(),
        };
        let parties = self.study.definition().parties().iter().zip(&sums);
        let release = parties
            .map(|(party, sums)| Release::new(self.study.study_of(party.name())?, party.name(), sums, None));
        let releases = release.collect::<Result<Vec<_>, _>>()?;
        PublicDataset::join_exchanged(self.study, &releases, &blocks, Completeness::All)
    }

    /// What every two parties would publish of their exchange, given the noised sums of all stages.
    fn blocks(
        &self,
        sums: &[Vec<Vec<i64>>],
        noise: &mut impl FnMut(usize, &str) -> Box<dyn Noise>,
        look: &mut impl FnMut(&[i32], usize),
    ) -> Result<Vec<Block>, Error> {
        let parties = self.study.definition().parties();
        let plan = |party: &Party| self.study.calibrated(party.name())?.ok_or(Error::Stages);
        let rows: Vec<ExchangedRows> = parties
            .iter()
            .zip(sums)
            .map(|(party, sums)| plan(party)?.exchanged_rows(sums).map_err(|_| Error::Stages))
            .collect::<Result<_, Error>>()?;
        let products = self.products(&rows, look);
        let width: usize = rows.iter().map(ExchangedRows::width).sum();
        let first = |party: usize| rows[..party].iter().map(ExchangedRows::width).sum::<usize>();
        let mut blocks = Vec::new();
        for one in 0..parties.len() {
            for other in one + 1..parties.len() {
                let (sender, recipient) = (parties[one].name(), parties[other].name());
                let pair = Pair::new(self.study, [(sender, &sums[one]), (recipient, &sums[other])])?;
                let columns = first(other)..first(other) + rows[other].width();
                let mut block: Vec<i64> = (first(one)..first(one) + rows[one].width())
                    .flat_map(|i| products[i * width..][columns.clone()].iter().copied())
                    .collect();
                for (party, partner) in [(one, recipient), (other, sender)] {
                    let mut noise = noise(party, &format!("exchange with {partner}"));
                    noise.add(&mut block, pair.sigma, NOISED_SUM_LIMIT);
                }
                let found = |value: i64| (value.unsigned_abs() <= pair.range).then_some(value);
                blocks.push(Block::new(sender, recipient, block.into_iter().map(found).collect()));
            }
        }
        Ok(blocks)
    }

    /// Products of all columns of all parties, as these encode their rows.
    fn products(&self, rows: &[ExchangedRows], look: &mut impl FnMut(&[i32], usize)) -> Vec<i64> {
        let width: usize = rows.iter().map(ExchangedRows::width).sum();
        let mut products = vec![0; width * width];
        let mut encoded = EncodedRows::default();
        let (mut side_by_side, mut own) = (vec![0; BATCH * width], Vec::new());
        self.batches(|first, end| {
            let together = &mut side_by_side[..(end - first) * width];
            let mut at = 0;
            for (party, rows) in rows.iter().enumerate() {
                own.clear();
                rows.encode(&self.people.batch(party, first..end), end - first, &mut encoded, &mut own);
                for (row, own) in together.chunks_exact_mut(width).zip(own.chunks_exact(rows.width())) {
                    for (place, &v) in row[at..].iter_mut().zip(own) {
                        *place = i32::from(v);
                    }
                }
                at += rows.width();
            }
            look(together, width);
            for row in together.chunks_exact(width) {
                for (i, &v) in row.iter().enumerate() {
                    for (product, &other) in products[i * width..][..width].iter_mut().zip(row) {
                        *product += i64::from(v * other);
                    }
                }
            }
        });
        products
    }

    /// The noised sums of every stage, party after party. Where everybody is everywhere, `look`
    /// sees what is mixed, in batches: encoded rows of all parties side by side, and their width.
    pub fn sums(
        &self,
        mut noise: impl FnMut(usize, &str) -> Box<dyn Noise>,
        mut look: impl FnMut(&[i32], usize),
    ) -> Result<Vec<Vec<Vec<i64>>>, Error> {
        let parties = self.study.definition().parties();
        let mut sums: Vec<Vec<Vec<i64>>> = vec![Vec::new(); parties.len()];
        loop {
            let mut stages = Vec::with_capacity(parties.len());
            for (party, earlier) in parties.iter().zip(&sums) {
                stages.extend(self.study.stage(party.name(), earlier)?);
            }
            if stages.is_empty() {
                return Ok(sums);
            }
            assert_eq!(stages.len(), parties.len(), "parties of a study have equally many stages");
            let exact = match stages[0].statistic {
                // Where every person keeps a row, there is nothing to share.
                Statistic::Mixed { mixing, k }
                    if mixing != Mixing::Identity && self.people.are_everywhere() =>
                {
                    self.mixed(&stages, mixing, k, &mut look)
                }
                _ if sums[0].is_empty() => self.people.first_sums(&stages, || self.each(&stages)),
                _ => self.each(&stages),
            };
            for (party, (stage, mut own)) in stages.iter().zip(exact).enumerate() {
                let mut noise = noise(party, stage.name);
                let mut rest = own.as_mut_slice();
                for &(count, sigma) in &stage.noise {
                    let (run, others) = rest.split_at_mut(count);
                    noise.add(run, sigma, stage.sum_limit());
                    rest = others;
                }
                sums[party].push(own);
            }
        }
    }

    /// Calls `add` with the rows of each batch, and the position of the first and of the one behind
    /// the last.
    fn batches(&self, mut add: impl FnMut(usize, usize)) {
        for first in (0..self.people.rows()).step_by(BATCH) {
            add(first, self.people.rows().min(first + BATCH));
        }
    }

    /// The exact sums of a stage, party by party.
    fn each(&self, stages: &[Stage]) -> Vec<Vec<i64>> {
        let mut encoded = EncodedRows::default();
        let of_party = |(party, stage): (usize, &Stage)| {
            let mut sums = vec![0; stage.coordinates()];
            if let Some(held) = self.people.held(party) {
                for some in held.chunks(BATCH) {
                    let columns = self.people.of(party, some);
                    let values: Vec<Values<'_>> =
                        columns.iter().map(|own| own.batch(0..some.len())).collect();
                    stage.encode(&values, some.len(), &mut encoded);
                    let subjects: Vec<_> = some.iter().map(|&at| self.subjects.digests()[at]).collect();
                    stage.accumulate(&subjects, 0, &encoded, &mut sums);
                }
                return sums;
            }
            self.batches(|first, end| {
                stage.encode(&self.people.batch(party, first..end), end - first, &mut encoded);
                let subjects = &self.subjects.digests()[first..end];
                stage.accumulate(subjects, first as u64, &encoded, &mut sums);
            });
            sums
        };
        stages.iter().enumerate().map(of_party).collect()
    }

    /// The mixed rows of every party, added up side by side: people fall into the same rows
    /// everywhere.
    fn mixed(
        &self,
        stages: &[Stage],
        mixing: Mixing,
        k: u64,
        look: &mut impl FnMut(&[i32], usize),
    ) -> Vec<Vec<i64>> {
        let add = match mixing {
            Mixing::Bernoulli => add_bernoulli,
            Mixing::Buckets => add_buckets,
            Mixing::Sparse | Mixing::Identity => add_sparse,
        };
        let width: usize = stages.iter().map(|stage| stage.encoder.width()).sum();
        let mut sums = vec![0; k as usize * width];
        let mut encoded = EncodedRows::default();
        let mut rows = vec![0; BATCH * width];
        self.batches(|first, end| {
            let rows = &mut rows[..(end - first) * width];
            let mut at = 0;
            for (party, stage) in stages.iter().enumerate() {
                stage.encode(&self.people.batch(party, first..end), end - first, &mut encoded);
                for column in 0..encoded.width() {
                    for (row, &q) in rows.chunks_exact_mut(width).zip(encoded.column(column)) {
                        row[at] = q;
                    }
                    at += 1;
                }
            }
            look(rows, width);
            add(&self.subjects.digests()[first..end], rows, width, k, &mut sums);
        });
        let mut at = 0;
        let of_party = |stage: &Stage| {
            let own = at..at + stage.encoder.width();
            at = own.end;
            sums.chunks_exact(width).flat_map(|row| &row[own.clone()]).copied().collect()
        };
        stages.iter().map(of_party).collect()
    }
}
