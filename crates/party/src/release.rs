//! A release from start to end: reserve, validate, draw noise, store, write, publish.
//!
//! Whatever happens in between, running the same release again takes it up where it stopped: noise
//! that was stored is used again, a charge is made once, and a finished file comes out with the
//! same bytes.

use std::path::{Path, PathBuf};

use potluck_core::stage::{Stage, Statistic};
use potluck_release::Study;
use potluck_release::files::{Existing, check_writable};
use potluck_release::release::{Outline, Written};
use potluck_release::signing::SigningKey;
use rand_core::CryptoRng;

use crate::ledger::{Budget, CHUNK, Purpose, Session, State, StoredStage};
use crate::pass::Input;
use crate::reading::{Access, Reading};
use crate::sums::{RowNoise, Sums, keeps_rows};
use crate::{Error, Ledger, LostValues, Table, entropy};

/// Under what a release is drawn: whose it is, what is charged, and where it goes.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// The sealed study.
    pub study: &'a Study,
    /// Which of its parties we are.
    pub party: &'a str,
    /// The budget that is charged.
    pub budget: &'a str,
    /// Where the release goes.
    pub out: &'a Path,
    /// What to do when there is a file already.
    pub existing: Existing,
    /// The key to sign with.
    pub signing_key: Option<&'a SigningKey>,
    /// What becomes of a table in which most values of a column are lost.
    pub lost_values: LostValues,
}

impl Terms<'_> {
    /// The live session of this release, if it has one.
    pub(crate) fn session(&self, ledger: &Ledger) -> Result<Option<Session>, Error> {
        ledger.session(self.budget, self.study.id(), self.party)
    }

    /// Refuses early, before anything is computed or charged, what writing the file would refuse
    /// later.
    pub fn check_out(&self, ledger: &Ledger) -> Result<(), Error> {
        if self.session(ledger)?.is_none_or(|session| session.state == State::Reserved) {
            check_writable(self.out, self.existing)?;
        }
        // Later the same bytes may be there already.
        Ok(())
    }

    /// How the budget stands.
    pub(crate) fn balance(&self, ledger: &Ledger) -> Result<Budget, Error> {
        ledger.known_budget(self.budget)
    }
}

/// A release that nobody has to be asked about: for programs that made the table and the ledger up
/// themselves. Where people are asked, there is an [`Order`](crate::Order).
pub struct Job<'a> {
    /// Under what it is drawn.
    pub terms: Terms<'a>,
    /// Our raw table.
    pub table: &'a Table,
    /// How it is read.
    pub access: Access,
}

/// The steps of a release. What has been done when the step is reported survives a crash. Some
/// steps are taken for each stage, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing has been done yet.
    Started,
    /// The charge is reserved.
    Reserved,
    /// The whole table was valid, and the stage's sums are known, or its rows can be read; none of
    /// its noise has been drawn.
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

    /// Whether to stop. Asked often while the table is read: before the first noise nothing is
    /// charged then, and later the release can be taken up like one that crashed.
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
    /// The file.
    pub path: PathBuf,
    /// Id of the study.
    pub study_id: String,
    /// Which of its parties released.
    pub party: String,
    /// What is known of the file.
    pub release: Written,
    /// Whether its noise had been drawn before: then the table was not read, and this is the same
    /// release again.
    pub repeated: bool,
    /// How the budget stands after it.
    pub budget: Budget,
}

/// Releases a party's columns, with noise from the operating system's randomness.
pub fn release(job: &Job<'_>, ledger: &mut Ledger, observer: &dyn Observer) -> Result<Published, Error> {
    release_with(job, ledger, observer, entropy::secure_rng)
}

/// Releases a party's columns, with noise from the generators that `seed` makes, one for each stage
/// when its sums are known; for tests, which need to repeat it.
pub fn release_with<R: CryptoRng>(
    job: &Job<'_>,
    ledger: &mut Ledger,
    observer: &dyn Observer,
    seed: impl Fn() -> Result<R, Error>,
) -> Result<Published, Error> {
    let Job { terms, table, access } = job;
    let reading = Reading { study: terms.study, party: terms.party, table, access };
    draw_from_table(terms, &reading, ledger, observer, seed)
}

/// Draws every stage that is missing from a party's table, and writes the release.
pub(crate) fn draw_from_table<R: CryptoRng>(
    terms: &Terms<'_>,
    reading: &Reading<'_>,
    ledger: &mut Ledger,
    observer: &dyn Observer,
    seed: impl Fn() -> Result<R, Error>,
) -> Result<Published, Error> {
    let (study, party) = (terms.study, terms.study.own_party(terms.party)?.name());
    observer.step(Step::Started);
    terms.check_out(ledger)?;
    let session = reserve(study, party, terms.budget, ledger)?;
    observer.step(Step::Reserved);
    // A charge that stands is not mended by a refusal.
    let refuse_lost = terms.lost_values == LostValues::Refuse && session.state == State::Reserved;

    let mut input = None;
    let mut repeated = true;
    loop {
        let standing = Standing::of(study, party, ledger, Some(&session))?;
        if standing.complete {
            return publish(terms, ledger, &session, &standing, repeated, observer);
        }
        repeated = false;
        observer.stage(standing.stage.name, standing.position());
        let input = &mut input;
        draw(&standing, ledger, &session, observer, &seed, || {
            let (input, read) = read_table(reading, input, &standing.stage, observer)?;
            if refuse_lost && standing.position() == 0 {
                input.refuse_lost()?;
            }
            Ok(read)
        })?;
    }
}

/// Writes a release whose stages are all stored; it comes out the same again, and its table is not
/// needed. Nothing if a stage is missing.
pub fn publish_stored(
    terms: &Terms<'_>,
    ledger: &mut Ledger,
    observer: &dyn Observer,
) -> Result<Option<Published>, Error> {
    let Some(session) = terms.session(ledger)? else { return Ok(None) };
    let standing = Standing::of(terms.study, terms.party, ledger, Some(&session))?;
    if !standing.complete {
        return Ok(None);
    }
    publish(terms, ledger, &session, &standing, true, observer).map(Some)
}

/// Sets the charge of a release aside, or takes up the release that was begun.
pub(crate) fn reserve(
    study: &Study,
    party: &str,
    budget: &str,
    ledger: &mut Ledger,
) -> Result<Session, Error> {
    ledger.reserve(budget, Purpose::of(study, party)?)
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

/// Has a stage's sums computed, adds noise and stores the result for good. If the table is refused
/// for what stands in it, the ledger remembers that.
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

/// Reads the whole table for a stage. The input is made when it is first needed, and known from
/// then on.
fn read_table<'a, 'i>(
    reading: &Reading<'a>,
    known: &'i mut Option<Input<'a>>,
    stage: &Stage,
    observer: &dyn Observer,
) -> Result<(&'i Input<'a>, Read<'i>), Error> {
    let input = match known {
        Some(input) => input,
        // Rows that are kept in the release pass through: memory must not grow with them.
        none if keeps_rows(stage) => none.insert(Input::new(reading)?),
        none => none.insert(Input::for_passes(reading)?),
    };
    let progress = progress(observer);
    // Rows that are kept are read again when their noise is drawn.
    if keeps_rows(stage) {
        input.validate(&progress)?;
        return Ok((input, Read::Rows(input)));
    }
    Ok((input, Read::Sums(input.sums(stage, &progress)?)))
}

/// Writes the file from the stored stages and gives it its name.
fn publish(
    terms: &Terms<'_>,
    ledger: &mut Ledger,
    session: &Session,
    standing: &Standing,
    repeated: bool,
    observer: &dyn Observer,
) -> Result<Published, Error> {
    let outline = Outline::new(terms.study, terms.party, &standing.earlier, terms.signing_key)?;
    let mixed = || -> Result<StoredStage<'_>, Error> {
        let stored = ledger.stored_stage(session, standing.position(), standing.stage.coordinates())?;
        stored.ok_or_else(|| Error::LedgerDamaged {
            path: ledger.path().to_owned(),
            detail: "the stage just stored is not there".to_owned(),
        })
    };
    let (pending, release) = outline.write(terms.out, terms.existing, mixed)?;
    if let Some(pending) = pending {
        observer.step(Step::Written);
        pending.publish()?;
    }
    observer.step(Step::Named);
    ledger.publish(session, &release.content_hash)?;
    observer.step(Step::Published);
    Ok(Published {
        path: terms.out.to_owned(),
        study_id: terms.study.id().to_owned(),
        party: terms.party.to_owned(),
        release,
        repeated,
        budget: terms.balance(ledger)?,
    })
}
