//! A release from start to end: reserve, validate, draw noise, store, write, publish.
//!
//! Whatever happens in between, running the same release again takes it up where it stopped: noise that was
//! stored is used again, a charge is made once, and a finished file comes out with the same bytes.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use potluck_core::stage::Stage;
use potluck_release::files::{Audience, Existing, PendingFile, check_writable};
use potluck_release::signing::SigningKey;
use potluck_release::{Release, Study};
use rand_core::CryptoRng;

pub use crate::pass::ExtraColumns;

use crate::ledger::{Purpose, Session, State};
use crate::pass::Input;
use crate::{Error, Ledger, Table, entropy};

/// Everything a release needs to know.
pub struct Job<'a> {
    /// The sealed study.
    pub study: &'a Study,
    /// Which of its parties we are.
    pub party: &'a str,
    /// Our raw table.
    pub table: &'a Table,
    /// The column that holds the ids.
    pub id_column: &'a str,
    /// Whether the table may have columns that the study does not name.
    pub extra_columns: ExtraColumns,
    /// Whose budget is charged.
    pub budget: &'a str,
    /// Where the release goes.
    pub out: &'a Path,
    /// What to do when there is a file already.
    pub existing: Existing,
    /// The key to sign with.
    pub signing_key: Option<&'a SigningKey>,
    /// How many threads may work.
    pub threads: NonZero<usize>,
    /// Where temporary files go.
    pub tmp: PathBuf,
}

/// The steps of a release. What has been done when the step is reported survives a crash. Some steps are taken for each
/// stage, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing has been done yet.
    Started,
    /// The charge is reserved.
    Reserved,
    /// The whole table was valid, and the stage's sums are known; none of its noise has been drawn.
    Summed(u32),
    /// The charge stands.
    Spent(u32),
    /// The stage's noise was drawn and is in memory only.
    Noised(u32),
    /// The stage's noised integers are stored.
    Stored(u32),
    /// The file is complete under its temporary name.
    Written,
    /// The file has its name.
    Named,
    /// The ledger knows the file.
    Published,
}

impl Step {
    /// Every step of a release with so many stages, in order.
    pub fn all(stages: u32) -> Vec<Self> {
        let of_stage =
            |stage| [Self::Summed(stage), Self::Spent(stage), Self::Noised(stage), Self::Stored(stage)];
        let mut steps = vec![Self::Started, Self::Reserved];
        steps.extend((0..stages).flat_map(of_stage));
        steps.extend([Self::Written, Self::Named, Self::Published]);
        steps
    }
}

/// Whoever wants to know how a release is going.
pub trait Observer: Sync {
    /// A pass over the table begins, for this stage.
    fn stage(&self, _name: &str, _position: u32) {}

    /// A step is done.
    fn step(&self, _step: Step) {}

    /// So many rows of the current pass have been read.
    fn rows(&self, _done: u64) {}
}

/// Nobody wants to know.
impl Observer for () {}

/// What came of a release.
pub struct Published {
    /// The release.
    pub release: Release,
    /// Whether its noise had been drawn before: then the table was not read, and this is the same release again.
    pub repeated: bool,
}

/// Checks that the table has the columns that the study expects, without reading a row.
pub fn check_columns(job: &Job<'_>) -> Result<(), Error> {
    input(job).map(|_| ())
}

/// Releases a party's columns, with noise from the operating system's randomness.
pub fn release(job: &Job<'_>, ledger: &mut Ledger, observer: &dyn Observer) -> Result<Published, Error> {
    release_with(job, ledger, observer, entropy::secure_rng)
}

/// Releases a party's columns, with noise from the generators that `seed` makes, one for each stage when its
/// sums are known; for tests, which need to repeat it.
pub fn release_with<R: CryptoRng>(
    job: &Job<'_>,
    ledger: &mut Ledger,
    observer: &dyn Observer,
    seed: impl Fn() -> Result<R, Error>,
) -> Result<Published, Error> {
    let definition = job.study.definition();
    definition.party(job.party)?;
    observer.step(Step::Started);
    let known = ledger.session(job.budget, job.study.id(), job.party)?;
    if known.is_none_or(|session| session.state == State::Reserved) {
        check_writable(job.out, job.existing)?;
    }
    let purpose = Purpose {
        study_id: job.study.id(),
        study_name: definition.name(),
        party: job.party,
        mu: job.study.mu(),
    };
    let session = ledger.reserve(job.budget, purpose)?;
    observer.step(Step::Reserved);

    let mut input = None;
    let mut noised = Vec::new();
    let mut repeated = true;
    while let Some(stage) = job.study.stage(job.party, &noised)? {
        let position = noised.len() as u32;
        let stored = ledger.stored_stage(&session, position)?;
        noised.push(if let Some(noised) = stored {
            noised
        } else {
            repeated = false;
            draw(job, ledger, &session, &stage, position, &mut input, observer, &seed)?
        });
    }
    let release = Release::new(job.study, job.party, &noised, job.signing_key)?;
    publish(job, ledger, &session, &release, observer)?;
    Ok(Published { release, repeated })
}

/// Computes a stage's sums, adds noise and stores the result for good.
#[expect(clippy::too_many_arguments, reason = "they are independent of each other")]
fn draw<'a, R: CryptoRng>(
    job: &Job<'a>,
    ledger: &mut Ledger,
    session: &Session,
    stage: &Stage,
    position: u32,
    input: &mut Option<Input<'a>>,
    observer: &dyn Observer,
    seed: &impl Fn() -> Result<R, Error>,
) -> Result<Vec<i64>, Error> {
    observer.stage(stage.name, position);
    let sums = known_input(job, input).and_then(|input| input.sums(stage, &|done| observer.rows(done)));
    let sums = match sums {
        Ok(sums) => sums,
        Err(error) => {
            if session.state == State::Reserved && position == 0 {
                ledger.give_back(session)?;
                return Err(error);
            }
            return Err(Error::Interrupted { stage: position + 1, source: Box::new(error) });
        }
    };
    observer.step(Step::Summed(position));
    let mut rng = seed()?;
    ledger.spend(session)?;
    observer.step(Step::Spent(position));
    let noised = sums.noised(stage, &mut rng);
    observer.step(Step::Noised(position));
    ledger.store_stage(session, position, &noised)?;
    observer.step(Step::Stored(position));
    Ok(noised)
}

/// The input, made when it is first needed.
fn known_input<'a, 'i>(job: &Job<'a>, known: &'i mut Option<Input<'a>>) -> Result<&'i Input<'a>, Error> {
    match known {
        Some(input) => Ok(input),
        none => Ok(none.insert(input(job)?)),
    }
}

fn input<'a>(job: &Job<'a>) -> Result<Input<'a>, Error> {
    Input::new(job.study, job.party, job.table, job.id_column, job.extra_columns, job.threads, &job.tmp)
}

fn publish(
    job: &Job<'_>,
    ledger: &mut Ledger,
    session: &Session,
    release: &Release,
    observer: &dyn Observer,
) -> Result<(), Error> {
    let bytes = release.to_bytes();
    if !std::fs::read(job.out).is_ok_and(|present| present == bytes) {
        let pending = PendingFile::write(job.out, &bytes, job.existing, Audience::Public)?;
        observer.step(Step::Written);
        pending.publish()?;
    }
    observer.step(Step::Named);
    ledger.publish(session, release.content_hash())?;
    observer.step(Step::Published);
    Ok(())
}
