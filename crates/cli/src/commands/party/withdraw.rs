//! `potluck party withdraw`.

use anyhow::Result;
use potluck_release::events::Withdrawal;
use potluck_release::signing::SigningKey;
use serde_json::json;

use super::membership::Membership;
use super::{check_open, current_log};
use crate::args::party::PartyWithdraw;
use crate::commands::Settings;
use crate::exit::WrongUsage;

pub(super) fn run(arguments: &PartyWithdraw, settings: &Settings<'_>) -> Result<()> {
    let address = &arguments.membership.study;
    let mut membership = Membership::find(&arguments.membership, arguments.party.as_deref())?
        .ok_or_else(|| WrongUsage("you have not accepted this study from here".to_owned()))?;
    let hub = membership.connect(&arguments.connection, settings)?;
    let log = current_log(&hub, &membership)?;
    check_open(&log)?;
    let party = membership.party.clone();
    if log.releases().contains_key(&party) {
        let message = format!(
            "{party} has released, and what is published stays published; its acceptance cannot be undone"
        );
        return Err(WrongUsage(message).into());
    }
    let (Some(acceptance), Some(registered)) = (log.acceptance(&party), log.keys().get(&party)) else {
        return Err(WrongUsage(format!("no acceptance of {party} stands; there is nothing to undo")).into());
    };
    let key = SigningKey::load(&membership.signing_key).ok().filter(|key| key.public() == *registered);
    let key = key.ok_or_else(|| {
        WrongUsage(format!(
            "{} does not hold the key that was registered ({registered}), which alone can sign the withdrawal; put it back there, or ask the coordinator for `potluck hub study invite {address} {party} --undo-acceptance`",
            membership.signing_key.display()
        ))
    })?;
    let question = format!("Take back the acceptance of {party}, with the key {registered}?");
    settings.printer.confirm(arguments.yes, &question, "not agreed; nothing was withdrawn")?;
    hub.withdraw(&Withdrawal::new(&membership.study_id, &party, acceptance, &key))?;
    let log = current_log(&hub, &membership)?;
    if log.keys().contains_key(&party) {
        return Err(hub.unsound("the event log", "our withdrawal is not in it").into());
    }
    let drawn = membership.set_release_aside()?;
    log.head().clone_into(&mut membership.head);
    membership.save()?;
    let value = json!({
        "study_id": membership.study_id,
        "url": address.to_string(),
        "party": party,
        "drawn": drawn,
        "head": log.head(),
    });
    settings.printer.result(&value, || {
        let drawn = if drawn {
            "The release that is drawn stays charged; after the next acceptance it is written again from the ledger, with the same noise.\n"
        } else {
            ""
        };
        format!(
            "{party} has withdrawn from {address}\n{drawn}Next: potluck party accept {address} --signing-key FILE\n"
        )
    })
}
