//! A hub in a process of its own, with studies to read.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use potluck_core::accounting::{Delta, Epsilon};
use potluck_core::mixing::MixingKey;
use potluck_hub::config::Options;
use potluck_hub::{Config, Store};
use potluck_party::reading::ExtraColumns;
use potluck_party::release::Terms;
use potluck_party::{Access, Job, Ledger, LostValues, Resources, Table, release};
use potluck_release::events::Acceptance;
use potluck_release::exchange::{CreatedStudy, NewStudy};
use potluck_release::files::Existing;
use potluck_release::release::Outline;
use potluck_release::signing::SigningKey;
use potluck_release::{Draft, Error, Study};
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use ureq::Agent;
use zeroize::Zeroizing;

/// Columns of each party in the study that is read.
pub(crate) const COLUMNS: usize = 5;
/// Parties of the study that is read.
const PARTIES: usize = 3;
/// People in it.
const ROWS: u64 = 100_000;

/// The other end: runs a hub until the process is ended.
pub(crate) fn serve(data: &Path) -> Result<()> {
    let config = Config::new(Options {
        data: Some(data.to_owned()),
        listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        requests_per_minute: Some(0),
        ..Options::default()
    })?;
    potluck_hub::serve(config, |address| println!("{address}"))?;
    Ok(())
}

/// A hub that runs as long as this value lives.
pub(crate) struct HubServer {
    process: Child,
    pub(crate) address: String,
    /// The coordinator's token.
    pub(crate) token: String,
}

impl HubServer {
    pub(crate) fn start(folder: &Path) -> Result<Self> {
        let data = folder.join("data");
        let token = Store::open(&data)?.add_coordinator("lab", false)?.reveal().to_owned();
        let mut process = Command::new(std::env::current_exe()?)
            .arg("hub-server")
            .arg(&data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut address = String::new();
        BufReader::new(process.stdout.take().context("the hub has an output")?).read_line(&mut address)?;
        ensure!(address.starts_with("http"), "the hub did not start");
        Ok(Self { process, address: address.trim().to_owned(), token })
    }

    /// The most memory that the hub ever held.
    pub(crate) fn peak_bytes(&self) -> Result<u64> {
        crate::jobs::peak_bytes_of(&format!("/proc/{}/status", self.process.id()))
    }

    /// Creates a study of clinics with made-up patients, and takes it to its public dataset.
    /// Returns its id.
    pub(crate) fn publish_clinics(&self, folder: &Path) -> Result<String> {
        let mut text = format!(
            "format = 1\n[study]\nname = \"clinics\"\nrows = {ROWS}\nid = \"integer\"\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
        );
        for party in 0..PARTIES {
            text += &format!("[[party]]\nname = \"clinic{party}\"\n");
            for column in 0..COLUMNS {
                text += &format!("[[party.column]]\nname = \"x{party}{column}\"\nlo = -8\nhi = 8\n");
            }
        }
        let (study, text) = sealed(&text, 1)?;
        let agent = agent();
        let invitations = self.create(&agent, &text)?;
        let mut ledger = Ledger::open_or_create(&folder.join("ledger.sqlite"))?;
        for (number, (party, token)) in invitations.iter().enumerate() {
            ledger.set_budget(party, Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
            let table = folder.join(format!("{party}.csv"));
            std::fs::write(&table, made_up(number))?;
            let key = signing_key(number as u64);
            let out = folder.join(format!("{party}.parquet"));
            let job = Job {
                terms: Terms {
                    study: &study,
                    party,
                    budget: party,
                    out: &out,
                    existing: Existing::Keep,
                    signing_key: Some(&key),
                    lost_values: LostValues::Refuse,
                },
                table: &Table::open(&table, folder)?,
                access: Access {
                    id_column: "id".to_owned(),
                    extra_columns: ExtraColumns::Refuse,
                    resources: Resources::new(Some(NonZero::<usize>::MIN), Some(folder.to_owned())),
                },
            };
            release(&job, &mut ledger, &())?;
            self.accept(&agent, &study, party, token, &key)?;
            self.upload(&agent, &study, party, token, &std::fs::read(&out)?)?;
        }
        Ok(study.id().to_owned())
    }

    /// Creates a study; returns the parties with their tokens.
    pub(crate) fn create(&self, agent: &Agent, text: &str) -> Result<Vec<(String, String)>> {
        let body = NewStudy { study: text.to_owned(), early: false };
        let request = agent.post(format!("{}/api/v1/studies", self.address));
        let mut answer =
            request.header("authorization", format!("Bearer {}", self.token)).send_json(&body)?;
        ensure!(answer.status() == 201, "a study was not created: {}", answer.status());
        let created: CreatedStudy = answer.body_mut().read_json()?;
        Ok(created.invitations.into_iter().map(|one| (one.party, one.token)).collect())
    }

    pub(crate) fn accept(
        &self,
        agent: &Agent,
        study: &Study,
        party: &str,
        token: &str,
        key: &SigningKey,
    ) -> Result<()> {
        let url = format!("{}/api/v1/studies/{}/parties/{party}/acceptance", self.address, study.id());
        let request = agent.post(url).header("authorization", format!("Bearer {token}"));
        let answer = request.send_json(Acceptance::new(study, party, key))?;
        ensure!(answer.status() == 201, "an acceptance was refused: {}", answer.status());
        Ok(())
    }

    pub(crate) fn upload(
        &self,
        agent: &Agent,
        study: &Study,
        party: &str,
        token: &str,
        bytes: &[u8],
    ) -> Result<()> {
        let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let url =
            format!("{}/api/v1/studies/{}/parties/{party}/release?sha256={hash}", self.address, study.id());
        let answer = agent.put(url).header("authorization", format!("Bearer {token}")).send(bytes)?;
        ensure!(answer.status() == 201, "an upload was refused: {}", answer.status());
        Ok(())
    }
}

impl Drop for HubServer {
    fn drop(&mut self) {
        // It holds nothing that is needed afterwards.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn agent() -> Agent {
    Agent::config_builder().http_status_as_error(false).build().into()
}

/// A study sealed with a key that follows from a number.
pub(crate) fn sealed(text: &str, seed: u64) -> Result<(Study, String)> {
    let draft = Draft::parse(text)?;
    let study = draft.seal(MixingKey::new(Sha256::digest(seed.to_le_bytes()).into()))?;
    let text = draft.sealed_text(&study);
    Ok((study, text))
}

/// A signing key that follows from a number.
pub(crate) fn signing_key(seed: u64) -> SigningKey {
    SigningKey::from_seed(&Zeroizing::new(Sha256::digest(seed.to_le_bytes()).into()))
}

/// A valid, signed release with made-up sums: what a hub can see of one is the same.
pub(crate) fn made_up_release(study: &Study, party: &str, key: &SigningKey, file: &Path) -> Result<Vec<u8>> {
    let count = study.first_stage(party)?.coordinates();
    let sums: Vec<i64> = (0..count as i64).map(|i| (i * 7919) % 90_001 - 45_000).collect();
    let outline = Outline::new(study, party, &[], Some(key))?;
    let chunks = || Ok::<_, Error>(std::iter::once(Ok(sums.clone())));
    let (pending, _) = outline.write(file, Existing::Replace, chunks)?;
    if let Some(pending) = pending {
        pending.publish()?;
    }
    Ok(std::fs::read(file)?)
}

/// The table of one clinic: each column is part of its own and part of what all columns have in
/// common.
fn made_up(party: usize) -> String {
    let mut text = "id".to_owned();
    for column in 0..COLUMNS {
        text += &format!(",x{party}{column}");
    }
    text.push('\n');
    let mut own = ChaCha12Rng::seed_from_u64(1 + party as u64);
    let mut common = ChaCha12Rng::seed_from_u64(0);
    let normal =
        |rng: &mut ChaCha12Rng| (0..12).map(|_| f64::from(rng.next_u32()) / 2f64.powi(32)).sum::<f64>() - 6.0;
    for id in 0..ROWS {
        let shared = normal(&mut common);
        text += &id.to_string();
        for _ in 0..COLUMNS {
            text += &format!(",{:.4}", 0.6 * shared + 0.8 * normal(&mut own));
        }
        text.push('\n');
    }
    text
}
