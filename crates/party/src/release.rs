//! A release from start to end: reserve, validate, draw noise, store, write, publish.
//!
//! Whatever happens in between, running the same release again takes it up where it stopped: noise that was
//! stored is used again, a charge is made once, and a finished file comes out with the same bytes.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use potluck_core::stage::{Stage, Statistic};
use potluck_release::Study;
use potluck_release::files::{Existing, check_writable};
use potluck_release::release::{Outline, Written};
use potluck_release::signing::SigningKey;
use rand_core::CryptoRng;

pub use crate::pass::ExtraColumns;

use crate::ledger::{CHUNK, Purpose, Session, State, StoredStage};
use crate::pass::Input;
use crate::stage::{RowNoise, Sums, keeps_rows};
use crate::{Error, Ledger, Table, entropy, pass};

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
    /// The whole table was valid, and the stage's sums are known, or its rows can be read; none of its noise has been
    /// drawn.
    Summed(u32),
    /// The charge stands.
    Spent(u32),
    /// The stage's noise was drawn and is not stored for good yet.
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

    /// Whether to stop. Asked often while the table is read: before the first noise nothing is charged then, and later
    /// the release can be taken up like one that crashed.
    fn stop(&self) -> bool {
        false
    }
}

/// Tells an observer how far a pass is, and stops it if the observer wants that.
pub(crate) fn progress(observer: &dyn Observer) -> impl Fn(u64) -> Result<(), Error> + Sync {
    move |done| {
        observer.rows(done);
        if observer.stop() { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// Nobody wants to know.
impl Observer for () {}

/// What came of a release.
pub struct Published {
    /// What is known of the file.
    pub release: Written,
    /// Whether its noise had been drawn before: then the table was not read, and this is the same release again.
    pub repeated: bool,
}

/// Checks that the table has the columns that the study expects, without reading a row.
pub fn check_columns(job: &Job<'_>) -> Result<(), Error> {
    input(job).map(|_| ())
}

/// Checks that a table with columns of these names has those that the study expects, before the table itself is at hand.
pub fn check_names(
    study: &Study,
    party: &str,
    table: &str,
    id_column: &str,
    extra: ExtraColumns,
    found: &[String],
) -> Result<(), Error> {
    pass::check_names(study, study.own_party(party)?, table, id_column, extra, found).map(|_| ())
}

/// Reads the whole table and checks everything that a release would check of it. Nothing is charged, and nothing is
/// published.
#[expect(clippy::too_many_arguments, reason = "they are independent choices of the caller")]
pub fn validate(
    study: &Study,
    party: &str,
    table: &Table,
    id_column: &str,
    extra: ExtraColumns,
    threads: NonZero<usize>,
    tmp: &Path,
    observer: &dyn Observer,
) -> Result<(), Error> {
    Input::new(study, party, table, id_column, extra, threads, tmp)?.validate(&progress(observer))
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
    job.study.own_party(job.party)?;
    observer.step(Step::Started);
    let known = ledger.session(job.budget, job.study.id(), job.party)?;
    if known.is_none_or(|session| session.state == State::Reserved) {
        check_writable(job.out, job.existing)?;
    }
    let session = reserve(job.study, job.party, job.budget, ledger)?;
    observer.step(Step::Reserved);

    let mut input = None;
    let mut repeated = true;
    loop {
        let standing = Standing::of(job.study, job.party, ledger, Some(&session))?;
        if standing.complete {
            let target = Target { out: job.out, existing: job.existing, signing_key: job.signing_key };
            let release = publish(job.study, job.party, &target, ledger, &session, &standing, observer)?;
            return Ok(Published { release, repeated });
        }
        repeated = false;
        observer.stage(standing.stage.name, standing.position());
        let input = &mut input;
        draw(&standing, ledger, &session, observer, &seed, || {
            read_table(job, input, &standing.stage, observer)
        })?;
    }
}

/// Writes a release whose stages are all stored; it comes out the same again, and its table is not needed. Nothing if a
/// stage is missing.
#[expect(clippy::too_many_arguments, reason = "they are independent choices of the caller")]
pub fn publish_stored(
    study: &Study,
    party: &str,
    budget: &str,
    ledger: &mut Ledger,
    out: &Path,
    existing: Existing,
    signing_key: Option<&SigningKey>,
    observer: &dyn Observer,
) -> Result<Option<Published>, Error> {
    let Some(session) = ledger.session(budget, study.id(), party)? else { return Ok(None) };
    let standing = Standing::of(study, party, ledger, Some(&session))?;
    if !standing.complete {
        return Ok(None);
    }
    let target = Target { out, existing, signing_key };
    let release = publish(study, party, &target, ledger, &session, &standing, observer)?;
    Ok(Some(Published { release, repeated: true }))
}

/// Sets the charge of a release aside, or takes up the release that was begun.
pub(crate) fn reserve(
    study: &Study,
    party: &str,
    budget: &str,
    ledger: &mut Ledger,
) -> Result<Session, Error> {
    let definition = study.definition();
    let purpose = Purpose {
        study_id: study.id(),
        study_name: definition.name(),
        party: study.own_party(party)?.name(),
        mu: study.mu(),
    };
    ledger.reserve(budget, purpose)
}

/// How far a release has come: what is stored, and the stage that is next.
pub(crate) struct Standing {
    /// The noised sums of the stages before this one.
    pub(crate) earlier: Vec<Vec<i64>>,
    /// The first stage that is not stored; or the last one of all, if it is.
    pub(crate) stage: Stage,
    /// Whether every stage is stored.
    pub(crate) complete: bool,
}

impl Standing {
    /// Reads what the ledger has stored for the session of a release; nothing if it has none.
    pub(crate) fn of(
        study: &Study,
        party: &str,
        ledger: &Ledger,
        session: Option<&Session>,
    ) -> Result<Self, Error> {
        let mut earlier = Vec::new();
        loop {
            let stage = study.stage(party, &earlier)?.ok_or(potluck_release::Error::Stages)?;
            let stored = match session {
                Some(session) => ledger.stored_stage(session, earlier.len() as u32, stage.coordinates())?,
                None => None,
            };
            let last = matches!(stage.statistic, Statistic::Mixed { .. });
            match stored {
                Some(stored) if !last => earlier.push(stored.all()?),
                stored => return Ok(Self { earlier, stage, complete: stored.is_some() }),
            }
        }
    }

    /// The stage's position, from 0.
    pub(crate) fn position(&self) -> u32 {
        self.earlier.len() as u32
    }
}

/// What the noise of a stage is added to.
pub(crate) enum Read<'a> {
    /// Exact sums.
    Sums(Sums),
    /// Every row of a table that was found to be valid.
    Rows(&'a Input<'a>),
}

/// Has a stage's sums computed, adds noise and stores the result for good. If the table is refused for what stands in it,
/// the ledger remembers that.
pub(crate) fn draw<'i, R: CryptoRng>(
    standing: &Standing,
    ledger: &mut Ledger,
    session: &Session,
    observer: &dyn Observer,
    seed: &impl Fn() -> Result<R, Error>,
    read: impl FnOnce() -> Result<Read<'i>, Error>,
) -> Result<(), Error> {
    let drawn = try_to_draw(standing, ledger, session, observer, seed, read);
    if let Err(error) = &drawn {
        ledger.record_refusal(&session.study_id, &session.study_name, &session.party, error)?;
    }
    drawn
}

fn try_to_draw<'i, R: CryptoRng>(
    standing: &Standing,
    ledger: &mut Ledger,
    session: &Session,
    observer: &dyn Observer,
    seed: &impl Fn() -> Result<R, Error>,
    read: impl FnOnce() -> Result<Read<'i>, Error>,
) -> Result<(), Error> {
    let (stage, position) = (&standing.stage, standing.position());
    let interrupted = |error| Error::Interrupted { stage: position + 1, source: Box::new(error) };
    let prepared = read().and_then(|read| {
        observer.step(Step::Summed(position));
        Ok((read, seed()?))
    });
    let (read, mut rng) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            if session.state == State::Reserved && position == 0 {
                ledger.give_back(session)?;
                return Err(error);
            }
            return Err(interrupted(error));
        }
    };
    ledger.spend(session)?;
    observer.step(Step::Spent(position));
    ledger.store_stage(session, position, stage.coordinates(), |store| match read {
        Read::Sums(sums) => {
            let noised = sums.noised(stage, &mut rng);
            observer.step(Step::Noised(position));
            noised.chunks(CHUNK).try_for_each(|chunk| store.push(chunk))
        }
        Read::Rows(input) => {
            let mut noise = RowNoise::new(stage, &mut rng);
            let mut done = 0;
            let mut add = |encoded: &[i32]| {
                done += (encoded.len() / stage.encoder.width()) as u64;
                progress(observer)(done)?;
                noise.add(encoded, store)
            };
            input.in_order(stage, &mut add).and_then(|()| noise.finish(store)).map_err(interrupted)?;
            observer.step(Step::Noised(position));
            Ok(())
        }
    })?;
    observer.step(Step::Stored(position));
    Ok(())
}

/// Reads the whole table for a stage.
fn read_table<'a, 'i>(
    job: &Job<'a>,
    known: &'i mut Option<Input<'a>>,
    stage: &Stage,
    observer: &dyn Observer,
) -> Result<Read<'i>, Error> {
    let input = known_input(job, known)?;
    let progress = progress(observer);
    // Rows that are kept are read again when their noise is drawn.
    if keeps_rows(stage) {
        input.validate(&progress)?;
        return Ok(Read::Rows(input));
    }
    input.sums(stage, &progress).map(Read::Sums)
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

/// Where a release goes.
struct Target<'a> {
    out: &'a Path,
    existing: Existing,
    signing_key: Option<&'a SigningKey>,
}

/// Writes the file from the stored stages and gives it its name.
fn publish(
    study: &Study,
    party: &str,
    target: &Target<'_>,
    ledger: &mut Ledger,
    session: &Session,
    standing: &Standing,
    observer: &dyn Observer,
) -> Result<Written, Error> {
    let outline = Outline::new(study, party, &standing.earlier, target.signing_key)?;
    let mixed = || -> Result<StoredStage<'_>, Error> {
        let stored = ledger.stored_stage(session, standing.position(), standing.stage.coordinates())?;
        stored.ok_or_else(|| Error::LedgerDamaged {
            path: ledger.path().to_owned(),
            detail: "the stage just stored is not there".to_owned(),
        })
    };
    let (pending, written) = outline.write(target.out, target.existing, mixed)?;
    if let Some(pending) = pending {
        observer.step(Step::Written);
        pending.publish()?;
    }
    observer.step(Step::Named);
    ledger.publish(session, &written.content_hash)?;
    observer.step(Step::Published);
    Ok(written)
}
