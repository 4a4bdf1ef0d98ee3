//! Tables of any folder, understood from their files alone.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::dataset::{Dataset, Encoded, Kind, Raw, below, encode, read_texts, shuffle};
use crate::seeds::Seed;

/// Text of more values than this is no category.
const MOST_LEVELS: usize = 8;
/// A table is dealt to so many parties at most.
const MOST_PARTIES: usize = 6;

/// A table with the columns a regression can use.
pub(crate) struct Inferred {
    pub(crate) name: String,
    /// Each with its encoded columns.
    columns: Vec<Vec<Encoded>>,
    rows: usize,
}

impl Inferred {
    /// Every table of a folder, by name.
    pub(crate) fn of_folder(folder: &Path) -> Result<Vec<Self>> {
        let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        paths.retain(|path| table_name(path).is_some());
        paths.sort();
        let mut tables = Vec::new();
        for path in paths {
            match Self::read(&path)? {
                Some(table) => tables.push(table),
                None => eprintln!("{}: fewer than two usable columns, left out", path.display()),
            }
        }
        if tables.is_empty() {
            bail!("{} holds no table: .csv or .csv.gz", folder.display());
        }
        Ok(tables)
    }

    fn read(path: &Path) -> Result<Option<Self>> {
        let (names, mut texts) = read_texts(path, true)?;
        if names.iter().all(|name| name.parse::<f64>().is_ok()) {
            // The first line is data too.
            texts.iter_mut().zip(&names).for_each(|(column, value)| column.push(value.clone()));
        }
        let usable: Vec<Vec<String>> = texts.into_iter().filter(|column| is_usable(column)).collect();
        let total = usable.first().map_or(0, Vec::len);
        let complete: Vec<usize> =
            (0..total).filter(|&row| usable.iter().all(|column| !is_missing(&column[row]))).collect();
        let of_text = |column: &Vec<String>| {
            let kept = complete.iter().map(|&row| &column[row]);
            match kept.clone().map(|text| text.parse::<f64>()).collect::<Result<Vec<_>, _>>() {
                Ok(numbers) => Raw::Numbers(numbers),
                Err(_) => Raw::Texts(kept.cloned().collect()),
            }
        };
        let columns: Vec<Vec<Encoded>> =
            usable.iter().map(of_text).enumerate().map(|(at, raw)| encode(at, &raw)).collect();
        let name = table_name(path).unwrap_or_default();
        let table = Self { name, columns, rows: complete.len() };
        Ok((table.columns.len() > 1 && !table.labels().is_empty() && table.rows >= 100).then_some(table))
    }

    /// Columns that can be a label: numbers, and columns of two levels.
    fn labels(&self) -> Vec<usize> {
        (0..self.columns.len())
            .filter(|&column| !matches!(self.columns[column][0].kind, Kind::Level { .. }))
            .collect()
    }

    /// Number of rows without a missing value.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub(crate) fn width(&self) -> usize {
        self.columns.len()
    }

    /// At most `most` random rows, with a random label and the columns dealt to 2 to 6 parties at
    /// random.
    pub(crate) fn dealt(&self, most: usize, seed: Seed) -> Dataset {
        let mut rng = Xoshiro256PlusPlus::from_seed(seed.of("deal").bytes());
        let mut rows: Vec<usize> = (0..self.rows).collect();
        shuffle(&mut rows, &mut rng);
        rows.truncate(most);
        let labels = self.labels();
        let label = labels[below(&mut rng, labels.len())];
        let count = 2 + below(&mut rng, MOST_PARTIES.min(self.columns.len()) - 1);
        let mut others: Vec<usize> = (0..self.columns.len()).filter(|&column| column != label).collect();
        shuffle(&mut others, &mut rng);
        // Nobody is left without a column; the label comes last, in the last party.
        let mut parties: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (at, column) in others.into_iter().enumerate() {
            let party = if at + 1 < count { at } else { below(&mut rng, count) };
            parties[party].push(column);
        }
        parties[count - 1].push(label);
        let encoded = |&column: &usize| self.columns[column].iter();
        let columns: Vec<&Encoded> = parties.iter().flatten().flat_map(encoded).collect();
        let size = |party: &Vec<usize>| party.iter().map(|&column| self.columns[column].len()).sum();
        let sizes = parties.iter().map(size).collect();
        Dataset::of_columns(self.name.clone(), &columns, &rows, sizes)
    }
}

/// The name of a table's file without its ending, if it is one.
fn table_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".csv").or_else(|| name.strip_suffix(".csv.gz")).map(str::to_owned)
}

fn is_missing(text: &str) -> bool {
    matches!(text, "" | "NA" | "NaN" | "nan" | "null" | "?")
}

/// Neither constant, nor a running number, nor text of many values.
fn is_usable(column: &[String]) -> bool {
    let present: Vec<&String> = column.iter().filter(|text| !is_missing(text)).collect();
    let distinct: BTreeSet<&String> = present.iter().copied().collect();
    if distinct.len() < 2 || 2 * present.len() < column.len() {
        return false;
    }
    match present.iter().map(|text| text.parse::<f64>()).collect::<Result<Vec<_>, _>>() {
        Ok(numbers) => {
            let finite = numbers.iter().all(|number| number.is_finite());
            let running = numbers.windows(2).all(|pair| (pair[1] - pair[0] - 1.0).abs() < 1e-9);
            finite && !running
        }
        Err(_) => distinct.len() <= MOST_LEVELS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_say_nothing_are_left_out() {
        let column = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert!(!is_usable(&column(&["7", "7", "7"])), "a constant");
        assert!(!is_usable(&column(&["11", "12", "13"])), "a running number");
        assert!(!is_usable(&column(&["a", "b", "c", "d", "e", "f", "g", "h", "i"])), "nine names");
        assert!(!is_usable(&column(&["", "NA", "3", "?"])), "mostly missing");
        assert!(is_usable(&column(&["1.5", "", "2.5", "1"])));
        assert!(is_usable(&column(&["yes", "no", "yes"])));
    }
}
