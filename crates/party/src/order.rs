//! The one order of a release, from any front end, wherever its sums come from.
//!
//! An [`Order`] is what was asked for. [`Order::prepare`] looks at everything that can be known
//! before a row is read, and finds that the release is drawn already, that it was begun, or that it
//! would be new. A new one has a [`Question`], which people answer in the words of the command or
//! of the Python package; [`Prepared::confirm`] hands it to them, and gives the [`Agreed`] release
//! that may be charged and drawn. The ledger is open only while one of these steps lasts: people,
//! streams and engines take their time, and others may need it.

use std::path::{Path, PathBuf};

use potluck_release::files::{Existing, refuse_same_file};
use potluck_release::plan::futility;
use potluck_release::signing::SigningKey;
use potluck_release::{Study, statement, warnings};

use crate::ledger::{Purpose, State};
use crate::reading::{Access, Reading};
use crate::release::{Observer, Published, Standing, Terms, draw_from_table, publish_stored};
use crate::sql::{Fed, Query, Results, Source, StagedRelease, Task};
use crate::{Error, Ledger, LostValues, Table, entropy};

/// A release that was asked for.
pub struct Order {
    /// The sealed study.
    pub study: Study,
    /// Which of its parties we are.
    pub party: String,
    /// The party's ledger.
    pub ledger: PathBuf,
    /// The budget that is charged; if none is named, the only one of the ledger.
    pub budget: Option<String>,
    /// Where the release goes.
    pub out: PathBuf,
    /// What to do when there is a file already.
    pub existing: Existing,
    /// The private key to sign with.
    pub signing_key: Option<PathBuf>,
    /// What else is read on the way, and must not be written over.
    pub inputs: Vec<PathBuf>,
    /// Whether to publish even if predicting the mean would do as well as a regression.
    pub accept_low_accuracy: bool,
    /// What becomes of a table in which most values of a column are lost.
    pub lost_values: LostValues,
}

impl Order {
    /// Checks everything that can be known before a row is read. Nothing is charged or written.
    pub fn prepare(self) -> Result<Prepared, Error> {
        self.study.own_party(&self.party)?;
        refuse_same_file(&self.out, &self.inputs())?;
        let signing_key = self.signing_key.as_deref().map(SigningKey::load).transpose()?;
        let ledger = Ledger::open(&self.ledger)?;
        let budget = ledger.choose_budget(self.budget.as_deref())?;
        let Self {
            study, party, ledger: ledger_path, out, existing, accept_low_accuracy, lost_values, ..
        } = self;
        let agreed =
            Agreed { study, party, ledger: ledger_path, budget, out, existing, signing_key, lost_values };
        let terms = agreed.terms();
        if let Some(session) = terms.session(&ledger)? {
            let standing = Standing::of(&agreed.study, &agreed.party, &ledger, Some(&session))?;
            let complete = standing.complete;
            return Ok(if complete { Prepared::Repeated(agreed) } else { Prepared::Begun(agreed) });
        }
        terms.check_out(&ledger)?;
        ledger.check_budget(&agreed.budget, &Purpose::of(&agreed.study, &agreed.party)?)?;
        Ok(Prepared::New(Question::new(agreed, &ledger, accept_low_accuracy)?))
    }

    fn inputs(&self) -> Vec<&Path> {
        let own = [Some(&self.ledger), self.signing_key.as_ref()];
        own.into_iter().flatten().chain(&self.inputs).map(PathBuf::as_path).collect()
    }
}

/// How a release stands in the ledger before its table is read.
pub enum Prepared {
    /// Every stage is stored: [`Agreed::write`] writes it again, and the table is not needed.
    Repeated(Agreed),
    /// It was charged before, and stages are missing.
    Begun(Agreed),
    /// It would be charged now.
    New(Question),
}

impl Prepared {
    /// The release that may go on. If it is new, `ask` is given what people have to know, and fails
    /// if they do not mean it; a release that would be of no use is refused before, unless the
    /// order accepts that.
    pub fn confirm<E: From<Error>>(self, ask: impl FnOnce(&Question) -> Result<(), E>) -> Result<Agreed, E> {
        match self {
            Self::Repeated(agreed) | Self::Begun(agreed) => Ok(agreed),
            Self::New(question) => {
                question.refuse_futile()?;
                ask(&question)?;
                Ok(question.agreed)
            }
        }
    }
}

/// What people have to know before a new release is charged.
pub struct Question {
    agreed: Agreed,
    accept_low_accuracy: bool,
    /// What the release promises, alone and together with those of the other parties.
    pub promise: Vec<String>,
    /// What a careful person would ask about.
    pub warnings: Vec<String>,
    /// How often the table was refused under this study.
    pub refused: usize,
    /// How much of the budget is charged: 1 is all of it.
    pub share: f64,
}

impl Question {
    fn new(agreed: Agreed, ledger: &Ledger, accept_low_accuracy: bool) -> Result<Self, Error> {
        let (study, party) = (&agreed.study, agreed.party.as_str());
        let refused = ledger.refusals()?;
        let own = refused.iter().filter(|refused| refused.study_id == study.id() && refused.party == party);
        let charge = study.mu().squared().to_f64();
        Ok(Self {
            accept_low_accuracy,
            promise: statement::of_release(study, party)?,
            warnings: warnings::of_party(study, party)?,
            refused: own.count(),
            share: charge / agreed.terms().balance(ledger)?.total.to_f64(),
            agreed,
        })
    }

    /// The study.
    pub fn study(&self) -> &Study {
        &self.agreed.study
    }

    /// The party.
    pub fn party(&self) -> &str {
        &self.agreed.party
    }

    /// The budget that is charged.
    pub fn budget(&self) -> &str {
        &self.agreed.budget
    }

    /// Refuses a table with columns of these names that has not what the study expects, before
    /// people are asked.
    pub fn check_names(&self, access: &Access, table: &str, found: &[String]) -> Result<(), Error> {
        access.check_names(self.study(), self.party(), table, found)
    }

    /// The query of the first stage, for a table in an engine. It costs nothing, and refuses a
    /// study that engines cannot compute.
    pub fn first_query(&self, source: &Source) -> Result<Query, Error> {
        Ok(self.agreed.next_query(source)?.ok_or(potluck_release::Error::Stages)?)
    }

    fn refuse_futile(&self) -> Result<(), Error> {
        match futility(self.study()).filter(|_| !self.accept_low_accuracy) {
            Some(futility) => Err(Error::Futile(futility)),
            None => Ok(()),
        }
    }
}

/// A release that may be charged, because people agreed to it, or that was charged before.
pub struct Agreed {
    study: Study,
    party: String,
    ledger: PathBuf,
    budget: String,
    out: PathBuf,
    existing: Existing,
    signing_key: Option<SigningKey>,
    lost_values: LostValues,
}

impl Agreed {
    /// The study.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// The party.
    pub fn party(&self) -> &str {
        &self.party
    }

    /// Where the release goes.
    pub fn out(&self) -> &Path {
        &self.out
    }

    fn terms(&self) -> Terms<'_> {
        Terms {
            study: &self.study,
            party: &self.party,
            budget: &self.budget,
            out: &self.out,
            existing: self.existing,
            signing_key: self.signing_key.as_ref(),
            lost_values: self.lost_values,
        }
    }

    fn open(&self) -> Result<Ledger, Error> {
        Ledger::open(&self.ledger)
    }

    /// Whether the charge of this release stands, whatever became of it since.
    pub fn is_charged(&self) -> Result<bool, Error> {
        let session = self.terms().session(&self.open()?)?;
        Ok(session.is_some_and(|session| matches!(session.state, State::Spent | State::Published)))
    }

    fn staged<'a>(&'a self, source: &'a Source) -> StagedRelease<'a> {
        StagedRelease {
            study: &self.study,
            party: &self.party,
            budget: &self.budget,
            source,
            lost_values: self.lost_values,
        }
    }

    /// Writes the release from its stages, all of which are stored.
    pub fn write(&self, observer: &dyn Observer) -> Result<Published, Error> {
        let written = publish_stored(&self.terms(), &mut self.open()?, observer)?;
        Ok(written.ok_or(potluck_release::Error::Stages)?)
    }

    /// Draws what is missing from the party's table, and writes the release.
    pub fn release(
        &self,
        table: &Table,
        access: &Access,
        observer: &dyn Observer,
    ) -> Result<Published, Error> {
        let reading = Reading { study: &self.study, party: &self.party, table, access };
        draw_from_table(&self.terms(), &reading, &mut self.open()?, observer, entropy::secure_rng)
    }

    /// The query of the next stage, for a table in an engine; see [`StagedRelease::next_query`].
    pub fn next_query(&self, source: &Source) -> Result<Option<Query>, Error> {
        self.staged(source).next_query(&self.open()?)
    }

    /// What tasks of a cluster do in its place; see [`StagedRelease::next_task`].
    pub fn next_task(&self, source: &Source) -> Result<Option<Task>, Error> {
        self.staged(source).next_task(&self.open()?)
    }

    /// Takes the result of that query; see [`StagedRelease::feed`].
    pub fn feed(&self, source: &Source, results: &Results) -> Result<Fed, Error> {
        self.staged(source).feed(&mut self.open()?, results, &())
    }

    /// Records that the table was refused for what an engine said of it before the first query, if
    /// the error says so.
    pub fn record_refusal(&self, source: &Source, error: &Error) -> Result<(), Error> {
        self.staged(source).record_refusal(&mut self.open()?, error)
    }

    /// Writes the release once the last result was taken; see [`StagedRelease::finish`].
    pub fn finish(&self, source: &Source) -> Result<Published, Error> {
        let key = self.signing_key.as_ref();
        self.staged(source).finish(&mut self.open()?, &self.out, self.existing, key, &())
    }
}
