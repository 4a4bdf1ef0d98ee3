//! The commands that a party runs, ready to be copied into a shell.

use potluck_release::Study;

use crate::words::quoted;

/// What a party runs at a hub, from its invitation, which is in `PARTY.invitation`, to its release
/// of `PARTY.csv`.
#[derive(Clone, Debug)]
pub struct PartyCommands {
    /// Makes a key and accepts the study with it.
    pub accept: String,
    /// Sets a budget that this release uses up.
    pub budget: String,
    /// Releases, from that budget.
    pub release: String,
}

impl PartyCommands {
    /// The commands of a party of the study at this address.
    pub fn new(url: &str, study: &Study, party: &str) -> Self {
        let url = quoted(url);
        let file = |kind: &str| quoted(&format!("{party}.{kind}"));
        let (name, key) = (quoted(party), file("key"));
        let definition = study.definition();
        let (epsilon, delta) = (definition.epsilon().get(), definition.delta().get());
        Self {
            accept: format!(
                "potluck key new --out {key}\npotluck party accept {url} --token-file {} --signing-key {key}",
                file("invitation")
            ),
            budget: format!("potluck ledger init --budget {name} --epsilon {epsilon} --delta {delta}"),
            release: format!(
                "potluck party release {url} --party {name} --data {} --budget {name}",
                file("csv")
            ),
        }
    }
}
