//! Push-down: a party whose table lives in a database or a cluster releases without exporting it.
//!
//! Every stage of a release is a sum of small integers, so one query computes it exactly, and only
//! sums come back. [`StagedRelease`] writes the query of the next stage and takes its result; noise
//! is added here, never by the engine, and the ledger session is the one that a release from a file
//! would have. The steps between two queries may be hours and processes apart: all that a later one
//! needs is in the ledger.
//!
//! The form of a result is in docs/FORMAT.md#result-of-a-query; why its sums may be trusted as far
//! as the engine is, in docs/PRIVACY.md#engines.

mod check;
mod dialect;
mod query;
mod results;
mod share;
mod source;

use std::path::Path;

use potluck_release::Study;
use potluck_release::files::Existing;
use potluck_release::signing::SigningKey;
use rand_core::CryptoRng;

pub use check::CheckQuery;
pub(crate) use dialect::shown_type;
pub use dialect::{Dialect, UnknownDialect};
pub use query::Query;
pub use results::{COLUMNS, ResultRow, Results};
pub use share::{Share, Task, merged};
pub use source::{Description, Remembered, Source, TableName, rows_query};

use crate::ledger::{Purpose, Session, State};
use crate::release::{Observer, Published, Read, Standing, Step, Terms, draw, publish_stored, reserve};
use crate::{Error, Ledger, LostValues, entropy};

/// A release from a table in a database, stage by stage.
///
/// It holds nothing but what was asked for: every step looks up in the ledger how far the release
/// has come.
pub struct StagedRelease<'a> {
    /// The sealed study.
    pub study: &'a Study,
    /// Which of its parties we are.
    pub party: &'a str,
    /// The budget that is charged.
    pub budget: &'a str,
    /// Where the party's table is.
    pub source: &'a Source,
    /// What becomes of a table in which most values of a column are lost.
    pub lost_values: LostValues,
}

/// What became of a result that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// Noise was added to it and stored.
    Stored,
    /// The stage had been stored before; nothing was done.
    Known,
}

impl StagedRelease<'_> {
    fn session(&self, ledger: &Ledger) -> Result<Option<Session>, Error> {
        ledger.session(self.budget, self.study.id(), self.party)
    }

    fn query(&self, standing: &Standing) -> Result<Query, Error> {
        Query::new(self.study, self.party, &standing.earlier, &standing.stage, self.source)
    }

    /// How many stages are stored.
    pub fn stored_stages(&self, ledger: &Ledger) -> Result<u32, Error> {
        let standing = Standing::of(self.study, self.party, ledger, self.session(ledger)?.as_ref())?;
        Ok(standing.position() + u32::from(standing.complete))
    }

    /// The query of the next stage; nothing if every stage is stored, and only [`Self::finish`] is
    /// left.
    ///
    /// Refuses what the budget does not allow, before an engine works on it. Nothing is charged.
    pub fn next_query(&self, ledger: &Ledger) -> Result<Option<Query>, Error> {
        let session = self.session(ledger)?;
        let standing = Standing::of(self.study, self.party, ledger, session.as_ref())?;
        if standing.complete {
            return Ok(None);
        }
        if session.is_none() {
            ledger.check_budget(self.budget, &Purpose::of(self.study, self.party)?)?;
        }
        self.query(&standing).map(Some)
    }

    /// What each task of a cluster is told that adds up a share of the table for the next stage, in
    /// place of its query; nothing if every stage is stored.
    pub fn next_task(&self, ledger: &Ledger) -> Result<Option<Task>, Error> {
        let standing = Standing::of(self.study, self.party, ledger, self.session(ledger)?.as_ref())?;
        if standing.complete {
            return Ok(None);
        }
        let fingerprint = self.query(&standing)?.fingerprint;
        let ids = self.source.ids().to_vec();
        Ok(Some(Task::new(self.study, self.party, ids, &standing.earlier, &fingerprint)))
    }

    /// Takes the result of the query that [`Self::next_query`] wrote: checks it, adds noise from
    /// the operating system's randomness and stores it. A result that is refused costs nothing; one
    /// that was taken before is left alone.
    ///
    /// # Privacy
    /// The sums are the integers of a release from a file (docs/PRIVACY.md#engines), so the noise
    /// is that of Theorem 3 (docs/PRIVACY.md#what-a-release-costs), at the same charge (Claim L,
    /// docs/PRIVACY.md#ledger).
    pub fn feed(
        &self,
        ledger: &mut Ledger,
        results: &Results,
        observer: &dyn Observer,
    ) -> Result<Fed, Error> {
        self.feed_with(ledger, results, observer, entropy::secure_rng)
    }

    /// The same, with noise from the generator that `seed` makes; for tests, which need to repeat
    /// it.
    pub fn feed_with<R: CryptoRng>(
        &self,
        ledger: &mut Ledger,
        results: &Results,
        observer: &dyn Observer,
        seed: impl Fn() -> Result<R, Error>,
    ) -> Result<Fed, Error> {
        observer.step(Step::Started);
        let standing = Standing::of(self.study, self.party, ledger, self.session(ledger)?.as_ref())?;
        if self.is_stored(&standing, results.fingerprint()?)? {
            return Ok(Fed::Known);
        }
        if standing.complete {
            return Err(potluck_release::Error::Stages.into());
        }
        let query = self.query(&standing)?;
        let session = reserve(self.study, self.party, self.budget, ledger)?;
        observer.step(Step::Reserved);
        observer.stage(standing.stage.name, standing.position());
        // A charge that stands is not mended by a refusal.
        let new = session.state == State::Reserved;
        let lost_values = if new { self.lost_values } else { LostValues::Accept };
        draw(&standing, ledger, &session, observer, &seed, || {
            results
                .sums(self.study, self.party, &standing.stage, &query, self.source, lost_values)
                .map(Read::Sums)
        })?;
        Ok(Fed::Stored)
    }

    /// Records that the table was refused for what an engine said of it before the first query, if
    /// the error says so.
    pub fn record_refusal(&self, ledger: &mut Ledger, error: &Error) -> Result<(), Error> {
        ledger.record_refusal(self.study.id(), self.study.definition().name(), self.party, error)
    }

    /// Whether this is the fingerprint of the query of a stage that is stored.
    fn is_stored(&self, standing: &Standing, fingerprint: &str) -> Result<bool, Error> {
        for stored in 0..standing.earlier.len() {
            let earlier = &standing.earlier[..stored];
            let stage = self.study.stage(self.party, earlier)?.ok_or(potluck_release::Error::Stages)?;
            let query = Query::new(self.study, self.party, earlier, &stage, self.source)?;
            if query.fingerprint == fingerprint {
                return Ok(true);
            }
        }
        Ok(standing.complete && self.query(standing)?.fingerprint == fingerprint)
    }

    /// Writes the release from the stored stages, once every stage is stored. Again, it gives the
    /// same bytes.
    pub fn finish(
        &self,
        ledger: &mut Ledger,
        out: &Path,
        existing: Existing,
        signing_key: Option<&SigningKey>,
        observer: &dyn Observer,
    ) -> Result<Published, Error> {
        let repeated = self.session(ledger)?.is_some_and(|session| session.state == State::Published);
        let Self { study, party, budget, lost_values, .. } = *self;
        let terms = Terms { study, party, budget, out, existing, signing_key, lost_values };
        let stored = publish_stored(&terms, ledger, observer)?;
        Ok(Published { repeated, ..stored.ok_or(potluck_release::Error::Stages)? })
    }
}
