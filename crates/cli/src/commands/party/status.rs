//! `potluck party status`.

use anyhow::Result;
use potluck_release::events::EventLog;
use potluck_release::exchange::{PartyState, StudyDetails};
use potluck_release::{Release, Study};
use serde_json::{Value, json};

use super::membership::Membership;
use super::{because, check_continuity, drawn_release, was_revoked};
use crate::args::party::PartyStatus;
use crate::commands::Settings;
use crate::commands::hub::Connection;
use crate::output::table;

/// How far a party is.
struct Progress {
    party: String,
    /// The key that it registered when it accepted.
    key: Option<String>,
    /// The content hash of its release.
    released: Option<String>,
}

pub(super) fn run(arguments: &PartyStatus, settings: &Settings<'_>) -> Result<()> {
    let address = &arguments.membership.study;
    let memberships = Membership::find_all(&arguments.membership, arguments.party.as_deref())?;
    let hub = match memberships.first() {
        Some(membership) => membership.connect(&arguments.connection, settings)?,
        None => Connection::from(&arguments.connection).to(address.hub(), None, settings)?,
    };
    let details = hub.details(address.id())?;
    let log = hub.log(address.id())?.log;
    for membership in &memberships {
        check_continuity(&hub, &log, &membership.head)?;
    }
    let study = log.study();
    let progress: Vec<Progress> = study
        .definition()
        .parties()
        .iter()
        .map(|party| progress(party.name(), study, &log, &details))
        .collect();
    let mut own = Vec::new();
    for membership in &memberships {
        let drawn = drawn_release(membership, study, log.keys().get(&membership.party))?;
        own.push(Own::new(membership, &log, drawn.as_ref()));
    }
    // The one of us, if there is one.
    let you = own.first().filter(|_| own.len() == 1);
    let parties: Vec<Value> = progress
        .iter()
        .map(|party| json!({ "party": party.party, "key": party.key, "released": party.released }))
        .collect();
    let dataset = log.datasets().last();
    let value = json!({
        "study_id": study.id(),
        "study": study.definition().name(),
        "url": address.to_string(),
        "you": you.map(Own::to_json),
        "yours": own.iter().map(Own::to_json).collect::<Vec<_>>(),
        "parties": parties,
        "early": log.early(),
        "closed": log.closed().map(|(event, reason)| json!({ "time": event.time, "reason": reason })),
        "dataset": dataset.map(|file| json!({ "sha256": file.sha256, "size": file.size, "content_hash": file.content_hash })),
        "head": log.head(),
    });
    settings.printer.result(&value, || {
        let rows: Vec<Vec<String>> = progress
            .iter()
            .map(|party| {
                let short = |hash: &Option<String>| match hash {
                    Some(hash) => hash.chars().take(16).collect(),
                    None => "-".to_owned(),
                };
                vec![party.party.clone(), short(&party.key), short(&party.released)]
            })
            .collect();
        let public = match dataset {
            None if log.closed().is_some() => "there will be no public dataset".to_owned(),
            Some(file) => format!(
                "public dataset: content {}; `potluck hub get {address} --out FILE`",
                file.content_hash
            ),
            None if log.early() => "no public dataset yet; it appears with the first release".to_owned(),
            None => "no public dataset yet; it appears when every party has released".to_owned(),
        };
        let you = if let Some((event, reason)) = log.closed() {
            format!("closed by its coordinator on {}{}; nothing is left to do", event.time, because(reason))
        } else if own.is_empty() {
            format!("you have not accepted it from here; with an invitation, `potluck party accept {address} --token-file FILE --signing-key FILE` does")
        } else {
            let several = own.len() > 1;
            let lines: Vec<String> =
                own.iter().map(|own| own.in_words(&address.to_string(), several)).collect();
            lines.join("\n")
        };
        format!(
            "Study {:?}, id {}\n{}\n{public}\n{you}\n",
            study.definition().name(),
            study.id(),
            table(&["party", "accepted, key", "released, content"], &rows)
        )
    })
}

/// How far a party is: by the verified log if it takes part in this study, by the hub's word if in
/// one that this one extends.
fn progress(party: &str, study: &Study, log: &EventLog, details: &StudyDetails) -> Progress {
    let elsewhere = |state: &&PartyState| state.name == party && state.study != study.id();
    match details.party.iter().find(elsewhere) {
        Some(state) => Progress {
            party: party.to_owned(),
            key: state.key.as_deref().map(digits),
            released: state.release.as_ref().map(|file| digits(&file.content_hash)),
        },
        None => Progress {
            party: party.to_owned(),
            key: log.keys().get(party).map(ToString::to_string),
            released: log.releases().get(party).map(|file| file.content_hash.clone()),
        },
    }
}

/// What the hub says is a hash, fit for the terminal.
fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_hexdigit).take(64).collect()
}

/// How far we are.
struct Own {
    party: String,
    accepted: bool,
    /// Whether the coordinator undid our acceptance.
    revoked: bool,
    drawn: Option<String>,
    published: Published,
}

/// What is published of us.
#[derive(PartialEq)]
enum Published {
    Nothing,
    /// What we drew.
    Ours,
    /// Something that is not kept here.
    Another,
}

impl Own {
    fn new(membership: &Membership, log: &EventLog, drawn: Option<&Release>) -> Self {
        let released = log.releases().get(&membership.party);
        Self {
            party: membership.party.clone(),
            accepted: log.keys().contains_key(&membership.party),
            revoked: was_revoked(log, &membership.party),
            drawn: drawn.map(|release| release.content_hash().to_owned()),
            published: match released {
                None => Published::Nothing,
                Some(file) if drawn.is_some_and(|drawn| drawn.content_hash() == file.content_hash) => {
                    Published::Ours
                }
                Some(_) => Published::Another,
            },
        }
    }

    fn to_json(&self) -> Value {
        let released = self.published != Published::Nothing;
        json!({ "party": self.party, "accepted": self.accepted, "drawn": self.drawn, "released": released })
    }

    /// What is left to do; the commands say for whom if we are `several`.
    fn in_words(&self, address: &str, several: bool) -> String {
        let Self { party, .. } = self;
        let whose = if several { format!(" --party {party}") } else { String::new() };
        match (self.accepted, &self.drawn, &self.published) {
            (false, ..) if self.revoked => format!(
                "you ({party}): the coordinator undid your acceptance; accept again with the new invitation: `potluck party accept {address} --token-file FILE --signing-key FILE`"
            ),
            (false, ..) => format!(
                "you ({party}): no acceptance of yours stands; accept again with `potluck party accept {address} --signing-key FILE`"
            ),
            (true, None, Published::Nothing) => {
                format!(
                    "you ({party}): accepted; release with `potluck party release {address}{whose} --data FILE`"
                )
            }
            (true, Some(_), Published::Nothing) => format!(
                "you ({party}): the release is drawn but not uploaded; run `potluck party release {address}{whose}` again, at no further charge"
            ),
            (true, _, Published::Ours) => format!("you ({party}): released; nothing is left to do"),
            (true, _, Published::Another) => {
                format!("you ({party}): released, but the release that is published is not kept here")
            }
        }
    }
}
