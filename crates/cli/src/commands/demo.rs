//! `potluck demo`: three clinics with made-up patients, through the same code as the single
//! commands.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use potluck_core::accounting::{Delta, Epsilon};
use potluck_core::learn::{Released, Ridge, ols};
use potluck_party::release::Terms;
use potluck_party::{Job, Ledger, LostValues, Table, entropy};
use potluck_release::dataset::Completeness;
use potluck_release::files::{Audience, Existing, write_file};
use potluck_release::fit::{Regression, fit};
use potluck_release::model::Coefficient;
use potluck_release::statement::Guarantee;
use potluck_release::study::Format;
use potluck_release::{Draft, Error, Model, PublicDataset, Release, Study};
use rand_chacha::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use serde_json::json;

use super::Settings;
use super::fit::{interval, opening};
use crate::args::Demo;
use crate::output::{number, table};

/// The clinics with their columns, as they stand in the study.
const PARTIES: &str = r#"
[[party]]
name = "north"
[[party.column]]
name = "age"
lo = 20
hi = 90
unit = "years"
[[party.column]]
name = "bmi"
lo = 15
hi = 45
unit = "kg/m²"
description = "body mass index"

[[party]]
name = "south"
[[party.column]]
name = "salt"
lo = 2
hi = 16
unit = "g/day"
[[party.column]]
name = "exercise"
lo = 0
hi = 12
unit = "h/week"

[[party]]
name = "registry"
[[party.column]]
name = "smoker"
levels = ["no", "yes"]
[[party.column]]
name = "pressure"
lo = 90
hi = 190
unit = "mmHg"
description = "systolic blood pressure"
"#;

/// A made-up feature: where it stands, how it spreads, and what it does to the pressure per unit.
struct Feature {
    name: &'static str,
    lo: f64,
    hi: f64,
    effect: f64,
}

const FEATURES: [Feature; 4] = [
    Feature { name: "age", lo: 20.0, hi: 90.0, effect: 0.45 },
    Feature { name: "bmi", lo: 15.0, hi: 45.0, effect: 0.8 },
    Feature { name: "salt", lo: 2.0, hi: 16.0, effect: 1.2 },
    Feature { name: "exercise", lo: 0.0, hi: 12.0, effect: -1.6 },
];
const SMOKER_EFFECT: f64 = 7.0;
const MIDDLE_PRESSURE: f64 = 140.0;
const SPREAD: f64 = 6.0;

pub(super) fn run(arguments: &Demo, settings: &Settings<'_>) -> Result<()> {
    let folder = &arguments.out;
    fs::create_dir_all(folder.join("private"))
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let study_path = folder.join("study.toml");
    let existing = settings.existing;
    potluck_release::files::check_writable(&study_path, existing)?;

    let draft = Draft::parse(&study_text(arguments))?;
    let study = draft.seal(entropy::new_mixing_key()?)?;
    write_file(&study_path, draft.sealed_text(&study).as_bytes(), existing, Audience::Public)?;

    settings.printer.note("making up patients …");
    let patients = Patients::new(arguments.rows);
    let plain = patients.plain_coefficients()?;
    let mut releases = Vec::new();
    for (party, text) in ["north", "south", "registry"].iter().zip(patients.tables()) {
        let data = folder.join("private").join(format!("{party}.csv"));
        write_file(&data, text.as_bytes(), existing, Audience::Owner)?;
        releases.push(release(&study, party, &data, folder, arguments, settings)?);
    }

    let dataset = PublicDataset::join(&study, &releases, Completeness::All)?;
    dataset.write(&folder.join("public.parquet"), existing)?;
    let model = fit(&dataset, &Regression::of("pressure"))?;
    model.write(&folder.join("model.json"), existing)?;
    let page = potluck_report::page(&model, &dataset);
    write_file(&folder.join("report.html"), page.as_bytes(), existing, Audience::Public)?;

    let each = Guarantee::of_party(&study);
    let joint = Guarantee::joint(&study, 3);
    let truth = truth();
    let coefficients: Vec<_> = model
        .coefficients
        .iter()
        .map(|coefficient| {
            let name = coefficient.term.name();
            json!({
                "name": name,
                "true": value_of(&truth, &name),
                "non_private": value_of(&plain, &name),
                "private": coefficient.value,
                "findings": coefficient.findings,
            })
        })
        .collect();
    let value = json!({
        "folder": folder.display().to_string(),
        "study_id": study.id(),
        "coefficients": coefficients,
        "per_party": { "epsilon": each.epsilon, "delta": each.delta, "mu": each.mu },
        "joint": { "epsilon": joint.epsilon, "delta": joint.delta, "mu": joint.mu },
    });
    settings.printer.result(&value, || to_text(folder, &model, &truth, &plain, each, joint))
}

fn study_text(arguments: &Demo) -> String {
    format!(
        "# Three clinics hold different facts about the same patients.\nformat = {}\n\n[study]\nname = \"demo\"\nrows = {}\nid = \"integer\"\n\n[privacy]\nepsilon = {:?}\ndelta = {:?}\n{PARTIES}",
        Format::NEW.number(),
        arguments.rows,
        arguments.epsilon,
        arguments.delta
    )
}

fn release(
    study: &Study,
    party: &str,
    data: &Path,
    folder: &Path,
    arguments: &Demo,
    settings: &Settings<'_>,
) -> Result<Release> {
    let ledger_path = folder.join("private").join(format!("{party}.ledger.sqlite"));
    if settings.existing == Existing::Replace && ledger_path.exists() {
        // A demo that is made again has new patients, so the old budget means nothing.
        fs::remove_file(&ledger_path)?;
    }
    let mut ledger = Ledger::open_or_create(&ledger_path)?;
    let epsilon = Epsilon::new(arguments.epsilon).map_err(Error::from)?;
    ledger.set_budget("patients", epsilon, Delta::new(arguments.delta).map_err(Error::from)?)?;
    let table = Table::open(data, &settings.resources.tmp)?;
    let out = folder.join(format!("{party}.release.parquet"));
    let progress = settings.printer.progress(party, study.definition().rows());
    let (budget, existing) = ("patients", settings.existing);
    let lost_values = LostValues::Refuse;
    let terms = Terms { study, party, budget, out: &out, existing, signing_key: None, lost_values };
    let job = Job { terms, table: &table, access: settings.access("id", false) };
    potluck_party::release(&job, &mut ledger, &progress)?;
    Ok(Release::read(&out)?)
}

/// Made-up patients: the same ones every time.
struct Patients {
    features: [Vec<f64>; 4],
    smoker: Vec<bool>,
    pressure: Vec<f64>,
}

impl Patients {
    fn new(rows: u64) -> Self {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let mut uniform = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut patients = Self { features: Default::default(), smoker: Vec::new(), pressure: Vec::new() };
        for _ in 0..rows {
            let mut pressure = MIDDLE_PRESSURE;
            for (feature, values) in FEATURES.iter().zip(&mut patients.features) {
                let value = feature.lo + (feature.hi - feature.lo) * uniform();
                let value = (value * 10.0).round() / 10.0;
                pressure += feature.effect * (value - f64::midpoint(feature.lo, feature.hi));
                values.push(value);
            }
            let smoker = uniform() < 0.4;
            pressure += SMOKER_EFFECT * f64::from(smoker);
            // The sum of three uniforms is close enough to a bell curve for made-up patients.
            pressure += SPREAD * 2.0 * (uniform() + uniform() + uniform() - 1.5);
            patients.smoker.push(smoker);
            patients.pressure.push((pressure * 10.0).round() / 10.0);
        }
        patients
    }

    /// What least squares gives on the clinics' own data, without mixing or noise.
    fn plain_coefficients(&self) -> Result<Vec<(String, f64)>> {
        let centred =
            |values: &[f64], middle: f64| values.iter().map(|value| value - middle).collect::<Vec<_>>();
        let mut columns: Vec<Vec<f64>> = FEATURES
            .iter()
            .zip(&self.features)
            .map(|(feature, values)| centred(values, f64::midpoint(feature.lo, feature.hi)))
            .collect();
        columns.push(self.smoker.iter().map(|&smoker| f64::from(smoker)).collect());
        columns.push(centred(&self.pressure, MIDDLE_PRESSURE));
        let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let noise = vec![0.0; views.len()];
        let rows = Released::new(&views, &noise, self.pressure.len() as u64).map_err(Error::from)?;
        let fit = ols(&rows, 5, &[0, 1, 2, 3, 4], Ridge::NONE).map_err(Error::from)?;
        let names = truth().into_iter().map(|(name, _)| name);
        Ok(names.zip(fit.coefficients.weights().iter().copied()).collect())
    }

    /// The clinics' tables as CSV; each keeps its patients in an order of its own.
    fn tables(&self) -> [String; 3] {
        let rows = self.pressure.len();
        let mut tables =
            ["id,age,bmi\n".to_owned(), "id,salt,exercise\n".to_owned(), "id,smoker,pressure\n".to_owned()];
        for row in 0..rows {
            let _ = writeln!(tables[0], "{row},{},{}", self.features[0][row], self.features[1][row]);
            let other = rows - 1 - row;
            let _ = writeln!(tables[1], "{other},{},{}", self.features[2][other], self.features[3][other]);
            let smoker = if self.smoker[row] { "yes" } else { "no" };
            let _ = writeln!(tables[2], "{row},{smoker},{}", self.pressure[row]);
        }
        tables
    }
}

/// What the patients were made up with.
fn truth() -> Vec<(String, f64)> {
    let effects = FEATURES.iter().map(|feature| (feature.name.to_owned(), feature.effect));
    effects.chain([("smoker=yes".to_owned(), SMOKER_EFFECT)]).collect()
}

fn value_of(values: &[(String, f64)], name: &str) -> Option<f64> {
    values.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| *value)
}

fn to_text(
    folder: &Path,
    model: &Model,
    truth: &[(String, f64)],
    plain: &[(String, f64)],
    each: Guarantee,
    joint: Guarantee,
) -> String {
    let cell = |values: &[(String, f64)], name: &str| value_of(values, name).map_or("-".to_owned(), number);
    let row = |coefficient: &Coefficient| {
        let name = coefficient.term.name();
        let mut row = vec![
            format!("{name} ({})", coefficient.party),
            cell(truth, &name),
            cell(plain, &name),
            number(coefficient.value.estimate),
            interval(&coefficient.value),
        ];
        row.extend(coefficient.mark());
        row
    };
    let mut rows: Vec<Vec<String>> = model.coefficients.iter().map(row).collect();
    let mut text = opening(model);
    let _ =
        writeln!(text, "What raises blood pressure (mmHg per unit), {} patients:\n", model.diagnostics.rows);
    let mut header = vec!["", "true", "non-private", "private", "95% interval"];
    if rows.iter().any(|row| row.len() > header.len()) {
        header.push("findings");
    }
    for row in &mut rows {
        row.resize(header.len(), String::new());
    }
    text.push_str(&table(&header, &rows));
    let _ = writeln!(text, "\nEach clinic's release: {}", each.in_short());
    let _ = writeln!(text, "All three jointly:     {}\n", joint.in_short());
    let _ = writeln!(text, "In {}:", folder.display());
    let files: [(&str, &str); 6] = [
        ("study.toml", "the contract"),
        ("*.release.parquet", "what each clinic published"),
        ("public.parquet", "all of it joined: any Parquet reader opens it"),
        ("model.json", "the regression"),
        ("report.html", "the regression to look at, with the privacy statement"),
        ("private/", "the made-up raw tables and the clinics' ledgers: in real life these never leave"),
    ];
    for (file, what) in files {
        let _ = writeln!(text, "  {file:<18}  {what}");
    }
    text
}
