//! Arguments of `potluck hub`, and of all that talks to a hub.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use potluck_client::{HubAddress, StudyAddress};

/// How to reach a hub.
#[derive(Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArguments {
    /// Trust this authority's certificate (PEM) instead of the well-known ones, for hubs with one of their own
    #[arg(long, value_name = "FILE", env = "POTLUCK_CA_CERT")]
    pub(crate) ca_cert: Option<PathBuf>,
    /// Allow tokens to travel unencrypted to another machine
    #[arg(long)]
    pub(crate) insecure_http: bool,
    /// Go on trying for so many seconds since something last went well
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) retry_for: u64,
}

/// Who coordinates.
#[derive(Args)]
pub(crate) struct CoordinatorArguments {
    /// File with the coordinator's token; `-` reads standard input [default: environment POTLUCK_HUB_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum HubCommand {
    /// Create a study at a hub, and invite its parties
    #[command(subcommand)]
    Study(HubStudyCommand),
    /// Download the public dataset of a study and verify it against the event log
    Get(HubGet),
}

#[derive(Subcommand)]
pub(crate) enum HubStudyCommand {
    /// Create a study; prints its address and one invitation a party
    #[command(after_help = "\
Examples:
  potluck hub study create study.toml --hub https://hub.example.org --token-file me.token
  potluck hub study create study.toml --hub https://hub.example.org --out invitations

Whoever has an invitation can accept in the party's name: give each to its party over a private
channel. An invitation is shown once; `potluck hub study invite` makes a new one. Creating the
same study again is harmless.")]
    Create(HubStudyCreate),
    /// Invite a party anew; the invitation before is void
    #[command(after_help = "\
Example:
  potluck hub study invite https://hub.example.org/studies/ID north --token-file me.token")]
    Invite(HubStudyInvite),
}

#[derive(Args)]
pub(crate) struct HubStudyCreate {
    /// The sealed study
    #[arg(value_name = "STUDY")]
    pub(crate) study: PathBuf,
    /// The hub
    #[arg(long, value_name = "URL")]
    pub(crate) hub: HubAddress,
    #[command(flatten)]
    pub(crate) coordinator: CoordinatorArguments,
    /// Let a public dataset appear before every party has released, with those present
    #[arg(long)]
    pub(crate) early: bool,
    /// Write each invitation to a file of its own in this folder (mode 0600) instead of printing it
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}

#[derive(Args)]
pub(crate) struct HubStudyInvite {
    /// The study: the address of its page
    #[arg(value_name = "URL")]
    pub(crate) study: StudyAddress,
    /// The party
    #[arg(value_name = "PARTY")]
    pub(crate) party: String,
    #[command(flatten)]
    pub(crate) coordinator: CoordinatorArguments,
    /// Write the invitation to this file (mode 0600) instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck hub get https://hub.example.org/studies/ID --out public.parquet --events events.jsonl
  potluck fit public.parquet --label pressure

Everything is checked before the file gets its name: hashes, signatures, the keys that the parties
registered, and the event log from its first event on.")]
pub(crate) struct HubGet {
    /// The study: the address of its page
    #[arg(value_name = "URL")]
    pub(crate) study: StudyAddress,
    /// Where the public dataset goes
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Keep the event log in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}
