//! What is known outside of a ledger: an older copy of it takes no charge and draws no noise.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use potluck_core::accounting::{Delta, Epsilon, Mu};
use potluck_party::ledger::{Purpose, Session};
use potluck_party::{Error, Ledger};
use rusqlite::Connection;

fn purpose(study_id: &str) -> Purpose<'_> {
    let asked = (Epsilon::new(1.0).unwrap(), Delta::new(1e-6).unwrap());
    let mu = Mu::from_numerator(1 << 28).unwrap();
    Purpose { study_id, study_name: study_id, party: "north", asked, mu }
}

fn draw(ledger: &mut Ledger, session: &Session, position: u32) -> Result<(), Error> {
    ledger.store_stage(session, position, 2, |store| store.push(&[i64::from(position), 7]))
}

/// Releases a study of one stage.
fn release(ledger: &mut Ledger, study_id: &str) -> Result<(), Error> {
    let session = ledger.reserve("people", purpose(study_id))?;
    ledger.spend(&session)?;
    draw(ledger, &session, 0)?;
    ledger.publish(&session, "hash")
}

/// A folder with a ledger that has a budget.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let (epsilon, delta) = purpose("").asked;
    Ledger::open_or_create(&path).unwrap().set_budget("people", epsilon, delta).unwrap();
    (folder, path)
}

fn copy(from: &Path, to: &str) -> PathBuf {
    let to = from.with_file_name(to);
    fs::copy(from, &to).unwrap();
    to
}

#[test]
fn a_ledger_restored_from_a_backup_takes_no_charge_until_the_newest_is_back() {
    let (_folder, path) = place();
    release(&mut Ledger::open(&path).unwrap(), "first").unwrap();
    let backup = copy(&path, "backup.sqlite");
    release(&mut Ledger::open(&path).unwrap(), "second").unwrap();
    let newest = copy(&path, "newest.sqlite");

    fs::copy(&backup, &path).unwrap();
    let mut ledger = Ledger::open(&path).unwrap();
    let refused = release(&mut ledger, "third");
    let Err(Error::LedgerBehind(behind)) = &refused else { panic!("{refused:?}") };
    assert_eq!(behind.forgotten.len(), 1);
    assert_eq!(behind.forgotten[0].study_name, "second");
    let said = behind.to_string();
    // What the words offer is what the newest copy has left.
    let left = Ledger::open(&newest).unwrap().budget("people").unwrap().unwrap().epsilon_left();
    assert!(left > 0.0 && said.contains(&format!("ε = {left} at δ = 1e-6")), "{said}");
    assert!(ledger.check_budget("people", &purpose("third")).is_err(), "nobody is asked in vain");
    assert_eq!(ledger.to_json().unwrap()["forgotten"][0]["study"], "second");
    // The same release again would be a second draw of the same sums.
    assert!(matches!(release(&mut ledger, "second"), Err(Error::LedgerBehind(_))));
    drop(ledger);

    fs::copy(&newest, &path).unwrap();
    release(&mut Ledger::open(&path).unwrap(), "third").unwrap();
    assert!(Ledger::open(&path).unwrap().forgotten().unwrap().is_empty());
}

#[test]
fn noise_that_a_copy_has_forgotten_is_not_drawn_again() {
    let (_folder, path) = place();
    let mut ledger = Ledger::open(&path).unwrap();
    let session = ledger.reserve("people", purpose("study")).unwrap();
    ledger.spend(&session).unwrap();
    draw(&mut ledger, &session, 0).unwrap();
    drop(ledger);
    let backup = copy(&path, "backup.sqlite");
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.spend(&session).unwrap();
    draw(&mut ledger, &session, 1).unwrap();
    drop(ledger);

    fs::copy(&backup, &path).unwrap();
    let mut ledger = Ledger::open(&path).unwrap();
    let taken_up = ledger.reserve("people", purpose("study")).unwrap();
    let Err(Error::LedgerBehind(behind)) = ledger.spend(&taken_up) else { panic!("it goes on") };
    // Its charge is not forgotten, so all that was left is left.
    assert_eq!(behind.left[0].spent, ledger.budgets().unwrap()[0].spent);
}

#[test]
fn two_copies_that_are_used_in_turn_are_noticed() {
    let (_folder, path) = place();
    let other = copy(&path, "other.sqlite");
    release(&mut Ledger::open(&path).unwrap(), "first").unwrap();
    assert!(matches!(release(&mut Ledger::open(&other).unwrap(), "first"), Err(Error::LedgerBehind(_))));
    release(&mut Ledger::open(&path).unwrap(), "second").unwrap();
}

/// It has more than its witness: nothing is wrong with that, and the witness catches up.
#[test]
fn a_ledger_that_was_used_elsewhere_goes_on() {
    let (_folder, path) = place();
    release(&mut Ledger::open(&path).unwrap(), "first").unwrap();
    let moved = |statement: &str| {
        Connection::open(&path).unwrap().execute(statement, []).unwrap();
    };
    // Under another name it has no witness, as on another machine.
    let name: String = Connection::open(&path)
        .unwrap()
        .query_row("SELECT name FROM identity", [], |row| row.get(0))
        .unwrap();
    moved("UPDATE identity SET name = name || '-elsewhere'");
    release(&mut Ledger::open(&path).unwrap(), "second").unwrap();
    moved(&format!("UPDATE identity SET name = '{name}'"));
    release(&mut Ledger::open(&path).unwrap(), "third").unwrap();
    assert!(Ledger::open(&path).unwrap().forgotten().unwrap().is_empty());
}

/// A step that was edited out does not leave a ledger that looks whole.
#[test]
fn steps_that_were_edited_are_noticed() {
    let (_folder, path) = place();
    for study in ["first", "second"] {
        release(&mut Ledger::open(&path).unwrap(), study).unwrap();
    }
    for edit in ["UPDATE step SET what = 'stage 9' WHERE position = 2", "DELETE FROM step WHERE position = 1"]
    {
        let damaged = copy(&path, "damaged.sqlite");
        Connection::open(&damaged).unwrap().execute(edit, []).unwrap();
        let shown = Ledger::open(&damaged).unwrap().forgotten();
        assert!(matches!(shown, Err(Error::LedgerDamaged { .. })), "{edit}");
    }
}
