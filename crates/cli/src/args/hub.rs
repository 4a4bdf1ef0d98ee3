//! Arguments of `potluck hub`, and of all that talks to a hub.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use potluck_client::{HubAddress, StudyAddress};

/// How to reach a hub.
#[derive(Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArguments {
    /// Trust this authority's certificate (PEM) instead of the well-known ones, for hubs with one
    /// of their own
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
    /// File with the coordinator's token; `-` reads standard input [default: environment
    /// POTLUCK_HUB_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum HubCommand {
    /// Serve studies, releases and public datasets: an API for programs and pages for people
    #[command(after_help = "\
Examples:
  potluck hub serve --data hub                       try it on this machine, at http://127.0.0.1:8080
  potluck hub serve --data /var/lib/potluck --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem
  potluck hub serve --config hub.toml                settings from a file; flags and environment go before it

It stops when it gets SIGTERM or Ctrl-C, after requests that are under way. docs/HUB.md says how to run it for real.")]
    Serve(HubServe),
    /// Let somebody create studies
    #[command(subcommand)]
    Coordinator(CoordinatorCommand),
    /// Copy everything that a hub holds to another folder, while it runs or not
    #[command(
        after_help = "Example:\n  potluck hub backup --data /var/lib/potluck --out /backup/potluck-today"
    )]
    Backup {
        #[command(flatten)]
        data: HubData,
        /// The new folder
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
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
  potluck hub study invite https://hub.example.org/studies/ID north --token-file me.token

A party that has accepted keeps the key that it registered. If that was the wrong one and the party
cannot take it back itself (`potluck party withdraw`), because it is lost, say, `--undo-acceptance`
lets it accept with another; everyone sees that in the study's log.")]
    Invite(HubStudyInvite),
    /// Close a study that nobody has released under yet: nothing more can happen to it
    #[command(after_help = "\
Example:
  potluck hub study close https://hub.example.org/studies/ID --reason 'the bounds of age were wrong' --token-file me.token

A study that is closed stays readable. After the first release a study cannot be closed: what is
published stays published.")]
    Close(HubStudyClose),
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
    /// Undo the party's acceptance, before it has released: it can then accept with another key
    #[arg(long)]
    pub(crate) undo_acceptance: bool,
    /// Write the invitation to this file (mode 0600) instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}

#[derive(Args)]
pub(crate) struct HubStudyClose {
    /// The study: the address of its page
    #[arg(value_name = "URL")]
    pub(crate) study: StudyAddress,
    /// Why, for everyone to read: one line of at most 500 characters
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) coordinator: CoordinatorArguments,
    /// Do not ask before closing
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  potluck hub get https://hub.example.org/studies/ID --out public.parquet --events events.jsonl
  potluck fit public.parquet --label pressure

Everything is checked before the file gets its name: hashes, signatures, the keys that the parties
registered, and the event log from its first event on. If the study extends others, each party is
checked against the log of the study that it released under; `--events events.jsonl` then keeps those
logs too, as events.ID.jsonl with the id of their study.")]
pub(crate) struct HubGet {
    /// The study: the address of its page
    #[arg(value_name = "URL")]
    pub(crate) study: StudyAddress,
    /// Where the public dataset goes
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Keep the event log in this file, and those of studies that it extends beside it
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}

#[derive(Args)]
pub(crate) struct HubData {
    /// The folder that holds everything
    #[arg(long, value_name = "DIR", env = "POTLUCK_HUB_DATA")]
    pub(crate) data: PathBuf,
}

#[derive(Args)]
pub(crate) struct HubServe {
    /// A file with settings, in TOML; names are those of the options
    #[arg(long, value_name = "FILE", env = "POTLUCK_HUB_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The folder that holds everything; made if it does not exist
    #[arg(long, value_name = "DIR", env = "POTLUCK_HUB_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Address and port to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT", env = "POTLUCK_HUB_LISTEN")]
    pub(crate) listen: Option<SocketAddr>,
    /// Certificate chain, in PEM form
    #[arg(long, value_name = "FILE", env = "POTLUCK_HUB_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", env = "POTLUCK_HUB_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Serve plain HTTP beyond this machine: only behind a proxy that does TLS
    #[arg(long, env = "POTLUCK_HUB_ALLOW_PLAIN_HTTP", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) allow_plain_http: Option<bool>,
    /// The address that people use, if it is not that of the request, as behind a proxy
    #[arg(long, value_name = "URL", env = "POTLUCK_HUB_PUBLIC_URL")]
    pub(crate) public_url: Option<String>,
    /// The name that pages show [default: potluck hub]
    #[arg(long, env = "POTLUCK_HUB_NAME")]
    pub(crate) name: Option<String>,
    /// Requests that a client may make in a minute; 0 for no limit [default: 600]
    #[arg(long, value_name = "N", env = "POTLUCK_HUB_REQUESTS_PER_MINUTE")]
    pub(crate) requests_per_minute: Option<u32>,
    /// A proxy in front of the hub, whose X-Forwarded-For is believed
    #[arg(long, value_name = "ADDRESS", env = "POTLUCK_HUB_TRUSTED_PROXY")]
    pub(crate) trusted_proxy: Option<IpAddr>,
    /// Seconds after which a client that sends nothing is let go [default: 15]
    #[arg(long, value_name = "SECONDS", env = "POTLUCK_HUB_CLIENT_TIMEOUT")]
    pub(crate) client_timeout: Option<NonZero<u32>>,
    /// Connections at the same time, half of them at most from one client [default: 800]
    #[arg(long, value_name = "N", env = "POTLUCK_HUB_CONNECTIONS")]
    pub(crate) connections: Option<NonZero<u32>>,
}

#[derive(Subcommand)]
pub(crate) enum CoordinatorCommand {
    /// Add a coordinator and print the token to create studies with; it is shown once
    #[command(after_help = "Example:\n  potluck hub coordinator add ada --data /var/lib/potluck > ada.token")]
    Add {
        /// The coordinator's name
        name: String,
        #[command(flatten)]
        data: HubData,
        /// Give a coordinator who is there already a new token; the old one is void
        #[arg(long)]
        replace: bool,
    },
    /// Show who may create studies
    #[command(after_help = "Example:\n  potluck hub coordinator list --data /var/lib/potluck")]
    List {
        #[command(flatten)]
        data: HubData,
    },
    /// Remove a coordinator: token and sessions are void at once; their studies stay
    #[command(after_help = "Example:\n  potluck hub coordinator remove ada --data /var/lib/potluck")]
    Remove {
        /// The coordinator's name
        name: String,
        #[command(flatten)]
        data: HubData,
    },
}
