//! What the definition of a study must fulfil.
//!
//! All of a document is checked, whatever is wrong with a part of it. Only what cannot be judged
//! without that part waits until it is mended.

use std::collections::HashSet;

use potluck_core::accounting::{Delta, Epsilon};
use potluck_core::encoding::{Ball, Bounds, LevelCount, Q};

use super::dates::DAYS;
use super::definition::{
    Calibration, Column, Definition, Domain, Format, IdKind, IdRule, MISSING_TOKENS, Method, Missing,
    MixingKind, Overlap, Party, Preset, Unknown,
};
use super::document::{
    Bound, ColumnSection, Document, OverlapSection, PartySection, PrivacySection, StudySection,
};
use super::mistakes::Mistakes;
use super::reader::FromNode;
use super::{Study, extension};
use crate::Error;
use crate::place::{Key, Place};
use crate::remedy::{Problem, Remedy};

/// Most parties of a study, those that it extends included: plans and fits take longer with each.
const MOST_PARTIES: usize = 256;

/// What a document defines that could be read without a mistake.
pub(super) fn checked(document: &Document, base: Option<&Study>) -> Result<Definition, Error> {
    let mut mistakes = Mistakes::default();
    definition(document, base, &mut mistakes).ok_or(Error::Study(mistakes))
}

/// What a document defines, as an extension of `base` if it extends a study; nothing if there are
/// mistakes. Those of reading the document are among them already.
pub(super) fn definition(
    document: &Document,
    base: Option<&Study>,
    mistakes: &mut Mistakes,
) -> Option<Definition> {
    let format = check_format(document.format, mistakes);
    let (mut study, mut privacy) =
        (document.study.clone().unwrap_or_default(), document.privacy.clone().unwrap_or_default());
    fill_in(&mut study, &mut privacy, mistakes);
    check_name(mistakes, Place::study(Key::Name), study.name.as_deref(), 200);
    if study.rows.is_some_and(|rows| rows < 2) {
        mistakes.note(Place::study(Key::Rows), "must be at least 2: one row cannot be hidden among others");
    }
    check_method(&study, &privacy, mistakes);
    if format == Some(Format::Two) {
        check_cohorts(&study, mistakes);
    }
    let id_rules = check_ids(&study, format, mistakes);
    let (epsilon, delta) = (privacy.epsilon.map(Epsilon::new), privacy.delta.map(Delta::new));
    let epsilon = epsilon.and_then(|epsilon| mistakes.sound(epsilon, Place::privacy(Key::Epsilon)));
    let delta = delta.and_then(|delta| mistakes.sound(delta, Place::privacy(Key::Delta)));

    let base = base.filter(|base| extension::check_extends(study.extends.as_deref(), base, mistakes));
    let inherited = base.map_or(&[][..], |base| base.definition().parties());
    let sections = document.party.as_deref().unwrap_or_default();
    let own = check_parties(sections, inherited, (study.method, format), mistakes);
    let overlaps = check_overlaps(&study, document.overlap.as_deref(), format, sections, inherited, mistakes);
    let parties: Option<Vec<Party>> = inherited.iter().cloned().map(Some).chain(own).collect();
    if let Some(parties) = parties.as_deref().filter(|_| mistakes.none_in(&Place::study(Key::Extends))) {
        check_sizes(&study, parties, inherited.len(), mistakes);
    }
    if let Some(base) = base {
        if let Some(format) = format.filter(|&format| format != base.definition().format) {
            let theirs = base.definition().format.number();
            let problem = format!(
                "is {}, but the study that this one extends has format {theirs}: set format = {theirs}, or agree on a new study",
                format.number()
            );
            mistakes.note(Key::Format.into(), problem);
        }
        extension::check_base(base, (&study, &privacy), parties.as_deref().map(width), mistakes);
    }
    if !mistakes.is_empty() {
        return None;
    }
    Some(Definition {
        format: format?,
        name: study.name?,
        rows: study.rows?,
        id: study.id?,
        id_columns: study.id_columns.unwrap_or_default(),
        id_rules,
        preset: study.preset,
        method: study.method?,
        mixing: study.mixing?,
        k: study.k,
        missing_tokens: study.missing_tokens?,
        epsilon: epsilon?,
        delta: delta?,
        calibration: privacy.calibration?,
        extends: study.extends,
        parties: parties?,
        inherited: inherited.len(),
        overlap: study.overlap.map(|range| range.0),
        overlaps,
    })
}

fn check_format(format: Option<u64>, mistakes: &mut Mistakes) -> Option<Format> {
    let known = format.and_then(Format::from_number);
    let newest = Format::NEWEST.number();
    let problem = match format {
        Some(_) if known.is_some() => return known,
        Some(format) => {
            format!(
                "is {format}; this potluck knows formats 1 to {newest}: use the version that wrote the study"
            )
        }
        None => format!("is missing; begin the file with format = {}", Format::NEW.number()),
    };
    mistakes.note(Key::Format.into(), problem);
    None
}

/// What a study must fulfil whose parties may hold different people.
fn check_cohorts(study: &StudySection, mistakes: &mut Mistakes) {
    if let Some(method) = study.method.filter(|&method| method != Method::Calibrated) {
        let problem = format!(
            "{} releases in format 1 only: set format = 1, or leave method and preset out",
            method.word()
        );
        mistakes.note(Place::study(Key::Method), problem);
    }
    if study.id == Some(IdKind::Row) {
        let problem = "positions cannot tell who is where: name ids with \"integer\" or \"text\", or set format = 1 if all tables have the same rows in the same order";
        mistakes.note(Place::study(Key::Id), problem);
    }
}

/// What all parties do to ids.
fn check_ids(study: &StudySection, format: Option<Format>, mistakes: &mut Mistakes) -> Vec<IdRule> {
    let (columns, words) = (study.id_columns.as_deref(), study.id_rules.as_deref());
    for (key, given) in [(Key::IdColumns, columns.is_some()), (Key::IdRules, words.is_some())] {
        if given && format == Some(Format::One) {
            mistakes.note(Place::study(key), "is for format 2: leave it out, or set format = 2");
        } else if given && matches!(study.id, Some(IdKind::Integer | IdKind::Row)) {
            mistakes.note(Place::study(key), "is for ids that are text: set id = \"text\"");
        }
    }
    if let Some(columns) = columns {
        let here = Place::study(Key::IdColumns);
        if columns.is_empty() || columns.iter().collect::<HashSet<_>>().len() != columns.len() {
            mistakes.note(here.clone(), "names the columns that make up an id, each once");
        }
        for column in columns {
            check_name(mistakes, here.clone(), Some(column), 128);
        }
    }
    let words = words.unwrap_or_default();
    let rules: Vec<IdRule> = words.iter().filter_map(|word| IdRule::from_word(word)).collect();
    let in_order = IdRule::ALL.into_iter().filter(|rule| rules.contains(rule));
    if rules.len() != words.len() || !in_order.eq(rules.iter().copied()) {
        let order = IdRule::ALL.map(IdRule::word).join(", ");
        mistakes.note(
            Place::study(Key::IdRules),
            format!("lists some of these, each once and in this order: {order}"),
        );
    }
    if rules.contains(&IdRule::StripZeros) && rules.contains(&IdRule::Date) {
        let problem = "strip-zeros would take the zeros out of dates; keep one of the two";
        mistakes.note(Place::study(Key::IdRules), problem);
    }
    rules
}

/// What is declared of the people whom parties share.
fn check_overlaps(
    study: &StudySection,
    sections: Option<&[OverlapSection]>,
    format: Option<Format>,
    own: &[PartySection],
    inherited: &[Party],
    mistakes: &mut Mistakes,
) -> Vec<Overlap> {
    let place = |at: usize| Place::from(Key::Overlap).item(at, None);
    if format == Some(Format::One) {
        let needless = "is for format 2; in format 1 all parties hold the same people: leave it out";
        if study.overlap.is_some() {
            mistakes.note(Place::study(Key::Overlap), needless);
        }
        if sections.is_some() {
            mistakes.note(Key::Overlap.into(), needless);
        }
        return Vec::new();
    }
    let mut check_share = |place: Place, [low, high]: [f64; 2]| {
        if !(0.0 <= low && low <= high && high <= 1.0) {
            mistakes
                .note(place, "is a range of shares of the smaller party's people: 0 ≤ least ≤ largest ≤ 1");
        }
    };
    if let Some(share) = study.overlap {
        check_share(Place::study(Key::Overlap), share.0);
    }
    for (at, section) in sections.unwrap_or_default().iter().enumerate() {
        if let Some(share) = section.share {
            check_share(place(at).key(Key::Share), share.0);
        }
    }
    let known: HashSet<&str> = own
        .iter()
        .filter_map(|party| party.name.as_deref())
        .chain(inherited.iter().map(Party::name))
        .collect();
    let mut seen = HashSet::new();
    let mut overlaps = Vec::new();
    for (at, section) in sections.unwrap_or_default().iter().enumerate() {
        let (Some(parties), Some(share)) = (section.parties.clone(), section.share) else { continue };
        let here = place(at).key(Key::Parties);
        match <[String; 2]>::try_from(parties) {
            Ok(parties)
                if parties[0] == parties[1] || !parties.iter().all(|name| known.contains(name.as_str())) =>
            {
                mistakes.note(here, "names two different parties of the study");
            }
            Ok(parties) => {
                let mut pair = parties.clone();
                pair.sort();
                if !seen.insert(pair) {
                    mistakes.note(here, "the same two parties stand twice; keep one range");
                }
                overlaps.push(Overlap { parties, share: share.0 });
            }
            Err(_) => mistakes.note(here, "names two parties"),
        }
    }
    overlaps
}

/// Fills in what is left out. A setting that could not be read, or whose default depends on one,
/// stays absent.
fn fill_in(study: &mut StudySection, privacy: &mut PrivacySection, mistakes: &Mistakes) {
    let could = |place: &Place| mistakes.none_in(place);
    let is_paper = study.preset == Some(Preset::Paper);
    if could(&Place::study(Key::Preset)) {
        if could(&Place::study(Key::Method)) {
            study.method.get_or_insert(if is_paper { Method::Rmgm } else { Method::Calibrated });
        }
        if could(&Place::privacy(Key::Calibration)) {
            let default = if is_paper { Calibration::Classical } else { Calibration::Analytic };
            privacy.calibration.get_or_insert(default);
        }
    }
    if could(&Place::study(Key::Mixing)) && study.mixing.is_none() {
        study.mixing = study.method.map(|method| match method {
            Method::Calibrated | Method::Rmgm => MixingKind::Sparse,
            Method::Dgm | Method::Exchange => MixingKind::Identity,
        });
    }
    study.missing_tokens.get_or_insert_with(|| MISSING_TOKENS.map(str::to_owned).to_vec());
}

/// Whether method, mixing, ids and preset go together.
fn check_method(study: &StudySection, privacy: &PrivacySection, mistakes: &mut Mistakes) {
    use MixingKind::{Bernoulli, Identity, Sparse};
    let wrong = match (study.method, study.mixing, study.id) {
        (Some(Method::Calibrated), Some(Bernoulli | Identity), _) => {
            Some((Key::Mixing, "method calibrated mixes sparsely: set mixing = \"sparse\", or leave it out"))
        }
        (Some(Method::Dgm), Some(Identity), Some(IdKind::Integer | IdKind::Text)) => Some((
            Key::Id,
            "method dgm keeps one row a subject in the order of the table: set id = \"row\", or use method rmgm",
        )),
        (Some(Method::Dgm), Some(Sparse | Bernoulli), _) => {
            Some((Key::Mixing, "method dgm does not mix: set mixing = \"identity\""))
        }
        (Some(Method::Exchange), Some(Sparse | Bernoulli), _) => {
            Some((Key::Mixing, "method exchange does not mix: leave mixing out"))
        }
        (Some(Method::Exchange), _, Some(IdKind::Row)) => Some((
            Key::Id,
            "parties that exchange must hold the same people, which positions cannot tell: set id = \"integer\" or \"text\"",
        )),
        (Some(Method::Rmgm), Some(Identity), _) => {
            Some((Key::Mixing, "method rmgm needs mixing = \"sparse\" or \"bernoulli\""))
        }
        _ => None,
    };
    if let Some((key, problem)) = wrong {
        mistakes.note(Place::study(key), problem);
    }
    if study.method == Some(Method::Exchange) && study.extends.is_some() {
        let problem = "parties of an exchange share their budget among the partners that the study names, so none can come later: agree on a new study";
        mistakes.note(Place::study(Key::Extends), problem);
    }
    if study.preset == Some(Preset::Paper) {
        if matches!(study.method, Some(Method::Calibrated | Method::Exchange)) {
            mistakes.note(Place::study(Key::Method), "preset paper is for the methods rmgm and dgm");
        }
        if privacy.calibration == Some(Calibration::Analytic) {
            let problem = "preset paper is calibrated by \"classical\"";
            mistakes.note(Place::privacy(Key::Calibration), problem);
        }
    }
}

/// The parties that the study itself lists, each that is sound; `inherited` are those of the study
/// that it extends.
fn check_parties(
    sections: &[PartySection],
    inherited: &[Party],
    (method, format): (Option<Method>, Option<Format>),
    mistakes: &mut Mistakes,
) -> Vec<Option<Party>> {
    if inherited.len() + sections.len() > MOST_PARTIES {
        let problem = format!("there are more than {MOST_PARTIES}, which nobody has tried; split the study");
        mistakes.note(Key::Party.into(), problem);
    }
    if sections.is_empty() {
        let remedy = Remedy::Write(Vec::<PartySection>::SHAPE);
        mistakes.note(Key::Party.into(), Problem::with("there is none", remedy));
    }
    let of_base: HashSet<&str> = inherited.iter().map(Party::name).collect();
    let mut of_own: HashSet<&str> = HashSet::new();
    let mut taken: HashSet<String> =
        inherited.iter().flat_map(|party| &party.columns).flat_map(Column::all_names).collect();
    taken.extend(inherited.iter().filter_map(Party::presence_name));
    if format == Some(Format::Two) {
        taken.extend(sections.iter().filter_map(|party| Some(format!("present@{}", party.name.as_ref()?))));
    }
    let mut parties = Vec::new();
    for (at, section) in sections.iter().enumerate() {
        let place = Place::party(at, section.name.as_deref());
        parties.push(check_party(section, &place, format, &mut taken, mistakes));
        if section.rows.is_some() && format == Some(Format::One) {
            let problem =
                "is for format 2; in format 1 all parties have the study's number of rows: leave it out";
            mistakes.note(place.key(Key::Rows), problem);
        } else if section.rows.is_some_and(|rows| rows < 2) {
            mistakes.note(place.key(Key::Rows), "must be at least 2: one row cannot be hidden among others");
        }
        let name = section.name.as_deref().unwrap_or_default();
        if of_base.contains(name) {
            mistakes.note(place.key(Key::Name), "is a party of the study that this one extends; list new parties only, and give one that brings more columns another name");
        }
        if !of_own.insert(name) && !name.is_empty() {
            mistakes.note(place.key(Key::Name), "stands twice; give each party a name of its own");
        }
        let finds_norm = method.filter(|method| matches!(method, Method::Calibrated | Method::Exchange));
        if let Some(method) = finds_norm.filter(|_| section.clip_norm.is_some()) {
            let problem = format!("method {} finds the row norm itself; leave clip_norm out", method.word());
            mistakes.note(place.key(Key::ClipNorm), problem);
        }
    }
    if method == Some(Method::Exchange) && inherited.len() + sections.len() == 1 {
        mistakes.note(Key::Party.into(), "an exchange needs at least two parties: add one");
    }
    parties
}

fn check_party(
    section: &PartySection,
    place: &Place,
    format: Option<Format>,
    taken: &mut HashSet<String>,
    mistakes: &mut Mistakes,
) -> Option<Party> {
    let sections = section.column.as_deref().unwrap_or_default();
    if sections.is_empty() {
        let remedy = Remedy::Write(Vec::<ColumnSection>::SHAPE);
        mistakes.note(place.clone(), Problem::with("has no columns", remedy));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if section.name.as_ref().is_some_and(|name| !(1..=64).contains(&name.len()) || !name.chars().all(plain)) {
        mistakes.note(place.key(Key::Name), "a party's name has 1 to 64 letters, digits, '-' or '_'");
    }
    let mut columns = Vec::new();
    for (at, section) in sections.iter().enumerate() {
        let place = place.key(Key::Column).item(at, section.name.as_deref());
        let column = check_column(section, &place, format, mistakes);
        let names = column.as_ref().map_or_else(|| section.name.iter().cloned().collect(), Column::all_names);
        if names.iter().any(|name| taken.contains(name)) {
            mistakes.note(place.key(Key::Name), "the same name stands elsewhere in the study, or in one that it extends; column names must be unique across all parties");
        }
        taken.extend(names);
        columns.push(column);
    }
    let columns = columns.into_iter().collect::<Option<_>>()?;
    Some(Party {
        name: section.name.clone()?,
        clip_norm: section.clip_norm,
        rows: section.rows,
        format: format?,
        columns,
    })
}

fn check_column(
    section: &ColumnSection,
    place: &Place,
    format: Option<Format>,
    mistakes: &mut Mistakes,
) -> Option<Column> {
    let wrong = match (format?, section.missing) {
        (Format::One, Some(Missing::Counted | Missing::Never)) => {
            Some("is for format 2; in format 1 write \"midpoint\" or \"error\"")
        }
        (Format::Two, Some(Missing::Midpoint)) => Some(
            "is for format 1; in format 2 write \"counted\", or \"never\" for a column that is never missing",
        ),
        _ => None,
    };
    if let Some(problem) = wrong {
        mistakes.note(place.key(Key::Missing), problem);
    }
    let within = |typical: f64| {
        let (Some(lo), Some(hi)) = (section.lo, section.hi) else { return false };
        format == Some(Format::Two) && lo.number <= typical && typical <= hi.number
    };
    if section.typical.is_some_and(|typical| !within(typical.number)) {
        let problem = "is for numeric columns of format 2, and lies between lo and hi: the value that most numbers are known to be near";
        mistakes.note(place.key(Key::Typical), problem);
    }
    let default = if format? == Format::Two { Missing::Counted } else { Missing::Midpoint };
    check_name(mistakes, place.key(Key::Name), section.name.as_deref(), 128);
    check_name(mistakes, place.key(Key::Unit), section.unit.as_deref(), 1000);
    check_name(mistakes, place.key(Key::Description), section.description.as_deref(), 1000);
    Some(Column {
        domain: check_domain(section, place, mistakes)?,
        name: section.name.clone()?,
        missing: section.missing.unwrap_or(default),
        typical: section.typical.map(f64::from),
        unit: check_unit(section, place, mistakes),
        description: section.description.clone(),
    })
}

/// The unit of a column. Dates are counted in days, as every table with dates is read.
fn check_unit(section: &ColumnSection, place: &Place, mistakes: &mut Mistakes) -> Option<String> {
    let numbers = [(section.lo, Key::Lo), (section.hi, Key::Hi), (section.typical, Key::Typical)];
    let given: Vec<(Bound, Key)> =
        numbers.into_iter().filter_map(|(bound, key)| Some((bound?, key))).collect();
    if !given.iter().any(|(bound, _)| bound.is_date) {
        return section.unit.clone();
    }
    let counted = section.unit.as_deref() == Some(DAYS);
    if let Some((_, key)) = given.iter().find(|(bound, _)| !bound.is_date).filter(|_| !counted) {
        mistakes.note(
            place.key(*key),
            "is a number where another bound is a date; write a date, such as 1990-01-31",
        );
    }
    if section.unit.is_some() && !counted {
        mistakes.note(place.key(Key::Unit), "is that of dates, which are counted in days; leave it out");
    }
    Some(DAYS.to_owned())
}

fn check_domain(section: &ColumnSection, place: &Place, mistakes: &mut Mistakes) -> Option<Domain> {
    match (section.lo, section.hi, &section.levels) {
        (Some(lo), Some(hi), None) => {
            if section.unknown.is_some() {
                mistakes.note(place.key(Key::Unknown), "is for columns with levels; leave it out");
            }
            mistakes.sound(Bounds::new(lo.number, hi.number), place.key(Key::Hi)).map(Domain::Numeric)
        }
        (None, None, Some(levels)) => {
            let here = place.key(Key::Levels);
            mistakes.sound(LevelCount::new(levels.len()), here.clone())?;
            if levels.iter().collect::<HashSet<_>>().len() != levels.len() {
                mistakes.note(here.clone(), "a level stands twice");
            }
            for level in levels {
                check_name(mistakes, here.clone(), Some(level), 128);
            }
            let unknown = section.unknown.unwrap_or(Unknown::Missing);
            if unknown == Unknown::Other && !levels.iter().any(|level| level == "other") {
                mistakes.note(place.key(Key::Unknown), "is \"other\", which needs a level \"other\"");
            }
            Some(Domain::Categorical { levels: levels.clone(), unknown })
        }
        (_, _, Some(_)) => {
            mistakes.note(place.clone(), "has both bounds and levels; keep lo and hi, or levels");
            None
        }
        _ => {
            mistakes.note(place.clone(), "needs public bounds lo and hi, or public levels; choose them from what is known without looking at the data");
            None
        }
    }
}

fn check_name(mistakes: &mut Mistakes, place: Place, name: Option<&str>, longest: usize) {
    let is_name =
        |name: &str| (1..=longest).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if name.is_some_and(|name| !is_name(name)) {
        mistakes.note(place, format!("a name has 1 to {longest} characters and no control characters"));
    }
}

/// What must hold between the numbers of subjects, columns and released rows. The first parties are
/// those of the study that this one extends.
fn check_sizes(study: &StudySection, parties: &[Party], inherited: usize, mistakes: &mut Mistakes) {
    let width = width(parties);
    if width < 2 {
        mistakes.note(Key::Party.into(), "a regression needs at least two columns in all");
    }
    let fewest = parties.iter().filter_map(|party| party.rows).chain(study.rows).min();
    if let Some(rows) = fewest.filter(|&rows| rows < width) {
        let problem = format!("there are {width} encoded columns but only {rows} rows");
        mistakes.note(Place::study(Key::Rows), problem);
    }
    let wrong_k = match (study.k, fewest) {
        (Some(_), _) if study.method == Some(Method::Dgm) => {
            Some("method dgm has one row a subject; leave k out".to_owned())
        }
        (Some(_), _) if study.method == Some(Method::Exchange) => {
            Some("method exchange has no mixed rows; leave k out".to_owned())
        }
        (Some(k), _) if k < width => Some(format!(
            "must be at least the number of encoded columns, {width}; leave it out for the default"
        )),
        (Some(k), Some(rows)) if k > rows => Some(format!("must not exceed the number of rows, {rows}")),
        _ => None,
    };
    if let Some(problem) = wrong_k {
        mistakes.note(Place::study(Key::K), problem);
    }
    for (at, party) in parties[inherited..].iter().enumerate() {
        let place = Place::party(at, Some(&party.name));
        match ball(study.preset, parties, party) {
            Err((key, problem)) => mistakes.note(key.map_or(place.clone(), |key| place.key(key)), problem),
            Ok(ball) => {
                let rows = u128::from(party.rows.or(study.rows).unwrap_or(0));
                // Every sum of encoded rows and of their products fits i64, and the released
                // numbers are exact in f64.
                let worst = rows * u128::from(ball.norm_squared());
                if worst >= 1 << 62 || rows * Q as u128 >= 1 << 52 {
                    mistakes.note(
                        place,
                        "its sums could overflow: use fewer columns, fewer rows or a smaller clip_norm",
                    );
                }
            }
        }
    }
}

/// The ball that bounds a subject's encoded row at `party`, or the key that makes it unusable and
/// why.
pub(super) fn ball(
    preset: Option<Preset>,
    parties: &[Party],
    party: &Party,
) -> Result<Ball, (Option<Key>, String)> {
    let columns = match preset {
        Some(Preset::Paper) => parties.iter().map(Party::width).max().unwrap_or(0),
        None => party.columns.len(),
    };
    let natural = Ball::of_columns(columns).map_err(|error| (None, error.to_string()))?;
    let Some(radius) = party.clip_norm else { return Ok(natural) };
    let ball = Ball::of_radius(radius).map_err(|error| (Some(Key::ClipNorm), error.to_string()))?;
    if ball.norm_squared() > natural.norm_squared() {
        let problem = format!("is larger than any row can be, √{columns}; leave it out or lower it");
        return Err((Some(Key::ClipNorm), problem));
    }
    Ok(ball)
}

/// Number of encoded columns.
fn width(parties: &[Party]) -> u64 {
    parties.iter().map(|party| party.width() as u64).sum()
}
