//! Studies.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZero;
use std::ops::ControlFlow;
use std::path::PathBuf;

use potluck_party::validation::{self, Levels, Validation};
use potluck_party::{Reading, Resources, entropy, ids};
use potluck_release::files::{Audience, Existing, write_file};
use potluck_release::forecast::Asked;
use potluck_release::study::{self, Definition, Domain, Missing, Unsealed};
use potluck_release::{AnyStudy, Error as ReleaseError, Plan};
use potluck_simulation::{Rehearsal, Wanted};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};
use serde_json::{Value, json};

use crate::errors::{Error, of_party, of_problems};
use crate::order::GivenAccess;
use crate::preview::Preview;
use crate::{json, work};

/// A column of numbers with public bounds; values outside are clamped.
#[pyclass(frozen, get_all, eq, module = "potluck")]
#[derive(Clone, PartialEq)]
pub(crate) struct Numeric {
    /// Its name in the party's table.
    name: String,
    /// The lower bound.
    lo: f64,
    /// The upper bound.
    hi: f64,
    /// Unit of measurement, for people.
    unit: Option<String>,
    /// What it means, for people.
    description: Option<String>,
    /// What happens to a missing value: "midpoint" (format 1), "counted" or "never" (format 2), or
    /// "error"; None is the first that the study's format has.
    missing: Option<String>,
    /// A value that most numbers are known to be near, in format 2.
    typical: Option<f64>,
}

#[pymethods]
impl Numeric {
    #[new]
    #[pyo3(signature = (name, lo, hi, *, unit=None, description=None, missing=None, typical=None))]
    fn new(
        name: String,
        lo: &Bound<'_, PyAny>,
        hi: &Bound<'_, PyAny>,
        unit: Option<String>,
        description: Option<String>,
        missing: Option<String>,
        typical: Option<f64>,
    ) -> Result<Self, Error> {
        let ((lo, first), (hi, last)) = (number_or_day(lo)?, number_or_day(hi)?);
        if first != last {
            return Err(Error::Input(format!(
                "one bound of column {name:?} is a date and the other a number; give two of a kind"
            )));
        }
        let unit = unit.or_else(|| first.then(|| study::DAYS.to_owned()));
        if first && unit.as_deref() != Some(study::DAYS) {
            return Err(Error::Input(format!(
                "the bounds of column {name:?} are dates, which are counted in days; leave unit out"
            )));
        }
        if !lo.is_finite() || !hi.is_finite() {
            return Err(Error::Input(format!(
                "the bounds of column {name:?} are {lo} and {hi}; give two finite numbers that are known in public"
            )));
        }
        Ok(Self { name, lo, hi, unit, description, missing, typical })
    }

    fn __repr__(&self) -> String {
        let mut shown = format!("Numeric({:?}, {}, {}", self.name, self.lo, self.hi);
        show_option(&mut shown, "unit", self.unit.as_deref());
        show_option(&mut shown, "description", self.description.as_deref());
        show_option(&mut shown, "missing", self.missing.as_deref());
        if let Some(typical) = self.typical {
            shown.push_str(&format!(", typical={typical}"));
        }
        shown + ")"
    }

    fn __hash__(&self) -> u64 {
        let bits = |bound: f64| (bound + 0.0).to_bits();
        let Self { name, lo, hi, unit, description, missing, typical } = self;
        hash((name, bits(*lo), bits(*hi), unit, description, missing, typical.map(bits)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, ())> {
        let options = PyDict::new(py);
        options.set_item("unit", &self.unit)?;
        options.set_item("description", &self.description)?;
        options.set_item("missing", &self.missing)?;
        options.set_item("typical", self.typical)?;
        remake(py, (py.get_type::<Self>(), &self.name, self.lo, self.hi), &options)
    }
}

/// What happens to unknown values unless something else is said.
const UNKNOWN: &str = "missing";

/// Adds a keyword argument to what is shown of a call, if it was given.
fn show_option(shown: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        shown.push_str(&format!(", {name}={value:?}"));
    }
}

fn hash(fields: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    fields.hash(&mut hasher);
    hasher.finish()
}

/// What pickle calls to make an object again: its class, with these arguments.
fn remake<'py>(
    py: Python<'py>,
    class_and_arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    options: &Bound<'py, PyDict>,
) -> PyResult<(Bound<'py, PyAny>, ())> {
    let arguments = class_and_arguments.into_pyobject(py)?;
    Ok((py.import("functools")?.getattr("partial")?.call(arguments, Some(options))?, ()))
}

/// A column that takes one of a few public levels.
#[pyclass(frozen, get_all, eq, module = "potluck")]
#[derive(Clone, PartialEq)]
pub(crate) struct Categorical {
    /// Its name in the party's table.
    name: String,
    /// The levels, in the study's order.
    levels: Vec<String>,
    /// What happens to a value that is no level: "missing" (it counts as missing), "other" (it
    /// counts as that level) or "error" (the table is refused, which tells that somebody has such a
    /// value).
    unknown: String,
    /// What it means, for people.
    description: Option<String>,
    /// What happens to a missing value: "midpoint" (it counts as no level; format 1), "counted"
    /// (how many are there is published) or "never" (it counts as there; format 2), or "error" (the
    /// table is refused, which tells that somebody's value is missing); None is the first that the
    /// study's format has.
    missing: Option<String>,
}

#[pymethods]
impl Categorical {
    #[new]
    #[pyo3(signature = (name, levels, *, unknown="missing", description=None, missing=None))]
    fn new(
        name: String,
        levels: Vec<String>,
        unknown: &str,
        description: Option<String>,
        missing: Option<String>,
    ) -> Self {
        Self { name, levels, unknown: unknown.to_owned(), description, missing }
    }

    fn __repr__(&self) -> String {
        let mut shown = format!("Categorical({:?}, {:?}", self.name, self.levels);
        show_option(&mut shown, "unknown", (self.unknown != UNKNOWN).then_some(&self.unknown));
        show_option(&mut shown, "description", self.description.as_deref());
        show_option(&mut shown, "missing", self.missing.as_deref());
        shown + ")"
    }

    fn __hash__(&self) -> u64 {
        hash((&self.name, &self.levels, &self.unknown, &self.description, &self.missing))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, ())> {
        let options = PyDict::new(py);
        options.set_item("unknown", &self.unknown)?;
        options.set_item("description", &self.description)?;
        options.set_item("missing", &self.missing)?;
        remake(py, (py.get_type::<Self>(), &self.name, &self.levels), &options)
    }
}

/// A bound as a number, and whether it is a date: then its number of days from the first of January
/// 1970.
fn number_or_day(bound: &Bound<'_, PyAny>) -> PyResult<(f64, bool)> {
    /// Python counts days from the first of January of the year 1, which is day 1.
    const FIRST: f64 = 719_163.0;
    if bound.hasattr("toordinal")? {
        let day: f64 = bound.call_method0("toordinal")?.extract()?;
        return Ok((day - FIRST, true));
    }
    Ok((bound.extract()?, false))
}

fn column_to_python<'py>(py: Python<'py>, column: &study::Column) -> PyResult<Bound<'py, PyAny>> {
    // What a format does with missing values unless something else is said.
    let is_usual = matches!(column.missing(), Missing::Midpoint | Missing::Counted);
    let missing = (!is_usual).then(|| column.missing().word().to_owned());
    let name = column.name().to_owned();
    let description = column.description().map(str::to_owned);
    Ok(match column.domain() {
        Domain::Numeric(bounds) => {
            let unit = column.unit().map(str::to_owned);
            let (lo, hi) = (bounds.lo(), bounds.hi());
            let typical = column.typical();
            Bound::new(py, Numeric { name, lo, hi, unit, description, missing, typical })?.into_any()
        }
        Domain::Categorical { levels, unknown } => {
            let (levels, unknown) = (levels.clone(), unknown.word().to_owned());
            Bound::new(py, Categorical { name, levels, unknown, description, missing })?.into_any()
        }
    })
}

fn column_to_json(column: &Bound<'_, PyAny>) -> Result<Value, Error> {
    if let Ok(numeric) = column.cast::<Numeric>() {
        let Numeric { name, lo, hi, unit, description, missing, typical } = numeric.get();
        return Ok(json!({
            "name": name, "lo": lo, "hi": hi, "unit": unit, "description": description, "missing": missing,
            "typical": typical,
        }));
    }
    if let Ok(categorical) = column.cast::<Categorical>() {
        let Categorical { name, levels, unknown, description, missing } = categorical.get();
        return Ok(json!({
            "name": name, "levels": levels, "unknown": unknown, "description": description, "missing": missing,
        }));
    }
    let kind = column.get_type().name()?;
    Err(pyo3::exceptions::PyTypeError::new_err(format!(
        "a column of a study is a Numeric or a Categorical, not a {kind}"
    ))
    .into())
}

/// The public contract between parties: columns, bounds or levels, number of people, ε and δ.
///
/// A study is checked when it is read or built, so one in hand is valid. Only a sealed one can be
/// released under.
#[pyclass(frozen, module = "potluck")]
pub(crate) struct Study {
    content: AnyStudy,
}

impl Study {
    pub(crate) fn of_dataset(study: &potluck_release::Study) -> Self {
        Self::sealed_from(study.clone(), study.to_toml())
    }

    /// A sealed study and its text.
    pub(crate) fn sealed_from(study: potluck_release::Study, text: String) -> Self {
        Self { content: AnyStudy::Sealed { study: Box::new(study), text } }
    }

    fn definition(&self) -> &Definition {
        self.content.definition()
    }

    /// The study with all its numbers, sealed or not.
    pub(crate) fn numbers(&self) -> Result<potluck_release::Study, Error> {
        Ok(self.content.numbers()?.0)
    }

    /// The sealed study, or why there is none.
    pub(crate) fn sealed_study(&self) -> Result<&potluck_release::Study, Error> {
        Ok(self.content.sealed()?)
    }
}

/// Refuses what is said of parties that the study does not have.
fn check_names(
    argument: &str,
    of_parties: Option<&Bound<'_, PyMapping>>,
    parties: &Bound<'_, PyMapping>,
) -> Result<(), Error> {
    let names = of_parties.map(PyMappingMethods::keys).transpose()?;
    for party in names.iter().flatten() {
        if !parties.contains(&party)? {
            return Err(Error::Input(format!(
                "{argument} names {}, which is no party of the study; check the spelling",
                party.repr()?
            )));
        }
    }
    Ok(())
}

/// What is said of a party, if something is.
fn of<'py>(said: Option<&Bound<'py, PyMapping>>, party: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    match said {
        Some(said) if said.contains(party)? => said.get_item(party).map(Some),
        _ => Ok(None),
    }
}

/// "all", or the least and the largest share.
fn share_to_json(share: &Bound<'_, PyAny>) -> Result<Value, Error> {
    if let Ok(word) = share.extract::<String>() {
        return Ok(word.into());
    }
    let (least, largest): (f64, f64) = share.extract()?;
    Ok(json!([least, largest]))
}

/// What was counted, or an exception with every reason for which a release would refuse the table.
pub(crate) fn validated<'py>(py: Python<'py>, validation: &Validation) -> Result<Bound<'py, PyAny>, Error> {
    if validation.problems.is_empty() {
        Ok(json::to_python(py, &validation.to_json(of_party))?)
    } else {
        Err(of_problems(py, validation)?)
    }
}

#[pymethods]
impl Study {
    /// Reads and checks a study file, sealed or not. One that is not sealed and extends another
    /// needs that one, sealed, as `base`.
    #[staticmethod]
    #[pyo3(signature = (path, *, base=None))]
    fn load(path: PathBuf, base: Option<&Self>) -> Result<Self, Error> {
        Self::parse(&study::read_text(&path)?, base)
    }

    /// Checks the text of a study, sealed or not. One that is not sealed and extends another needs
    /// that one, sealed, as `base`.
    #[staticmethod]
    #[pyo3(signature = (text, *, base=None))]
    fn parse(text: &str, base: Option<&Self>) -> Result<Self, Error> {
        let base = base.map(Self::sealed_study).transpose()?;
        Ok(Self { content: AnyStudy::parse(text, base)? })
    }

    /// Builds and checks a study. `parties` maps each party's name to its columns, `clip_norm` to a
    /// smaller row norm. With `base`, a sealed study, the parties are added to that one, and
    /// everything else must be as it is there.
    ///
    /// In `format` 2 parties may hold different people: `party_rows` maps a party's name to about
    /// how many it has, `overlap` is "all" or the least and the largest share of the smaller one's
    /// people that any two have in common, `overlaps` maps two names to the same, and `id_columns`
    /// and `id_rules` say how all parties make ids. Without `format`, it is 2 where a key that only
    /// that has is given.
    #[staticmethod]
    #[pyo3(signature = (*, name, rows, epsilon, delta, parties, id="integer", method=None, mixing=None, k=None,
                        preset=None, calibration=None, missing_tokens=None, clip_norm=None, base=None, format=None,
                        party_rows=None, overlap=None, overlaps=None, id_columns=None, id_rules=None))]
    #[expect(clippy::too_many_arguments, reason = "they are the keys of a study file")]
    fn new(
        name: &str,
        rows: u64,
        epsilon: f64,
        delta: f64,
        parties: &Bound<'_, PyMapping>,
        id: &str,
        method: Option<&str>,
        mixing: Option<&str>,
        k: Option<u64>,
        preset: Option<&str>,
        calibration: Option<&str>,
        missing_tokens: Option<Vec<String>>,
        clip_norm: Option<&Bound<'_, PyMapping>>,
        base: Option<&Self>,
        format: Option<u32>,
        party_rows: Option<&Bound<'_, PyMapping>>,
        overlap: Option<&Bound<'_, PyAny>>,
        overlaps: Option<&Bound<'_, PyMapping>>,
        id_columns: Option<Vec<String>>,
        id_rules: Option<Vec<String>>,
    ) -> Result<Self, Error> {
        let base = base.map(Self::sealed_study).transpose()?;
        check_names("clip_norm", clip_norm, parties)?;
        check_names("party_rows", party_rows, parties)?;
        let mut sections = Vec::new();
        for item in parties.items()?.iter() {
            let (party, columns): (String, Bound<'_, PyAny>) = item.extract()?;
            let columns = columns
                .try_iter()?
                .map(|column| column_to_json(&column?))
                .collect::<Result<Vec<_>, Error>>()?;
            let radius = of(clip_norm, &party)?.map(|radius| radius.extract::<f64>()).transpose()?;
            let own_rows = of(party_rows, &party)?.map(|rows| rows.extract::<u64>()).transpose()?;
            sections.push(json!({ "name": party, "clip_norm": radius, "rows": own_rows, "column": columns }));
        }
        let is_of_cohorts = party_rows.is_some()
            || overlap.is_some()
            || overlaps.is_some()
            || id_columns.is_some()
            || id_rules.is_some();
        let usual = || match base {
            Some(base) => base.definition().format(),
            None if is_of_cohorts => study::Format::Two,
            None => study::Format::of_new(method, preset, id),
        };
        let mut pairs = Vec::new();
        let given = overlaps.map(PyMappingMethods::items).transpose()?;
        for item in given.iter().flatten() {
            let (both, share): ((String, String), Bound<'_, PyAny>) = item.extract()?;
            pairs.push(json!({ "parties": [both.0, both.1], "share": share_to_json(&share)? }));
        }
        let document = json!({
            "format": format.unwrap_or_else(|| usual().number()),
            "study": {
                "name": name, "rows": rows, "id": id, "preset": preset, "method": method, "mixing": mixing, "k": k,
                "missing_tokens": missing_tokens, "extends": base.map(potluck_release::Study::id),
                "overlap": overlap.map(share_to_json).transpose()?, "id_columns": id_columns, "id_rules": id_rules,
            },
            "privacy": { "epsilon": epsilon, "delta": delta, "calibration": calibration },
            "party": sections,
            "overlap": (!pairs.is_empty()).then_some(pairs),
        });
        Ok(Self { content: AnyStudy::Unsealed(Unsealed::from_json(&document, base)?) })
    }

    /// The same study, sealed: a fresh mixing key from the operating system, or that of the study
    /// it extends, and every number that follows.
    fn seal(&self, py: Python<'_>) -> Result<Self, Error> {
        let (study, text) = work::away(py, || match &self.content {
            AnyStudy::Unsealed(unsealed) => unsealed.seal(entropy::new_mixing_key).map_err(Error::from),
            AnyStudy::Sealed { .. } => Err(ReleaseError::AlreadySealed.into()),
        })?;
        Ok(Self::sealed_from(study, text))
    }

    /// Writes the study file.
    #[pyo3(signature = (path, *, overwrite=false))]
    fn save(&self, path: PathBuf, overwrite: bool) -> Result<(), Error> {
        Ok(write_file(&path, self.to_toml().as_bytes(), existing(overwrite), Audience::Public)?)
    }

    /// The text of the study file.
    fn to_toml(&self) -> &str {
        self.content.text()
    }

    /// Reads a party's whole table and counts what a steward should know before a release, as
    /// `potluck validate --json` prints it: rows, ids, and for each column how many values are
    /// missing, cut to a bound or none of the levels; and what to look at first, as `warnings`.
    /// Undeclared levels themselves are there with `show_values`. Where a release would refuse the
    /// table, an exception says every reason, and has the counts as its `report`.
    ///
    /// It is private, and for your own eyes: nothing is charged, written or published. The study
    /// need not be sealed; budget, expected accuracy and output are not looked at.
    #[pyo3(signature = (party, data, *, id="id", ignore_extra=false, show_values=false, spool=false, threads=None,
                        tmp_dir=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "they are independent choices of the caller")]
    fn validate<'py>(
        &self,
        py: Python<'py>,
        party: &str,
        data: &Bound<'py, PyAny>,
        id: &str,
        ignore_extra: bool,
        show_values: bool,
        spool: bool,
        threads: Option<NonZero<usize>>,
        tmp_dir: Option<PathBuf>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyAny>, Error> {
        let (study, _) = self.content.numbers()?;
        let access = GivenAccess::new(id.to_owned(), ignore_extra, Some(spool), threads, tmp_dir, None);
        let keep = access.access.needed_columns(&study, party)?;
        let table = access.open(data, keep.as_deref())?;
        let reading = Reading { study: &study, party, table: &table, access: &access.access };
        let levels = if show_values { Levels::Shown } else { Levels::Counted };
        let validation = work::reporting(py, progress, study.definition().rows(), " rows", |report| {
            work::run(py, report, |observer| {
                observer.stage("", 0);
                validation::validate(&reading, levels, observer)
            })
        })?;
        validated(py, &validation)
    }

    /// What the study's rules make of the ids of a party's table, as `potluck ids --json` prints
    /// it: `examples` of at most `show` rows, and how many `collisions` there are, with some of
    /// them as `alike`.
    ///
    /// It is private, and for your own eyes: nothing is charged, written or published. The study
    /// need not be sealed.
    #[pyo3(signature = (party, data, *, id="id", show=10, spool=false, tmp_dir=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "they are independent choices of the caller")]
    fn ids<'py>(
        &self,
        py: Python<'py>,
        party: &str,
        data: &Bound<'py, PyAny>,
        id: &str,
        show: usize,
        spool: bool,
        tmp_dir: Option<PathBuf>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<Bound<'py, PyAny>, Error> {
        let (study, _) = self.content.numbers()?;
        let access = GivenAccess::new(id.to_owned(), true, Some(spool), None, tmp_dir, None);
        let keep = access.access.needed_columns(&study, party)?;
        let table = access.open(data, keep.as_deref())?;
        let reading = Reading { study: &study, party, table: &table, access: &access.access };
        let look = work::reporting(py, progress, study.definition().rows(), " rows", |report| {
            work::run(py, report, |observer| ids::look(&reading, show, observer))
        })?;
        Ok(json::to_python(py, &look.to_json())?)
    }

    /// What a careful person would ask about before signing: as `potluck plan` prints it.
    #[getter]
    fn warnings(&self, py: Python<'_>) -> Result<Vec<String>, Error> {
        work::away(py, || {
            let (study, _) = self.content.numbers()?;
            potluck_release::warnings::of_study(&study).map_err(Error::from)
        })
    }

    /// What the study promises and costs, from public facts only: as `potluck plan --json` prints
    /// it. Its `forecast` is about a regression of `label` on all others, or of any column, and
    /// counts people for an effect of this size, in standard deviations of the label for one of the
    /// feature. `overlap` guesses which share of the smaller one's people any two parties have in
    /// common, from 0 to 1; without it, the study's own declaration counts, and all people where
    /// there is none.
    #[pyo3(signature = (*, label=None, effect=0.1, overlap=None))]
    fn plan<'py>(
        &self,
        py: Python<'py>,
        label: Option<String>,
        effect: f64,
        overlap: Option<f64>,
    ) -> Result<Bound<'py, PyAny>, Error> {
        if overlap.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err(Error::Input("overlap is a share: give a number from 0 to 1".to_owned()));
        }
        let asked = Asked { label, effect, overlap };
        let (_, plan) = work::away(py, || Plan::asked(&self.content, &asked))?;
        Ok(json::to_python(py, &plan)?)
    }

    /// Tries the study on made-up people in its shape: bell-shaped columns well inside their
    /// bounds, levels equally frequent, and a label that all features together explain in part.
    /// They are released `releases` times, as `potluck simulate` does it; no private data is read
    /// and nothing is charged. The label is a numeric column or one with two levels, the last such
    /// column by default. `signal` is the share of it that the features explain, `correlation` that
    /// between any two features, `rows` the number of people if not the study's, `overlap` the
    /// share of its people that a party has in common with another of the same size and `missing`
    /// that of the values that are missing, both in studies of format 2, and `seed` changes every
    /// random choice.
    #[pyo3(signature = (*, label=None, releases=20, rows=None, signal=0.5, correlation=0.0, overlap=None, missing=0.0,
                        seed=1, threads=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "they are independent choices of the caller")]
    fn simulate(
        &self,
        py: Python<'_>,
        label: Option<String>,
        releases: u32,
        rows: Option<u64>,
        signal: f64,
        correlation: f64,
        overlap: Option<f64>,
        missing: f64,
        seed: u64,
        threads: Option<NonZero<usize>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> Result<Preview, Error> {
        let wanted = Wanted { label, releases, rows, signal, correlation, overlap, missing, seed };
        let rehearsal =
            work::away(py, || Ok::<_, Error>(Rehearsal::new(&self.content.numbers()?.0, wanted)?))?;
        let threads = Resources::new(threads, None).threads;
        let content = work::reporting(py, progress, u64::from(releases), " releases", |report| {
            work::run(py, report, |observer| {
                observer.stage("", 0);
                let watch = |done| {
                    observer.rows(done);
                    if observer.stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                rehearsal.preview(threads, &watch)
            })
        })?;
        Ok(Preview { content })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.definition().name()
    }

    /// Number of people: every party's table has one row for each.
    #[getter]
    fn rows(&self) -> u64 {
        self.definition().rows()
    }

    /// ε of each party's release.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.definition().epsilon().get()
    }

    /// δ of each party's release.
    #[getter]
    fn delta(&self) -> f64 {
        self.definition().delta().get()
    }

    /// How parties release: "calibrated", "rmgm" or "dgm".
    #[getter]
    fn method(&self) -> &'static str {
        self.definition().method().word()
    }

    /// What identifies a person: "integer", "text" or "row".
    #[getter]
    fn id_kind(&self) -> &'static str {
        self.definition().id_kind().word()
    }

    /// Whether it is sealed.
    #[getter]
    fn sealed(&self) -> bool {
        self.content.sealed().is_ok()
    }

    /// SHA-256 of its canonical form, once it is sealed; the same at every party.
    #[getter]
    fn id(&self) -> Option<&str> {
        self.content.sealed().ok().map(potluck_release::Study::id)
    }

    /// The id of the study that it extends, if it does.
    #[getter]
    fn extends(&self) -> Option<&str> {
        self.definition().extends()
    }

    /// How many passes over a table a release makes, once it is sealed; for progress.
    #[getter]
    fn _passes(&self) -> Option<usize> {
        self.sealed_study().ok().map(|study| study.seal().shares().len())
    }

    /// Names of the parties.
    #[getter]
    fn parties(&self) -> Vec<&str> {
        self.definition().parties().iter().map(study::Party::name).collect()
    }

    /// The columns of each party.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for party in self.definition().parties() {
            let columns: Vec<_> =
                party.columns().iter().map(|column| column_to_python(py, column)).collect::<PyResult<_>>()?;
            all.set_item(party.name(), columns)?;
        }
        Ok(all)
    }

    fn __eq__(&self, other: &Self) -> bool {
        match (self.id(), other.id()) {
            // The definition names the base, if there is one, by its id.
            (None, None) => self.definition() == other.definition(),
            (one, two) => one == two,
        }
    }

    fn __hash__(&self) -> u64 {
        hash((self.id(), self.name(), self.rows()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&str,))> {
        let parse = py.get_type::<Self>().getattr("parse")?;
        let parse = match &self.content {
            AnyStudy::Unsealed(Unsealed::Extension(extension)) => {
                let options = PyDict::new(py);
                options.set_item("base", Self::of_dataset(extension.base()))?;
                py.import("functools")?.getattr("partial")?.call((parse,), Some(&options))?
            }
            AnyStudy::Unsealed(Unsealed::Draft(_)) | AnyStudy::Sealed { .. } => parse,
        };
        Ok((parse, (self.to_toml(),)))
    }

    fn __repr__(&self) -> String {
        let state = self.id().map_or("not sealed".to_owned(), |id| format!("sealed, id {}…", &id[..12]));
        format!(
            "<Study {:?}: {} people, parties {}; {state}>",
            self.name(),
            self.rows(),
            self.parties().join(", ")
        )
    }

    fn _repr_html_(&self) -> Result<String, Error> {
        let (study, sealed) = self.content.numbers()?;
        Ok(potluck_report::study_card(&study, sealed))
    }
}

/// What to do when there is a file already.
pub(crate) fn existing(overwrite: bool) -> Existing {
    if overwrite { Existing::Replace } else { Existing::Keep }
}
