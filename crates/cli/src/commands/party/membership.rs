//! What a party keeps of a study that it accepted at a hub: a folder that only its owner can read.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use potluck_client::{Hub, HubAddress, StudyAddress, Token};
use potluck_party::ledger::data_folder;
use potluck_release::files::{Audience, Existing, check_writable, write_file};
use potluck_release::{Error, FORMAT, Study};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::args::hub::ConnectionArguments;
use crate::args::party::MembershipArguments;
use crate::commands::Settings;
use crate::commands::hub::Connection;
use crate::exit::WrongUsage;

const KIND: &str = "membership";

/// A study that was accepted. It has no `Debug`: it holds the party's token.
pub(super) struct Membership {
    folder: PathBuf,
    pub(super) hub: HubAddress,
    pub(super) study_id: String,
    pub(super) party: String,
    pub(super) token: Token,
    pub(super) signing_key: PathBuf,
    pub(super) ca_cert: Option<PathBuf>,
    pub(super) insecure_http: bool,
    /// The last event of the log that we have seen.
    pub(super) head: String,
}

/// The file, borrowing the token so that no copy of it stays behind.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<'a> {
    potluck: Cow<'a, str>,
    format: u32,
    hub: Cow<'a, str>,
    study_id: Cow<'a, str>,
    party: Cow<'a, str>,
    #[serde(borrow)]
    token: Cow<'a, str>,
    signing_key: PathBuf,
    ca_certificate: Option<PathBuf>,
    insecure_http: bool,
    head: Cow<'a, str>,
}

impl Membership {
    /// A membership to be kept in this folder.
    pub(super) fn new(
        folder: PathBuf,
        address: &StudyAddress,
        party: &str,
        token: Token,
        signing_key: PathBuf,
    ) -> Self {
        Self {
            folder,
            hub: address.hub().clone(),
            study_id: address.id().to_owned(),
            party: party.to_owned(),
            token,
            signing_key,
            ca_cert: None,
            insecure_http: false,
            head: String::new(),
        }
    }

    /// The membership that is kept for a study: in the folder named, or in the user's own.
    pub(super) fn find(arguments: &MembershipArguments, party: Option<&str>) -> Result<Option<Self>> {
        let mut found = Self::find_all(arguments, party)?;
        if found.len() > 1 {
            let names: Vec<&str> = found.iter().map(|membership| membership.party.as_str()).collect();
            let message = format!("you accepted for {}; say with --party which one", names.join(" and "));
            return Err(WrongUsage(message).into());
        }
        Ok(found.pop())
    }

    /// All memberships that are kept for a study, in the order of their parties' names.
    pub(super) fn find_all(arguments: &MembershipArguments, party: Option<&str>) -> Result<Vec<Self>> {
        let found: Vec<Self> = match &arguments.state {
            Some(folder) => Self::load(folder)?.into_iter().collect(),
            None => Self::find_among(&parties_folder()?, arguments.study.id(), party)?,
        };
        for membership in &found {
            membership.check_place(&arguments.study, party)?;
        }
        Ok(found)
    }

    /// Checks that this is the membership that is asked for.
    fn check_place(&self, address: &StudyAddress, party: Option<&str>) -> Result<()> {
        if self.study_id != address.id() || party.is_some_and(|party| party != self.party) {
            let message = format!("{} belongs to another study or party", self.folder.display());
            return Err(WrongUsage(message).into());
        }
        if self.hub != *address.hub() {
            // A token goes to the hub that it is for, and nowhere else.
            let message = format!(
                "you accepted this study at {}, not at {}; use that address, or accept it at the new one first",
                self.hub,
                address.hub()
            );
            return Err(WrongUsage(message).into());
        }
        Ok(())
    }

    fn find_among(parties: &Path, study_id: &str, party: Option<&str>) -> Result<Vec<Self>> {
        if let Some(party) = party {
            return Ok(Self::load(&parties.join(format!("{study_id}-{party}")))?.into_iter().collect());
        }
        let Ok(folders) = fs::read_dir(parties) else { return Ok(Vec::new()) };
        let prefix = format!("{study_id}-");
        let mut found = Vec::new();
        for folder in folders.flatten() {
            if folder.file_name().to_string_lossy().starts_with(&prefix) {
                found.extend(Self::load(&folder.path())?);
            }
        }
        found.sort_by(|one, other| one.party.cmp(&other.party));
        Ok(found)
    }

    /// The membership in a folder, if there is one.
    pub(super) fn load(folder: &Path) -> Result<Option<Self>> {
        let path = file(folder);
        if !path.exists() {
            return Ok(None);
        }
        let read = |source| Error::Read { path: path.clone(), source };
        let text = Zeroizing::new(fs::read_to_string(&path).map_err(read)?);
        // The reason is left out: it might quote the token.
        let unusable = || Error::NotOurs {
            path: path.clone(),
            expected: KIND,
            detail: "it is not in the expected form; accept the study again".to_owned(),
        };
        let stored: Stored<'_> = serde_json::from_str(&text).map_err(|_| unusable())?;
        if stored.potluck != KIND || stored.format != FORMAT {
            return Err(unusable().into());
        }
        Ok(Some(Self {
            folder: folder.to_owned(),
            hub: HubAddress::parse(&stored.hub)?,
            study_id: stored.study_id.into_owned(),
            party: stored.party.into_owned(),
            token: Token::new(&stored.token)?,
            signing_key: stored.signing_key,
            ca_cert: stored.ca_certificate,
            insecure_http: stored.insecure_http,
            head: stored.head.into_owned(),
        }))
    }

    /// Keeps the membership.
    pub(super) fn save(&self) -> Result<()> {
        let stored = Stored {
            potluck: KIND.into(),
            format: FORMAT,
            hub: self.hub.to_string().into(),
            study_id: self.study_id.as_str().into(),
            party: self.party.as_str().into(),
            token: self.token.secret().into(),
            signing_key: self.signing_key.clone(),
            ca_certificate: self.ca_cert.clone(),
            insecure_http: self.insecure_http,
            head: self.head.as_str().into(),
        };
        let text = Zeroizing::new(serde_json::to_vec_pretty(&stored)?);
        Ok(write_file(&file(&self.folder), &text, Existing::Replace, Audience::Owner)?)
    }

    /// Keeps the study as it was accepted.
    pub(super) fn save_study(&self, text: &str) -> Result<()> {
        Ok(write_file(&self.study_file(), text.as_bytes(), Existing::Replace, Audience::Public)?)
    }

    /// The study as it was accepted.
    pub(super) fn study(&self) -> Result<Study> {
        Ok(Study::load(&self.study_file())?)
    }

    pub(super) fn study_file(&self) -> PathBuf {
        self.folder.join("study.toml")
    }

    /// Where our release is, once it is drawn.
    pub(super) fn release_file(&self) -> PathBuf {
        self.folder.join(format!("{}.release.parquet", self.party))
    }

    /// Moves our release out of the way because it is signed with a key that counts no more; the
    /// ledger keeps what is in it. Whether there was one.
    pub(super) fn set_release_aside(&self) -> Result<bool> {
        let signed = self.release_file();
        if !signed.exists() {
            return Ok(false);
        }
        let aside = self.folder.join(format!("{}.withdrawn.parquet", self.party));
        fs::rename(&signed, &aside).map_err(|source| Error::Write { path: aside, source })?;
        Ok(true)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The hub, reached as it was when the study was accepted unless people say otherwise now.
    pub(super) fn connect(&self, arguments: &ConnectionArguments, settings: &Settings<'_>) -> Result<Hub> {
        let mut connection = Connection::from(arguments);
        connection.ca_cert = connection.ca_cert.or_else(|| self.ca_cert.clone());
        connection.insecure_http |= self.insecure_http;
        connection.to(&self.hub, Some(self.token.clone()), settings)
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("membership.json")
}

/// The folder for the memberships of this user.
fn parties_folder() -> Result<PathBuf> {
    data_folder().map(|folder| folder.join("parties")).ok_or_else(|| {
        WrongUsage("there is no home folder to keep the membership in: name one with --state".to_owned())
            .into()
    })
}

/// The folder for a membership, made if it does not exist, and writable; and the membership that is
/// in it.
pub(super) fn prepare_folder(
    arguments: &MembershipArguments,
    party: &str,
) -> Result<(PathBuf, Option<Membership>)> {
    let folder = match &arguments.state {
        Some(folder) => folder.clone(),
        None => parties_folder()?.join(format!("{}-{party}", arguments.study.id())),
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
    check_writable(&file(&folder), Existing::Replace)?;
    let kept = Membership::load(&folder)?;
    if let Some(there) = &kept
        && (there.study_id != arguments.study.id() || there.party != party)
    {
        let message =
            format!("{} is taken by another study or party; choose another --state", folder.display());
        return Err(WrongUsage(message).into());
    }
    Ok((folder, kept))
}
