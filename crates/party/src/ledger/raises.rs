//! Budgets that were raised: by whom holds the ledger, explicitly, and never without a trace.

use potluck_core::accounting::{Delta, Epsilon, Mu};
use rusqlite::params;
use serde_json::{Value, json};

use super::{Budget, Ledger, budget_checksum, checksum};
use crate::Error;

pub(super) const SCHEMA: &str = "
CREATE TABLE raise (
    id INTEGER PRIMARY KEY,
    budget TEXT NOT NULL REFERENCES budget(name),
    old_epsilon REAL NOT NULL,
    old_delta REAL NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    created TEXT NOT NULL DEFAULT (datetime('now')),
    checksum BLOB NOT NULL
) STRICT;
";

/// A budget was raised.
#[derive(Clone, Debug, PartialEq)]
pub struct Raised {
    /// The budget.
    pub budget: String,
    /// ε and δ that were promised before.
    pub from: (f64, f64),
    /// ε and δ that are promised since.
    pub to: (f64, f64),
    /// When (UTC).
    pub created: String,
}

impl Raised {
    /// It for machines.
    pub fn to_json(&self) -> Value {
        json!({
            "budget": self.budget,
            "old_epsilon": self.from.0,
            "old_delta": self.from.1,
            "epsilon": self.to.0,
            "delta": self.to.1,
            "created": self.created,
        })
    }

    fn checksum(&self) -> Vec<u8> {
        let bits = |value: f64| value.to_bits().to_string();
        let [a, b, c, d] = [self.from.0, self.from.1, self.to.0, self.to.1].map(bits);
        checksum(&["raise", &self.budget, &a, &b, &c, &d])
    }
}

/// A larger budget that nobody has agreed to yet.
pub struct Raise {
    /// The budget as it is.
    pub budget: Budget,
    /// ε and δ that would be promised.
    pub to: (Epsilon, Delta),
}

impl Raise {
    /// What it means for the people in the table, for whoever has to agree.
    pub fn promise(&self) -> Vec<String> {
        let Budget { name, epsilon, delta, .. } = &self.budget;
        let (new_epsilon, new_delta) = &self.to;
        vec![
            format!(
                "So far, everything ever charged to budget {name:?} stays within ε = {epsilon}, δ = {delta:e}."
            ),
            format!(
                "Raised, it stays within ε = {}, δ = {new_delta}, and nothing better is promised any more to anyone in the table, for releases that are out already included. A promise that was made to them is replaced by a weaker one.",
                new_epsilon.get()
            ),
            "The ledger records it, and it cannot be taken back.".to_owned(),
        ]
    }
}

impl Ledger {
    /// Looks whether a budget would be larger with this ε and δ; nothing is changed.
    pub fn prepare_raise(&self, name: &str, epsilon: Epsilon, delta: Delta) -> Result<Raise, Error> {
        let budget = self.known_budget(name)?;
        let total = Mu::analytic(epsilon, delta).map_err(potluck_release::Error::from)?.squared();
        if total <= budget.total {
            return Err(Error::NoRaise {
                budget: name.to_owned(),
                epsilon: budget.epsilon,
                delta: budget.delta,
            });
        }
        Ok(Raise { budget, to: (epsilon, delta) })
    }

    /// Raises a budget that people agreed to raise, and records that.
    ///
    /// # Privacy
    /// From here on Claim L (docs/PRIVACY.md#ledger) holds with the larger total, for everything
    /// that was ever charged to the budget; the smaller one is given up.
    pub fn raise(&mut self, raise: &Raise) -> Result<Budget, Error> {
        let (name, (epsilon, delta)) = (raise.budget.name.as_str(), raise.to);
        // Somebody else may have raised it while people thought.
        let Raise { budget, .. } = self.prepare_raise(name, epsilon, delta)?;
        if (budget.epsilon, budget.delta) != (raise.budget.epsilon, raise.budget.delta) {
            return Err(Error::BudgetChanged { budget: budget.name });
        }
        let total = Mu::analytic(epsilon, delta).map_err(potluck_release::Error::from)?.squared();
        let raised = Raised {
            budget: name.to_owned(),
            from: (budget.epsilon, budget.delta),
            to: (epsilon.get(), delta.get()),
            created: String::new(),
        };
        let path = self.path.clone();
        let failed = |error: rusqlite::Error| super::sqlite_error(&path, &error);
        let transaction = self.connection.transaction().map_err(failed)?;
        transaction
            .execute(
                "INSERT INTO raise (budget, old_epsilon, old_delta, epsilon, delta, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![name, raised.from.0, raised.from.1, raised.to.0, raised.to.1, raised.checksum()],
            )
            .map_err(failed)?;
        transaction
            .execute(
                "UPDATE budget SET epsilon = ?2, delta = ?3, total = ?4, checksum = ?5 WHERE name = ?1",
                params![
                    name,
                    epsilon.get(),
                    delta.get(),
                    total.units().to_string(),
                    budget_checksum(name, epsilon.get(), delta.get(), total)
                ],
            )
            .map_err(failed)?;
        transaction.commit().map_err(failed)?;
        self.known_budget(name)
    }

    /// Every time a budget was raised, oldest first.
    pub fn raises(&self) -> Result<Vec<Raised>, Error> {
        let mut statement = self
            .connection
            .prepare("SELECT budget, old_epsilon, old_delta, epsilon, delta, created, checksum FROM raise ORDER BY id")
            .map_err(|error| self.error(error))?;
        let rows = statement
            .query_map([], |row| {
                let raised = Raised {
                    budget: row.get(0)?,
                    from: (row.get(1)?, row.get(2)?),
                    to: (row.get(3)?, row.get(4)?),
                    created: row.get(5)?,
                };
                Ok((raised, row.get::<_, Vec<u8>>(6)?))
            })
            .map_err(|error| self.error(error))?;
        let mut raises = Vec::new();
        for row in rows {
            let (raised, checksum) = row.map_err(|error| self.error(error))?;
            if checksum != raised.checksum() {
                return Err(self.damaged("a raise of a budget does not match its checksum"));
            }
            raises.push(raised);
        }
        Ok(raises)
    }
}
