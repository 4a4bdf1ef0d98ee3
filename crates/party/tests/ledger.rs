//! The ledger: budgets are set once, charges add up exactly, and nothing exceeds a total.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use potluck_core::accounting::{Delta, Epsilon, Mu, MuSquared};
use potluck_party::ledger::{CHUNK, Purpose, Session, State, StoredStage};
use potluck_party::{Error, Ledger, Refusal};
use rusqlite::Connection;

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn delta() -> Delta {
    Delta::new(1e-6).unwrap()
}

fn purpose(study_id: &str, mu: Mu) -> Purpose<'_> {
    Purpose { study_id, study_name: "study", party: "north", asked: (epsilon(1.0), delta()), mu }
}

fn store(ledger: &mut Ledger, session: &Session, noised: &[i64]) -> Result<(), Error> {
    ledger.store_stage(session, 0, noised.len(), |store| {
        noised.chunks(CHUNK).try_for_each(|chunk| store.push(chunk))
    })
}

/// The first stage of a session, if it is stored and has so many sums.
fn stored(ledger: &Ledger, session: &Session, sums: usize) -> Result<Option<Vec<i64>>, Error> {
    ledger.stored_stage(session, 0, sums)?.map(StoredStage::all).transpose()
}

/// A ledger with a session whose charge stands, and no stage stored.
fn spent_ledger(path: &Path) -> (Ledger, Session) {
    let mut ledger = Ledger::open_or_create(path).unwrap();
    ledger.set_budget("people", epsilon(1.0), delta()).unwrap();
    let session = ledger.reserve("people", purpose("a", Mu::from_numerator(1000).unwrap())).unwrap();
    ledger.spend(&session).unwrap();
    (ledger, session)
}

#[test]
fn a_budget_allows_exactly_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open_or_create(&folder.path().join("deep/er/ledger.sqlite")).unwrap();
    let budget = ledger.set_budget("people", epsilon(1.0), delta()).unwrap();
    let mu = Mu::analytic(epsilon(1.0), delta()).unwrap();
    assert_eq!(budget.total, mu.squared(), "one release at the budget's own (ε, δ) fits without rounding");
    assert!(matches!(ledger.set_budget("people", epsilon(9.0), delta()), Err(Error::BudgetExists { .. })));

    // Two releases whose squares add up to one unit more than the total do not fit.
    let part = Mu::from_numerator(mu.numerator() / 2).unwrap();
    let session = ledger.reserve("people", purpose("a", part)).unwrap();
    assert_eq!(session.state, State::Reserved);
    let left = ledger.budget("people").unwrap().unwrap().left().units();
    let largest = left.isqrt();
    let too_much = Mu::from_numerator(u64::try_from(largest + 1).unwrap()).unwrap();
    assert!(matches!(ledger.reserve("people", purpose("b", too_much)), Err(Error::Overspend { .. })));
    let fits = Mu::from_numerator(u64::try_from(largest).unwrap()).unwrap();
    ledger.reserve("people", purpose("b", fits)).unwrap();
    let spent = ledger.budget("people").unwrap().unwrap().spent;
    assert_eq!(Some(spent), MuSquared::checked_sum([part.squared(), fits.squared()]));
    // The same release again is the same session.
    assert_eq!(ledger.reserve("people", purpose("a", part)).unwrap(), session);
}

#[test]
fn sessions_move_forward_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut ledger = Ledger::open_or_create(&path).unwrap();
    ledger.set_budget("people", epsilon(1.0), delta()).unwrap();
    let mu = Mu::analytic(epsilon(0.1), delta()).unwrap();

    let session = ledger.reserve("people", purpose("a", mu)).unwrap();
    ledger.give_back(&session).unwrap();
    assert_eq!(ledger.budget("people").unwrap().unwrap().spent, MuSquared::ZERO);
    assert!(ledger.session("people", "a", "north").unwrap().is_none());

    let session = ledger.reserve("people", purpose("a", mu)).unwrap();
    ledger.spend(&session).unwrap();
    assert!(ledger.give_back(&session).is_err(), "what is spent cannot be given back");
    let noised: Vec<i64> = (0..300_000).map(|i| i * i - 5).collect();
    assert_eq!(stored(&ledger, &session, noised.len()).unwrap(), None);
    store(&mut ledger, &session, &noised).unwrap();
    assert!(store(&mut ledger, &session, &noised).is_err(), "a stage is stored once");
    ledger.publish(&session, "hash").unwrap();

    // Everything is there after opening it again; a reservation that nobody holds is given back.
    ledger.reserve("people", purpose("abandoned", mu)).unwrap();
    drop(ledger);
    let ledger = Ledger::open(&path).unwrap();
    let session = ledger.session("people", "a", "north").unwrap().unwrap();
    assert_eq!((session.state, session.content_hash.as_deref()), (State::Published, Some("hash")));
    assert!(stored(&ledger, &session, noised.len()).unwrap() == Some(noised));
    assert!(ledger.session("people", "abandoned", "north").unwrap().is_none());
    assert_eq!(ledger.budget("people").unwrap().unwrap().spent, mu.squared());
}

#[test]
fn only_one_process_at_a_time_and_only_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    assert!(matches!(Ledger::open(&path), Err(Error::NoLedger { .. })));
    let ledger = Ledger::open_or_create(&path).unwrap();
    assert!(matches!(Ledger::open(&path), Err(Error::LedgerInUse { .. })));
    drop(ledger);
    Ledger::open(&path).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn changed_bytes_are_refused_or_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let (mut ledger, session) = spent_ledger(&path);
    store(&mut ledger, &session, &(0..3000).map(|i| i * 0x0102_0304).collect::<Vec<i64>>()).unwrap();
    drop(ledger);
    let bytes = fs::read(&path).unwrap();
    // Somewhere in the middle of the stored stage.
    let at = bytes.windows(8).position(|window| window == (2000_i64 * 0x0102_0304).to_le_bytes()).unwrap();
    let mut changed = bytes;
    changed[at] ^= 1;
    fs::write(&path, changed).unwrap();
    let ledger = Ledger::open(&path).unwrap();
    let session = ledger.session("people", "a", "north").unwrap().unwrap();
    assert!(matches!(stored(&ledger, &session, 3000), Err(Error::LedgerDamaged { .. })));
}

/// More than the database keeps in memory, so that some of it is in the file when storing fails.
#[test]
fn a_stage_is_stored_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let (mut ledger, session) = spent_ledger(&path);
    let sums = 8 * CHUNK + 5;
    let failed = ledger.store_stage(&session, 0, sums, |store| {
        (0..7).try_for_each(|value| store.push(&vec![value; CHUNK]))?;
        assert!(fs::metadata(&path).unwrap().len() > 1 << 22, "part of it is in the file");
        Err(Error::Stopped)
    });
    assert!(matches!(failed, Err(Error::Stopped)));
    drop(ledger);
    let mut ledger = Ledger::open(&path).unwrap();
    assert_eq!(stored(&ledger, &session, sums).unwrap(), None);

    let noised: Vec<i64> = (0..sums as i64).collect();
    store(&mut ledger, &session, &noised).unwrap();
    assert!(stored(&ledger, &session, sums).unwrap() == Some(noised));
}

#[test]
fn parts_of_a_stage_that_are_missing_are_noticed() {
    let damages = [
        "DELETE FROM stage WHERE chunk = 1",
        "DELETE FROM stage WHERE chunk = 3",
        "DELETE FROM stage WHERE chunk > 0; UPDATE stage SET chunks = 1",
        "UPDATE stage SET chunk = 9 WHERE chunk = 1",
        "UPDATE stage SET noised = x'0000000000000000', checksum = x'af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc' WHERE chunk = 3",
    ];
    for damage in damages {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        let (mut ledger, session) = spent_ledger(&path);
        let sums = 3 * CHUNK + 2;
        store(&mut ledger, &session, &vec![0; sums]).unwrap();
        drop(ledger);
        Connection::open(&path).unwrap().execute_batch(damage).unwrap();
        let ledger = Ledger::open(&path).unwrap();
        assert!(matches!(stored(&ledger, &session, sums), Err(Error::LedgerDamaged { .. })), "{damage}");
    }
}

/// A digit of a charge or of a total that changes on the disk must not open the budget again.
#[test]
fn changed_charges_and_totals_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut ledger = Ledger::open_or_create(&path).unwrap();
    let budget = ledger.set_budget("people", epsilon(1.0), delta()).unwrap();
    let session = ledger.reserve("people", purpose("a", Mu::from_numerator(123_456_789).unwrap())).unwrap();
    ledger.spend(&session).unwrap();
    drop(ledger);
    let bytes = fs::read(&path).unwrap();
    for number in [session.charge, budget.total] {
        let text = number.units().to_string();
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
        let mut changed = bytes.clone();
        changed[at] = if changed[at] == b'1' { b'2' } else { b'1' };
        fs::write(&path, changed).unwrap();
        let damaged = Ledger::open(&path).and_then(|ledger| ledger.budgets().map(|_| ()));
        assert!(matches!(damaged, Err(Error::LedgerDamaged { .. })));
    }
}

#[test]
fn an_interrupted_start_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    fs::write(&path, "").unwrap();
    let mut ledger = Ledger::open_or_create(&path).unwrap();
    ledger.set_budget("people", epsilon(1.0), delta()).unwrap();
}

#[test]
fn the_budget_is_chosen_only_where_there_is_no_doubt() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open_or_create(&folder.path().join("ledger.sqlite")).unwrap();
    assert!(ledger.choose_budget(None).is_err());
    ledger.set_budget("people", epsilon(1.0), delta()).unwrap();
    assert_eq!(ledger.choose_budget(None).unwrap(), "people");
    assert!(ledger.choose_budget(Some("animals")).is_err());
    ledger.set_budget("animals", epsilon(1.0), delta()).unwrap();
    let doubt = ledger.choose_budget(None).unwrap_err().to_string();
    assert!(doubt.contains("animals, people") && doubt.contains("--budget"), "{doubt}");
    assert_eq!(ledger.choose_budget(Some("animals")).unwrap(), "animals");
}

/// Budgets of two names may be about the same people, and two draws of one stage average the noise
/// away.
#[test]
fn one_study_and_party_is_charged_to_one_budget_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut ledger = Ledger::open_or_create(&path).unwrap();
    let mu = Mu::from_numerator(1000).unwrap();
    for budget in ["people", "patients", "clients"] {
        ledger.set_budget(budget, epsilon(1.0), delta()).unwrap();
    }
    let refused = |ledger: &mut Ledger, state: &str| {
        let error = ledger.reserve("patients", purpose("a", mu)).unwrap_err();
        let Error::OtherBudget { budget, other, .. } = &error else { panic!("{state}: {error}") };
        assert_eq!((budget.as_str(), other.as_str()), ("patients", "people"), "{state}");
        assert!(error.to_string().contains("--budget people"), "{error}");
        assert!(ledger.session("clients", "a", "north").is_err(), "{state}");
        assert_eq!(ledger.budget("patients").unwrap().unwrap().spent, MuSquared::ZERO, "{state}");
    };
    let session = ledger.reserve("people", purpose("a", mu)).unwrap();
    refused(&mut ledger, "reserved");
    ledger.spend(&session).unwrap();
    refused(&mut ledger, "spent");
    store(&mut ledger, &session, &[1, 2, 3]).unwrap();
    ledger.publish(&session, "hash").unwrap();
    refused(&mut ledger, "published");
    drop(ledger);
    let mut ledger = Ledger::open(&path).unwrap();
    refused(&mut ledger, "opened again");
    // Its own budget, another study and another party are as free as before.
    assert_eq!(ledger.reserve("people", purpose("a", mu)).unwrap().state, State::Published);
    ledger.reserve("patients", purpose("b", mu)).unwrap();
    ledger.reserve("patients", Purpose { party: "south", ..purpose("a", mu) }).unwrap();
    // What was given back before any noise was drawn may be charged elsewhere.
    let session = ledger.reserve("people", purpose("c", mu)).unwrap();
    ledger.give_back(&session).unwrap();
    ledger.reserve("patients", purpose("c", mu)).unwrap();
}

/// As version 0.1 left it: without refusals, and perhaps with two draws of one release.
#[test]
fn a_ledger_of_version_1_is_taken_over_with_all_that_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let (mut ledger, session) = spent_ledger(&path);
    store(&mut ledger, &session, &[1, 2, 3]).unwrap();
    ledger.set_budget("patients", epsilon(1.0), delta()).unwrap();
    let other = ledger.reserve("patients", purpose("b", Mu::from_numerator(1000).unwrap())).unwrap();
    ledger.spend(&other).unwrap();
    drop(ledger);
    let connection = Connection::open(&path).unwrap();
    let later = ["refusal", "raise", "step", "identity"].map(|table| format!("DROP TABLE {table};")).concat();
    connection.execute_batch(&format!("{later} PRAGMA user_version = 1;")).unwrap();
    drop(connection);
    for _ in 0..2 {
        let mut ledger = Ledger::open(&path).unwrap();
        assert_eq!(ledger.sessions().unwrap().len(), 2);
        assert!(stored(&ledger, &session, 3).unwrap() == Some(vec![1, 2, 3]));
        let before = ledger.refusals().unwrap().len();
        let refused = Error::Refused { reason: Refusal::Rows, source: Box::new(Error::Stopped) };
        ledger.record_refusal("a", "study", "north", &refused).unwrap();
        assert_eq!(ledger.refusals().unwrap().len(), before + 1);
    }
    // What a later version left is not understood.
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 5;").unwrap();
    assert!(matches!(Ledger::open(&path), Err(Error::LedgerDamaged { .. })));
}

/// What version 0.1 wrote, with checksums by hand: SHA-256 over the fields, each after its length
/// in eight bytes, the lowest first. A ledger that somebody has must open whatever becomes of the
/// code.
#[test]
fn a_ledger_that_version_1_wrote_is_read() {
    const LEDGER: &str = "
        CREATE TABLE budget (
            name TEXT PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL, total TEXT NOT NULL,
            created TEXT NOT NULL DEFAULT (datetime('now')), checksum BLOB NOT NULL
        ) STRICT;
        CREATE TABLE session (
            id INTEGER PRIMARY KEY, budget TEXT NOT NULL REFERENCES budget(name), study_id TEXT NOT NULL,
            study_name TEXT NOT NULL, party TEXT NOT NULL, charge TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('reserved', 'spent', 'published', 'void')), content_hash TEXT,
            created TEXT NOT NULL DEFAULT (datetime('now')), changed TEXT NOT NULL DEFAULT (datetime('now')),
            checksum BLOB NOT NULL
        ) STRICT;
        CREATE TABLE stage (
            session INTEGER NOT NULL REFERENCES session(id), position INTEGER NOT NULL, chunk INTEGER NOT NULL,
            chunks INTEGER NOT NULL, noised BLOB NOT NULL, checksum BLOB NOT NULL,
            PRIMARY KEY (session, position, chunk)
        ) STRICT;
        INSERT INTO budget VALUES ('patients', 1.0, 1e-6, '1033562124863635456', '2024-05-01 10:00:00',
            x'6fb3ef8532ebcebcb7cac1973a5c686a2bf826ebe11438823fa0fa8a17dbf44f');
        INSERT INTO session VALUES (1, 'patients', 'ab12', 'pressure', 'north', '1000000', 'published', 'cd34',
            '2024-05-02 10:00:00', '2024-05-02 10:05:00',
            x'141196f153b37f23cdd8b03eb2c950555110eceff882a71279641202f9d5f2a2');
        PRAGMA application_id = 1886352492;
        PRAGMA user_version = 1;";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    Connection::open(&path).unwrap().execute_batch(LEDGER).unwrap();
    for _ in 0..2 {
        let shown = Ledger::open(&path).unwrap().to_json().unwrap();
        assert_eq!(shown["budgets"][0]["budget"], "patients");
        assert_eq!(shown["budgets"][0]["spent"], "1000000");
        assert_eq!(shown["sessions"][0]["budget"], "patients");
        assert_eq!(shown["sessions"][0]["state"], "published");
    }
}

#[test]
fn refusals_are_kept_by_kind_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut ledger = Ledger::open_or_create(&path).unwrap();
    for reason in Refusal::ALL {
        let value = Error::Value {
            table: "secret.csv".to_owned(),
            column: "secret".to_owned(),
            row: 123_456,
            problem: "secret".into(),
        };
        let refused = Error::Refused { reason, source: Box::new(value) };
        let later = Error::Interrupted { stage: 2, source: Box::new(refused) };
        ledger.record_refusal("a", "study", "north", &later).unwrap();
    }
    // What does not depend on the data leaves no trace.
    ledger.record_refusal("a", "study", "north", &Error::Stopped).unwrap();
    let shown = ledger.to_json().unwrap()["refusals"].clone();
    assert!(!shown.to_string().contains("secret") && !shown.to_string().contains("123456"), "{shown}");
    drop(ledger);
    let ledger = Ledger::open(&path).unwrap();
    let reasons: Vec<Refusal> = ledger.refusals().unwrap().iter().map(|refused| refused.reason).collect();
    assert_eq!(reasons, Refusal::ALL);
    drop(ledger);
    assert!(!fs::read(&path).unwrap().windows(6).any(|bytes| bytes == b"secret"));
    Connection::open(&path)
        .unwrap()
        .execute_batch("UPDATE refusal SET party = 'south' WHERE id = 3")
        .unwrap();
    let changed = Ledger::open(&path).unwrap().refusals();
    assert!(matches!(changed, Err(Error::LedgerDamaged { .. })));
}

#[test]
fn a_budget_is_raised_explicitly_and_never_lowered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut ledger = Ledger::open_or_create(&path).unwrap();
    ledger.set_budget("people", epsilon(1.0), delta()).unwrap();
    let whole = Mu::analytic(epsilon(1.0), delta()).unwrap();
    ledger.reserve("people", purpose("a", whole)).unwrap();
    let one = Mu::from_numerator(1).unwrap();
    assert!(matches!(ledger.reserve("people", purpose("b", one)), Err(Error::Overspend(_))));

    for (smaller, delta) in [(1.0, 1e-6), (0.5, 1e-6), (1.0, 1e-7)] {
        let refused = ledger.prepare_raise("people", epsilon(smaller), Delta::new(delta).unwrap());
        assert!(matches!(refused, Err(Error::NoRaise { .. })), "{smaller} {delta}");
    }
    assert!(matches!(ledger.prepare_raise("nobody", epsilon(2.0), delta()), Err(Error::NoBudget(_))));

    let raise = ledger.prepare_raise("people", epsilon(2.0), delta()).unwrap();
    let promise = raise.promise().join(" ");
    for words in
        ["within ε = 1, δ = 1e-6", "within ε = 2, δ = 1e-6", "out already included", "cannot be taken back"]
    {
        assert!(promise.contains(words), "{words}: {promise}");
    }
    // Looking changes nothing.
    assert_eq!(ledger.budget("people").unwrap().unwrap(), raise.budget);
    assert!(ledger.raises().unwrap().is_empty());

    let raised = ledger.raise(&raise).unwrap();
    let total = Mu::analytic(epsilon(2.0), delta()).unwrap().squared();
    assert_eq!((raised.total, raised.spent), (total, whole.squared()), "what was spent stays spent");
    let largest = Mu::from_numerator(u64::try_from(raised.left().units().isqrt()).unwrap()).unwrap();
    let beyond = Mu::from_numerator(largest.numerator() + 1).unwrap();
    assert!(ledger.reserve("people", purpose("b", beyond)).is_err(), "the new total holds exactly");
    ledger.reserve("people", purpose("b", largest)).unwrap();
    // Agreed to when the budget was another one.
    assert!(matches!(ledger.raise(&raise), Err(Error::NoRaise { .. } | Error::BudgetChanged { .. })));
    assert_eq!(ledger.raises().unwrap().len(), 1);
}

#[test]
fn every_raise_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut ledger = Ledger::open_or_create(&path).unwrap();
    ledger.set_budget("people", epsilon(1.0), delta()).unwrap();
    for larger in [2.0, 3.0] {
        let raise = ledger.prepare_raise("people", epsilon(larger), delta()).unwrap();
        ledger.raise(&raise).unwrap();
    }
    drop(ledger);
    let ledger = Ledger::open(&path).unwrap();
    let steps: Vec<_> = ledger.raises().unwrap().iter().map(|raised| (raised.from, raised.to)).collect();
    assert_eq!(steps, [((1.0, 1e-6), (2.0, 1e-6)), ((2.0, 1e-6), (3.0, 1e-6))]);
    assert_eq!(ledger.to_json().unwrap()["raises"][1]["old_epsilon"], 2.0);
    drop(ledger);
    Connection::open(&path).unwrap().execute_batch("UPDATE raise SET epsilon = 2.5 WHERE id = 1").unwrap();
    assert!(matches!(Ledger::open(&path).unwrap().raises(), Err(Error::LedgerDamaged { .. })));
}

#[test]
fn what_is_refused_is_said_in_epsilon_with_a_remedy_that_is_possible() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open_or_create(&folder.path().join("ledger.sqlite")).unwrap();
    ledger.set_budget("people", epsilon(1.0), delta()).unwrap();
    let mu = |value: f64| Mu::analytic(epsilon(value), delta()).unwrap();
    ledger.reserve("people", purpose("a", mu(0.9))).unwrap();
    let asked = |study_id| purpose(study_id, mu(1.0));
    let Err(Error::Overspend(refused)) = ledger.reserve("people", asked("b")) else { panic!("it fits") };
    let possible = refused.possible.unwrap();
    let said = Error::Overspend(refused).to_string();
    assert!(said.contains(&format!("ε up to {possible}")) && said.contains("ε = 0.9"), "{said}");
    assert!(!said.contains('μ') && said.contains("potluck ledger raise"), "{said}");
    // What is offered is possible.
    ledger.reserve("people", purpose("c", mu(possible))).unwrap();
    let left = ledger.budget("people").unwrap().unwrap().left().units().isqrt();
    ledger.reserve("people", purpose("d", Mu::from_numerator(left as u64).unwrap())).unwrap();
    let said = ledger.reserve("people", asked("b")).unwrap_err().to_string();
    assert!(said.contains("Nothing is left") && !said.contains("up to"), "{said}");
}
