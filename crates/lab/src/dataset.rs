//! Real tables, described by a small TOML file each.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::read::MultiGzDecoder;
use potluck_core::encoding::{Bounds, LevelCount, MISSING_LEVEL};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;

use crate::family::{self, Truth};
use crate::holdings::{Column, Holdings};
use crate::seeds::Seed;
use crate::table::Table;

/// The datasets of the paper.
const BUILT_IN: [(&str, &str); 5] = [
    ("insurance", include_str!("../datasets/insurance.toml")),
    ("bike", include_str!("../datasets/bike.toml")),
    ("superconductor", include_str!("../datasets/superconductor.toml")),
    ("gpu", include_str!("../datasets/gpu.toml")),
    ("music", include_str!("../datasets/music.toml")),
];

/// Tables for yes/no labels, with the value that a label is above: its median if none.
const YES_NO: [(&str, &str, Option<f64>); 6] = [
    ("insurance", include_str!("../datasets/insurance.toml"), None),
    ("bike", include_str!("../datasets/bike.toml"), None),
    ("gpu", include_str!("../datasets/gpu.toml"), None),
    ("california", include_str!("../datasets/california.toml"), None),
    ("diamonds", include_str!("../datasets/diamonds.toml"), None),
    ("randhie", include_str!("../datasets/randhie.toml"), Some(0.0)),
];

/// What the paper published for a dataset: losses of DGM, RMGM and BGM by ε.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    pub(crate) ols: f64,
    pub(crate) losses: Vec<PublishedLosses>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedLosses {
    pub(crate) epsilon: f64,
    pub(crate) dgm: f64,
    pub(crate) rmgm: f64,
    pub(crate) bgm: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    name: String,
    /// File names to look for, the first that exists is used.
    file: Vec<String>,
    /// Whether the first line names the columns; otherwise they are called 1, 2, …
    #[serde(default = "yes")]
    header: bool,
    /// One column, or several whose mean is the label.
    label: Vec<String>,
    /// The features in order; all other columns if absent.
    features: Option<Vec<String>>,
    /// Columns to leave out when `features` is absent.
    #[serde(default)]
    leave_out: Vec<String>,
    /// Number of parties: encoded columns are dealt evenly in order, the label last; or the
    /// parties' sizes.
    parties: Parties,
    published: Option<Published>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Parties {
    Count(usize),
    Sizes(Vec<usize>),
}

fn yes() -> bool {
    true
}

/// What an encoded column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number, in [0, 1].
    Number,
    /// One of two levels, as 0 and 1.
    TwoLevels,
    /// Whether a text column of more than two levels has this one; the levels of a column come one
    /// after another.
    Level { column: usize, levels: usize },
}

/// An encoded column of a real table, scaled to [0, 1].
#[derive(Clone)]
pub(crate) struct Encoded {
    pub(crate) kind: Kind,
    pub(crate) values: Vec<f64>,
}

/// A real table in memory, every column scaled to [0, 1] by its smallest and largest value, the
/// label last.
pub(crate) struct Dataset {
    pub(crate) name: String,
    pub(crate) published: Option<Published>,
    /// Row-major, in [0, 1].
    values: Vec<f64>,
    kinds: Vec<Kind>,
    /// Number of encoded columns of each party, in order.
    sizes: Vec<usize>,
}

/// Values of one column of the file.
pub(crate) enum Raw {
    Numbers(Vec<f64>),
    Texts(Vec<String>),
}

impl Dataset {
    /// The names of the paper's datasets.
    pub(crate) fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// One of the paper's datasets.
    pub(crate) fn built_in(name: &str, folder: &Path) -> Result<Self> {
        let (_, text) = BUILT_IN
            .iter()
            .find(|(candidate, _)| *candidate == name)
            .with_context(|| format!("there is no built-in dataset {name:?}"))?;
        Self::load(text, folder).with_context(|| format!("dataset {name}"))
    }

    /// The names of tables with yes/no labels.
    pub(crate) fn yes_no_names() -> impl Iterator<Item = &'static str> {
        YES_NO.iter().map(|(name, ..)| *name)
    }

    /// One of them, if its file is there.
    pub(crate) fn yes_no(name: &str, folder: &Path) -> Result<Option<Self>> {
        let (_, text, above) = YES_NO
            .iter()
            .find(|(candidate, ..)| *candidate == name)
            .with_context(|| format!("there is no table {name:?} with a yes/no label"))?;
        let description: Description = toml::from_str(text)?;
        if !description.file.iter().any(|file| folder.join(file).exists()) {
            return Ok(None);
        }
        let mut dataset = Self::load(text, folder).with_context(|| format!("table {name}"))?;
        let width = dataset.width();
        let mut labels: Vec<f64> = dataset.values.iter().skip(width - 1).step_by(width).copied().collect();
        labels.sort_by(f64::total_cmp);
        // Values are scaled to [0, 1], so that 0 stays the smallest.
        let limit = above.unwrap_or(labels[labels.len() / 2]);
        for row in dataset.values.chunks_exact_mut(width) {
            row[width - 1] = f64::from(row[width - 1] > limit);
        }
        dataset.kinds[width - 1] = Kind::TwoLevels;
        Ok(Some(dataset))
    }

    /// A dataset that a user describes.
    pub(crate) fn described_by(path: &Path, folder: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::load(&text, folder).with_context(|| format!("dataset {}", path.display()))
    }

    /// Whether one of the files of a built-in dataset is there.
    pub(crate) fn is_there(name: &str, folder: &Path) -> bool {
        let description = BUILT_IN.iter().find(|(candidate, _)| *candidate == name);
        description
            .and_then(|(_, text)| toml::from_str::<Description>(text).ok())
            .is_some_and(|description| description.file.iter().any(|file| folder.join(file).exists()))
    }

    fn load(text: &str, folder: &Path) -> Result<Self> {
        let description: Description = toml::from_str(text)?;
        let path =
            description.file.iter().map(|file| folder.join(file)).find(|path| path.exists()).with_context(
                || format!("none of {} is in {}", description.file.join(", "), folder.display()),
            )?;
        let (names, columns) = read_csv(&path, description.header)?;
        let find = |name: &String| {
            let at = names.iter().position(|candidate| candidate == name);
            at.with_context(|| {
                format!("{} has no column {name:?}; it has {}", path.display(), names.join(", "))
            })
        };
        let labels = description.label.iter().map(find).collect::<Result<Vec<_>>>()?;
        let features = match &description.features {
            Some(features) => features.iter().map(find).collect::<Result<Vec<_>>>()?,
            None => (0..names.len())
                .filter(|at| !labels.contains(at) && !description.leave_out.contains(&names[*at]))
                .collect(),
        };
        let mut encoded: Vec<Encoded> = Vec::new();
        for at in features {
            encoded.extend(encode(at, &columns[at]));
        }
        let rows = encoded.first().map_or(0, |column| column.values.len());
        let mut label = vec![0.0; rows];
        for at in &labels {
            let Raw::Numbers(values) = &columns[*at] else {
                bail!("the label {:?} is not numeric", names[*at])
            };
            label.iter_mut().zip(values).for_each(|(sum, value)| *sum += value / labels.len() as f64);
        }
        encoded.push(number(label));
        let width = encoded.len();
        let sizes = match description.parties {
            Parties::Sizes(sizes) => sizes,
            Parties::Count(count) => {
                (0..count).map(|party| width * (party + 1) / count - width * party / count).collect()
            }
        };
        if sizes.iter().sum::<usize>() != width {
            bail!(
                "the parties hold {} columns, but there are {width} encoded columns",
                sizes.iter().sum::<usize>()
            );
        }
        let columns: Vec<&Encoded> = encoded.iter().collect();
        let all: Vec<usize> = (0..rows).collect();
        let dataset = Self::of_columns(description.name, &columns, &all, sizes);
        Ok(Self { published: description.published, ..dataset })
    }

    /// Some rows of encoded columns, dealt to parties of these sizes in order.
    pub(crate) fn of_columns(name: String, columns: &[&Encoded], rows: &[usize], sizes: Vec<usize>) -> Self {
        let row = |&row: &usize| columns.iter().map(move |column| column.values[row]);
        Self {
            name,
            published: None,
            values: rows.iter().flat_map(row).collect(),
            kinds: columns.iter().map(|column| column.kind).collect(),
            sizes,
        }
    }

    /// The same table where public bounds are `factor` times as wide as the values: numbers gather
    /// around ½.
    pub(crate) fn loosened(mut self, factor: f64) -> Self {
        for row in self.values.chunks_exact_mut(self.kinds.len()) {
            for (value, kind) in row.iter_mut().zip(&self.kinds) {
                if *kind == Kind::Number {
                    *value = 0.5 + (*value - 0.5) / factor;
                }
            }
        }
        self
    }

    /// Number of parties.
    pub(crate) fn parties(&self) -> usize {
        self.sizes.len()
    }

    fn width(&self) -> usize {
        self.kinds.len()
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.values.len() / self.width()
    }

    /// Number of features after encoding.
    pub(crate) fn features(&self) -> usize {
        self.width() - 1
    }

    /// Encoded columns of the label's kind, itself among them.
    pub(crate) fn like_label(&self) -> Vec<usize> {
        (0..self.width()).filter(|&column| self.kinds[column] == self.kinds[self.width() - 1]).collect()
    }

    /// A random split 4:1 into training and test rows.
    pub(crate) fn split(&self, seed: Seed) -> (Table, Table) {
        let rows = self.rows();
        let mut order: Vec<usize> = (0..rows).collect();
        shuffle(&mut order, &mut Xoshiro256PlusPlus::from_seed(seed.of("split").bytes()));
        let (train, test) = order.split_at(rows * 4 / 5);
        (self.table(train), self.table(test))
    }

    /// Values in [0, 1] are encoded with bounds [−1, 1] by the paper's methods, so that 0 stays 0.
    fn table(&self, rows: &[usize]) -> Table {
        let bounds = Bounds::new(-1.0, 1.0).expect("−1 is below 1");
        let row = |&row: &usize| self.values[row * self.width()..(row + 1) * self.width()].iter();
        let encoded = rows.iter().flat_map(row).map(|&value| bounds.encode(value)).collect();
        let largest_party = self.sizes.iter().copied().max().unwrap_or(1);
        Table::new(self.width(), encoded, largest_party, self.holdings(rows))
    }

    /// All rows as their parties hold them, with what least squares finds in them.
    pub(crate) fn with_truth(&self) -> family::Table {
        let rows: Vec<usize> = (0..self.rows()).collect();
        let holdings = self.holdings(&rows);
        let label = self.width() - 1;
        let column =
            |at: usize| -> Vec<f64> { self.values[at..].iter().step_by(self.width()).copied().collect() };
        let first_of_label_party = self.width() - self.sizes.last().copied().unwrap_or(0);
        let is_reference = |at: usize| {
            let before = at.checked_sub(1).map(|before| self.kinds[before]);
            matches!(self.kinds[at], Kind::Level { .. }) && before != Some(self.kinds[at])
        };
        let name = |at: usize| if self.kinds[at] == Kind::Number { "number" } else { "levels" };
        let features = (0..label)
            .filter(|&at| !is_reference(at))
            .map(|at| (Truth::unknown(name(at).to_owned(), at >= first_of_label_party, at), column(at)));
        family::Table::new(holdings, (label, &column(label)), features.collect())
    }

    /// The columns as their parties would declare them: numbers in [0, 1], and levels.
    fn holdings(&self, rows: &[usize]) -> Holdings {
        let bounds = Bounds::new(0.0, 1.0).expect("0 is below 1");
        let value = |row: usize, column: usize| self.values[row * self.width() + column];
        let two = LevelCount::new(2).expect("two is enough");
        let mut parties = Vec::new();
        let mut at = 0;
        for &size in &self.sizes {
            let end = at + size;
            let mut columns = Vec::new();
            while at < end {
                let whole = |levels: usize| {
                    at + levels <= end
                        && self.kinds[at..at + levels].iter().all(|kind| *kind == self.kinds[at])
                };
                let (column, width) = match self.kinds[at] {
                    Kind::Number => {
                        let values = rows.iter().map(|&row| value(row, at)).collect();
                        (Column::Numbers { bounds, values }, 1)
                    }
                    Kind::Level { levels, .. } if whole(levels) => {
                        let code = |row: usize| (0..levels).find(|level| value(row, at + level) > 0.5);
                        let codes =
                            rows.iter().map(|&row| code(row).map_or(MISSING_LEVEL, |code| code as u32));
                        let count = LevelCount::new(levels).expect("more than two levels");
                        (Column::Levels { count, codes: codes.collect() }, levels)
                    }
                    // A level whose column is split between parties is a column of its own.
                    Kind::TwoLevels | Kind::Level { .. } => {
                        let codes = rows.iter().map(|&row| u32::from(value(row, at) > 0.5)).collect();
                        (Column::Levels { count: two, codes }, 1)
                    }
                };
                columns.push(column);
                at += width;
            }
            parties.push(columns);
        }
        Holdings::new(rows.len(), parties)
    }
}

/// Puts items in random order.
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut Xoshiro256PlusPlus) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last + 1));
    }
}

/// A random number below `count`.
pub(crate) fn below(rng: &mut Xoshiro256PlusPlus, count: usize) -> usize {
    ((u128::from(rng.next_u64()) * count as u128) >> 64) as usize
}

/// A text column becomes 0 and 1 if it has two levels, else one column a level.
pub(crate) fn encode(position: usize, column: &Raw) -> Vec<Encoded> {
    match column {
        Raw::Numbers(values) => vec![number(values.clone())],
        Raw::Texts(texts) => {
            let levels: BTreeSet<&String> = texts.iter().collect();
            let skip = usize::from(levels.len() == 2);
            let kind = match levels.len() {
                0..=2 => Kind::TwoLevels,
                levels => Kind::Level { column: position, levels },
            };
            let indicator = |level: &&String| Encoded {
                kind,
                values: texts.iter().map(|text| f64::from(text == *level)).collect(),
            };
            levels.iter().skip(skip).map(indicator).collect()
        }
    }
}

/// A numeric column scaled to [0, 1]; one of two values counts as one of two levels.
fn number(mut values: Vec<f64>) -> Encoded {
    let (low, high) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &value| (l.min(value), h.max(value)));
    let width = if high > low { high - low } else { 1.0 };
    for value in &mut values {
        *value = (*value - low) / width;
    }
    let two = values.iter().all(|value| value.fract() == 0.0);
    Encoded { kind: if two { Kind::TwoLevels } else { Kind::Number }, values }
}

/// Names and columns of a file of comma-separated values, packed or not.
fn read_csv(path: &Path, header: bool) -> Result<(Vec<String>, Vec<Raw>)> {
    let (names, texts) = read_texts(path, header)?;
    let columns = texts
        .into_iter()
        .map(|texts| match texts.iter().map(|text| text.parse::<f64>()).collect::<Result<Vec<_>, _>>() {
            Ok(numbers) => Raw::Numbers(numbers),
            Err(_) => Raw::Texts(texts),
        })
        .collect();
    Ok((names, columns))
}

/// The same as it is written.
pub(crate) fn read_texts(path: &Path, header: bool) -> Result<(Vec<String>, Vec<Vec<String>>)> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let stream: Box<dyn Read> = if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(MultiGzDecoder::new(BufReader::new(file)))
    } else {
        Box::new(file)
    };
    let mut reader = csv::ReaderBuilder::new().has_headers(header).from_reader(stream);
    let mut names: Vec<String> = Vec::new();
    if header {
        names = reader.headers()?.iter().map(|name| name.trim().to_owned()).collect();
    }
    let mut texts: Vec<Vec<String>> = Vec::new();
    for record in reader.records() {
        let record = record.with_context(|| format!("cannot read {}", path.display()))?;
        texts.resize_with(record.len(), Vec::new);
        texts.iter_mut().zip(&record).for_each(|(column, value)| column.push(value.trim().to_owned()));
    }
    if names.is_empty() {
        names = (1..=texts.len()).map(|position| position.to_string()).collect();
    }
    Ok((names, texts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holdings::Form;
    use crate::released::Own;
    use crate::table::Privacy;
    use potluck_core::mixing::MixingKey;
    use potluck_release::study::{Format, Party};

    /// Levels that are all with one party are one column; levels that are not are columns of their
    /// own.
    #[test]
    fn levels_of_a_column_stay_together_where_they_can() {
        let texts: Vec<String> = ["a", "b", "c", "a"].map(str::to_owned).to_vec();
        let mut encoded = encode(0, &Raw::Texts(texts));
        encoded.push(number(vec![10.0, 30.0, 20.0, 10.0]));
        encoded.push(number(vec![5.0, 5.0, 7.0, 7.0]));
        let columns: Vec<&Encoded> = encoded.iter().collect();
        let dealt = |sizes: &[usize]| {
            let rows = [3, 1, 2];
            let dataset = Dataset::of_columns("mine".to_owned(), &columns, &rows, sizes.to_vec());
            let holdings = dataset.holdings(&[0, 1, 2]);
            let privacy = Privacy { epsilon: 1.0, delta: 1e-5 };
            let form = Form { method: Own::Calibrated, format: Format::NEW, declares: true };
            let study = holdings.study(form, 100, privacy, None, &MixingKey::new([0; 32])).unwrap();
            let layout = |party: &Party| study.calibrated(party.name()).unwrap().unwrap().layout().clone();
            let layouts = study.definition().parties().iter().map(layout);
            layouts.map(|layout| (layout.width(), layout.effective_width())).collect::<Vec<_>>()
        };
        assert_eq!(dealt(&[3, 2]), [(3, 2), (2, 2)]);
        assert_eq!(dealt(&[2, 3]), [(2, 2), (3, 3)]);
        assert_eq!(encoded[4].kind, Kind::TwoLevels);
        assert_eq!(encoded[3].values, [0.0, 1.0, 0.5, 0.0]);
    }
}
