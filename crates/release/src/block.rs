//! Exchanged blocks: noised products of two parties' rows (docs/EXCHANGE.md#result).

use potluck_core::calibrated::{ExchangedRows, GRID, PartyPlan, range_of_products};
use potluck_core::noise::Sigma;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::study::Study;

/// Noised products of every column of one party with every column of another, over all people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// The sender, and the recipient, who is later in the study.
    pub(crate) parties: [String; 2],
    /// For each encoded column of the sender one for each of the recipient, in steps of the grid;
    /// none if it was out of range.
    pub(crate) values: Vec<Option<i64>>,
}

impl Block {
    /// What a sender published of its exchange with a recipient.
    pub fn new(sender: &str, recipient: &str, values: Vec<Option<i64>>) -> Self {
        Self { parties: [sender.to_owned(), recipient.to_owned()], values }
    }

    /// The sender, and the recipient.
    pub fn parties(&self) -> [&str; 2] {
        self.parties.each_ref().map(String::as_str)
    }

    /// The published products, row by row of the sender's encoded columns.
    pub fn values(&self) -> &[Option<i64>] {
        &self.values
    }

    /// What is wrong with it, given what its parties published before.
    pub(crate) fn check(&self, study: &Study, pair: &Pair) -> Result<(), &'static str> {
        let place = |name: &str| study.definition().parties().iter().position(|party| party.name() == name);
        let [sender, recipient] = self.parties().map(place);
        if sender.is_none() || sender >= recipient {
            return Err("the sender of a block comes before its recipient in the study");
        }
        let [rows, columns] = &pair.rows;
        if self.values.len() != rows.width() * columns.width() {
            return Err("a block does not have a value for each two columns");
        }
        if self.values.iter().flatten().any(|value| value.unsigned_abs() > pair.range) {
            return Err("a value of a block is out of range");
        }
        Ok(())
    }
}

/// What two parties' stages determine of their exchange.
#[derive(Clone, Debug)]
pub struct Pair {
    /// How the sender and the recipient encode their rows.
    pub rows: [ExchangedRows; 2],
    /// σ: of the noise that each adds.
    pub sigma: Sigma,
    /// Results lie within ± this.
    pub range: u64,
    people: u64,
}

impl Pair {
    /// From the noised sums of both parties' stages.
    ///
    /// # Privacy
    /// σ keeps both within the share of their pairs: Lemma X1, docs/PRIVACY.md#exchange.
    pub fn new(study: &Study, parties: [(&str, &[Vec<i64>]); 2]) -> Result<Self, Error> {
        let [(sender, own), (recipient, theirs)] = parties;
        let plan =
            |party: &str| -> Result<&PartyPlan, Error> { study.calibrated(party)?.ok_or(Error::Stages) };
        let (one, other) = (plan(sender)?, plan(recipient)?);
        let unsound = |_| Error::Stages;
        let rows =
            [one.exchanged_rows(own).map_err(unsound)?, other.exchanged_rows(theirs).map_err(unsound)?];
        let norms = rows.each_ref().map(ExchangedRows::norm);
        let sigma = one.scale_of_pair(norms).map_err(unsound)?;
        let people = study.definition().rows();
        let range = range_of_products(people, norms, sigma).ok_or(Error::Stages)?;
        Ok(Self { rows, sigma, range, people })
    }

    /// What a published product of a column of the sender with one of the recipient is as a
    /// covariance of standardised columns.
    pub fn covariance(&self, product: i64, columns: [usize; 2]) -> f64 {
        let [one, other] = [0, 1].map(|side| self.rows[side].offsets()[columns[side]]);
        product as f64 / self.scale() - one * other
    }

    /// Standard deviation of the noise in that, rounding included: both parties added some.
    pub fn noise(&self) -> f64 {
        (2.0 * ((self.sigma.get() as f64).powi(2) + 1.0 / 12.0)).sqrt() / self.scale()
    }

    fn scale(&self) -> f64 {
        self.people as f64 * f64::from(GRID) * f64::from(GRID)
    }
}
