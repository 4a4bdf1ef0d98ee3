//! Arguments of `potluck party`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use potluck_client::StudyAddress;

use super::hub::ConnectionArguments;
use super::{AcceptArguments, BudgetArguments, Data};

/// Which study, and what we keep of it.
#[derive(Args)]
pub(crate) struct MembershipArguments {
    /// The study: the address of its page
    #[arg(value_name = "URL")]
    pub(crate) study: StudyAddress,
    /// Folder with what is kept of this study [default: potluck/parties/STUDY-PARTY in the user's
    /// data folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

/// Which logs are taken.
#[derive(Args)]
pub(crate) struct LogArguments {
    /// Go on though the hub's log does not go on from where you last saw it: only if whoever runs
    /// the hub says that it was restored from a backup
    #[arg(long)]
    pub(crate) log_was_restored: bool,
}

#[derive(Subcommand)]
pub(crate) enum PartyCommand {
    /// Accept a study at a hub and register the key that you will sign your release with
    #[command(after_help = "\
Examples:
  potluck party accept URL --token-file north.invitation --signing-key north.key
  pass show hub/north | potluck party accept URL --token-file - --signing-key north.key --yes

The study is fetched and its numbers are computed again; you see what it promises before anything
is signed. Nothing is read from your table and nothing is charged. Accepting again with the same
key is harmless. Other people on this machine can see a token that stands on the command line
(`ps` shows it): prefer --token-file, standard input, or the variable POTLUCK_INVITATION.")]
    Accept(PartyAccept),
    /// Take an acceptance back, before you have released: because of the wrong key, say
    #[command(after_help = "\
Example:
  potluck party withdraw https://hub.example.org/studies/ID

The withdrawal is signed with the key that you registered; the study's log shows it. Then
`potluck party accept` takes another key, with the invitation that you have. If the key is lost, ask
the coordinator for `potluck hub study invite --undo-acceptance`. Nothing is charged or given back:
a release that is drawn stays in your ledger and is signed with the next key that you accept with.")]
    Withdraw(PartyWithdraw),
    /// Release your columns under a study that you accepted, and upload the release
    #[command(after_help = "\
Example:
  potluck party release https://hub.example.org/studies/ID --data patients.csv

The hub and the study are checked before anything is charged. If the connection breaks or the
machine stops, run the same command again: it goes on where it stopped, with the same noise, the
same bytes and no second charge. Once the release is drawn, the table is not read again.")]
    Release(PartyRelease),
    /// Show who has accepted and released, and what is left for you to do
    #[command(after_help = "Example:\n  potluck party status https://hub.example.org/studies/ID")]
    Status(PartyStatus),
}

#[derive(Args)]
pub(crate) struct PartyAccept {
    #[command(flatten)]
    pub(crate) membership: MembershipArguments,
    /// File with the invitation; `-` reads standard input [default: environment POTLUCK_INVITATION,
    /// or the invitation that you accepted this study with before]
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub(crate) token_file: Option<PathBuf>,
    /// The invitation itself; others on this machine can see it
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The key to sign the release with (from `potluck key new`); keep it until the release is out
    #[arg(long, value_name = "FILE")]
    pub(crate) signing_key: PathBuf,
    /// Do not ask before accepting
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) log: LogArguments,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}

#[derive(Args)]
pub(crate) struct PartyWithdraw {
    #[command(flatten)]
    pub(crate) membership: MembershipArguments,
    /// Which party you are, if you accepted for several
    #[arg(long, value_name = "NAME")]
    pub(crate) party: Option<String>,
    /// Do not ask before withdrawing
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}

#[derive(Args)]
pub(crate) struct PartyRelease {
    #[command(flatten)]
    pub(crate) membership: MembershipArguments,
    /// Which party you are, if you accepted for several
    #[arg(long, value_name = "NAME")]
    pub(crate) party: Option<String>,
    /// Your table: CSV (also gzipped), Parquet or Arrow IPC; `-` reads standard input; or the
    /// address of a PostgreSQL database, `postgresql://HOST/NAME`, whose rows psql brings here. Not
    /// needed once the release is drawn
    #[arg(long, value_name = "FILE", value_parser = Data::parser())]
    pub(crate) data: Option<Data>,
    /// The table or view in the database that --data names: `table`, `schema.table` or
    /// `catalog.schema.table`
    #[arg(long, value_name = "TABLE", requires = "data")]
    pub(crate) table: Option<String>,
    /// The column that holds ids
    #[arg(long, default_value = "id", value_name = "COL")]
    pub(crate) id: String,
    /// Leave columns alone that the study does not name
    #[arg(long)]
    pub(crate) ignore_extra: bool,
    #[command(flatten)]
    pub(crate) charged: BudgetArguments,
    /// Do not ask before publishing
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) accepted: AcceptArguments,
    #[command(flatten)]
    pub(crate) log: LogArguments,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}

#[derive(Args)]
pub(crate) struct PartyStatus {
    #[command(flatten)]
    pub(crate) membership: MembershipArguments,
    /// Which party you are [default: all that you accepted for]
    #[arg(long, value_name = "NAME")]
    pub(crate) party: Option<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}
