//! The order of a release: what is found before anything is charged, what people are asked, and
//! what follows.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::PathBuf;

use potluck_core::accounting::{Delta, Epsilon, MuSquared};
use potluck_party::ledger::State;
use potluck_party::order::{Agreed, Prepared, Question};
use potluck_party::release::release_with;
use potluck_party::{Error, Ledger, LostValues, Observer, Order, Step, Table};
use potluck_release::Study;
use potluck_release::files::Existing;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use support::{PARTY, access, job, ledger_with, middle, study, study_at, table};
use tempfile::TempDir;

const ROWS: u64 = 20;

/// A folder with a ledger for one release, a table, and what is ordered there.
struct Place {
    folder: TempDir,
    study: Study,
}

impl Place {
    fn new() -> Self {
        Self::with(study(ROWS, "id = \"integer\"\nmethod = \"calibrated\"", ""))
    }

    fn with(study: Study) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let definition = study.definition();
        ledger_with(folder.path(), definition.epsilon(), definition.delta());
        Self { folder, study }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn order(&self) -> Order {
        Order {
            study: self.study.clone(),
            party: PARTY.to_owned(),
            ledger: self.path("ledger.sqlite"),
            budget: None,
            out: self.path("out.parquet"),
            existing: Existing::Keep,
            signing_key: None,
            inputs: Vec::new(),
            accept_low_accuracy: true,
            lost_values: LostValues::Accept,
        }
    }

    fn ledger(&self) -> Ledger {
        Ledger::open(&self.path("ledger.sqlite")).unwrap()
    }

    fn spent(&self) -> MuSquared {
        self.ledger().budget("patients").unwrap().unwrap().spent
    }

    fn table(&self) -> Table {
        let people: Vec<_> = (0..self.study.definition().rows() as i64).map(middle).collect();
        table(&people)
    }

    fn question(&self) -> Question {
        match self.order().prepare().unwrap() {
            Prepared::New(question) => question,
            Prepared::Repeated(_) | Prepared::Begun(_) => panic!("it is not new"),
        }
    }

    /// Why an order cannot be prepared; nothing is charged or written then.
    fn refusal(&self, order: Order) -> Error {
        let error = order.prepare().err().unwrap();
        self.assert_untouched();
        error
    }

    fn assert_untouched(&self) {
        assert_eq!(self.spent(), MuSquared::ZERO);
        assert!(self.ledger().sessions().unwrap().is_empty());
        assert!(!self.path("out.parquet").exists());
    }
}

/// Agrees to whatever is asked.
fn agree(prepared: Prepared) -> Agreed {
    prepared.confirm(|_| Ok::<_, Error>(())).unwrap()
}

#[test]
fn a_new_release_asks_what_it_costs_and_what_came_before() {
    let place = Place::new();
    let question = place.question();
    assert_eq!((question.party(), question.budget()), (PARTY, "patients"));
    assert!((question.share - 1.0).abs() < 1e-9, "the budget is that of one release");
    assert!(question.promise[0].contains("table of clinic"));
    assert_eq!(question.refused, 0);
    assert!(!question.warnings.iter().any(|warning| warning.contains("refuse its table")));

    let short = table(&[middle(1)]);
    let refused = agree(place.order().prepare().unwrap()).release(&short, &access(1), &()).err().unwrap();
    assert!(refused.refusal().is_some());
    assert_eq!(place.question().refused, 1);
    assert_eq!(place.spent(), MuSquared::ZERO, "what was reserved is given back");
}

#[test]
fn a_study_that_refuses_values_is_warned_of() {
    let settings = "id = \"integer\"\nmethod = \"calibrated\"";
    let text =
        study(ROWS, settings, "").to_toml().replacen("missing = \"midpoint\"", "missing = \"error\"", 1);
    let unsealed = text.split("[sealed]").next().unwrap();
    let key = potluck_core::mixing::MixingKey::new([7; 32]);
    let place = Place::with(potluck_release::Draft::parse(unsealed).unwrap().seal(key).unwrap());
    let warnings = place.question().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("with a missing value of age")));
}

#[test]
fn nobody_agreed_and_nothing_is_charged() {
    let place = Place::new();
    let declined = place.order().prepare().unwrap().confirm(|_| Err(Error::Stopped));
    assert!(matches!(declined, Err(Error::Stopped)));
    place.assert_untouched();
}

#[test]
fn the_ledger_is_closed_while_people_think() {
    let place = Place::new();
    let agreed = place.order().prepare().unwrap().confirm(|_| {
        place.assert_untouched();
        Ok::<_, Error>(())
    });
    place.assert_untouched();
    agreed.unwrap().release(&place.table(), &access(2), &()).unwrap();
}

#[test]
fn a_budget_that_goes_while_people_think_is_not_overspent() {
    let place = Place::new();
    let agreed = agree(place.order().prepare().unwrap());
    let other = study(ROWS, "id = \"integer\"\nk = 7", "");
    let (data, out) = (place.table(), place.path("other.parquet"));
    let seed = || Ok(ChaCha20Rng::seed_from_u64(1));
    release_with(&job(&other, &data, &out, 1), &mut place.ledger(), &(), seed).unwrap();
    let late = agreed.release(&data, &access(1), &()).err().unwrap();
    assert!(matches!(late, Error::Overspend { .. }));
    assert!(!place.path("out.parquet").exists());
}

#[test]
fn a_release_that_stopped_is_begun_and_goes_on_without_a_question() {
    struct StopAt(u32);
    impl Observer for StopAt {
        fn step(&self, step: Step) {
            assert!(step != Step::Stored(self.0), "dies here");
        }
    }
    let place = Place::new();
    let agreed = agree(place.order().prepare().unwrap());
    let table = place.table();
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        agreed.release(&table, &access(1), &StopAt(1)).map(drop)
    }));
    assert!(died.is_err());
    assert_eq!(place.spent(), place.study.mu().squared());
    let prepared = place.order().prepare().unwrap();
    assert!(matches!(prepared, Prepared::Begun(_)));
    let agreed = prepared.confirm(|_| Err(Error::Stopped)).unwrap();
    assert!(!agreed.release(&table, &access(1), &()).unwrap().repeated);
    assert_eq!(place.spent(), place.study.mu().squared(), "one charge");
}

#[test]
fn a_release_that_was_drawn_is_written_again_without_its_table() {
    let place = Place::new();
    let first = agree(place.order().prepare().unwrap()).release(&place.table(), &access(2), &()).unwrap();
    assert!(!first.repeated);
    assert_eq!((first.path.as_path(), first.party.as_str()), (place.path("out.parquet").as_path(), PARTY));
    assert_eq!((first.study_id.as_str(), first.budget.spent), (place.study.id(), first.budget.total));
    let again = Order { out: place.path("again.parquet"), accept_low_accuracy: false, ..place.order() };
    let prepared = again.prepare().unwrap();
    assert!(!place.path("again.parquet").exists(), "looking writes nothing");
    let Prepared::Repeated(agreed) = prepared else { panic!("it was drawn") };
    let second = agreed.write(&()).unwrap();
    assert!(second.repeated);
    assert_eq!(second.release.content_hash, first.release.content_hash);
    let bytes = |name: &str| fs::read(place.path(name)).unwrap();
    assert!(bytes("again.parquet") == bytes("out.parquet"));
    let session = place.ledger().session("patients", place.study.id(), PARTY).unwrap().unwrap();
    assert_eq!(session.state, State::Published);
}

#[test]
fn what_can_be_known_before_is_refused_before() {
    let place = Place::new();
    let stranger = Order { party: "elsewhere".to_owned(), ..place.order() };
    assert!(matches!(place.refusal(stranger), Error::Release(potluck_release::Error::UnknownParty { .. })));
    let over_ledger =
        Order { out: place.path("ledger.sqlite"), existing: Existing::Replace, ..place.order() };
    assert!(matches!(place.refusal(over_ledger), Error::Release(potluck_release::Error::SameFile { .. })));
    let table = place.path("table.csv");
    fs::write(&table, "id\n").unwrap();
    let over_table = Order {
        out: table.clone(),
        existing: Existing::Replace,
        inputs: vec![table.clone()],
        ..place.order()
    };
    assert!(matches!(place.refusal(over_table), Error::Release(potluck_release::Error::SameFile { .. })));
    let there = Order { out: table, ..place.order() };
    assert!(matches!(place.refusal(there), Error::Release(potluck_release::Error::Exists { .. })));
    let no_key = Order { signing_key: Some(place.path("missing.key")), ..place.order() };
    assert!(matches!(place.refusal(no_key), Error::Release(_)));
    let no_ledger = Order { ledger: place.path("missing.sqlite"), ..place.order() };
    assert!(matches!(place.refusal(no_ledger), Error::NoLedger { .. }));
    let unknown = Order { budget: Some("nothing".to_owned()), ..place.order() };
    assert!(matches!(place.refusal(unknown), Error::NoBudget(_)));
}

#[test]
fn budgets_are_looked_at_before_anyone_is_asked() {
    let place = Place::new();
    fs::remove_file(place.path("ledger.sqlite")).unwrap();
    ledger_with(place.folder.path(), Epsilon::new(0.5).unwrap(), Delta::new(1e-5).unwrap());
    assert!(matches!(place.refusal(place.order()), Error::Overspend { .. }));
    place.ledger().set_budget("clients", Epsilon::new(2.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
    assert!(matches!(place.refusal(place.order()), Error::NoBudget(_)), "two budgets, and none is named");
    let named = |budget: &str| Order { budget: Some(budget.to_owned()), ..place.order() };
    let Prepared::New(question) = named("clients").prepare().unwrap() else { panic!("it is new") };
    assert_eq!(question.budget(), "clients");
    assert!(question.share < 0.5, "{}", question.share);
    agree(named("clients").prepare().unwrap()).release(&place.table(), &access(1), &()).unwrap();
    let other = named("patients").prepare().err().unwrap();
    assert!(matches!(other, Error::OtherBudget { .. }), "one study and party is one release");
}

#[test]
fn a_release_of_no_use_is_refused_unless_the_order_accepts_it() {
    let place = Place::with(study_at(0.01, ROWS, "id = \"integer\"\nmethod = \"calibrated\"", ""));
    let asked = std::cell::Cell::new(false);
    let ask = |_: &Question| {
        asked.set(true);
        Ok::<_, Error>(())
    };
    let strict = Order { accept_low_accuracy: false, ..place.order() };
    let refused = strict.prepare().unwrap().confirm(ask).err().unwrap();
    let Error::Futile(futility) = &refused else { panic!("{refused}") };
    assert_eq!(futility.rows, ROWS);
    assert!(!asked.get(), "nobody is asked for what is refused");
    place.assert_untouched();
    place.order().prepare().unwrap().confirm(ask).unwrap();
    assert!(asked.get());
}

#[test]
fn names_of_columns_are_looked_at_before_the_table_is_at_hand() {
    let place = Place::new();
    let question = place.question();
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let good = names(&["id", "age", "dose", "smoker", "region", "more"]);
    question.check_names(&access(1), "table", &good).unwrap();
    let missing = question.check_names(&access(1), "table", &names(&["id", "age"])).err().unwrap();
    assert!(matches!(missing, Error::Column { .. }));
}
