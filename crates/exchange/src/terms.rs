//! What both sides agree on before an offer is made: docs/EXCHANGE.md#terms.

use potluck_core::calibrated::{GRID, LARGEST_NORM, MOST_EXCHANGED, range_of_products};
use potluck_core::noise::Sigma;
use sha2::{Digest, Sha512};
use thiserror::Error;

/// Repetitions of the proof that entries are integers.
pub(crate) const REPETITIONS: u16 = 128;

/// Masks of opened sums lie in [0, 2^`MASK_BITS`).
pub(crate) const MASK_BITS: u16 = 120;

/// People that a study may have.
const MOST_PEOPLE: u64 = 1 << 30;

/// A party in the terms of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    /// Its place in the sealed study.
    pub index: u16,
    /// Columns of its rows.
    pub columns: u16,
    /// The bound C of its rows' squared norms.
    pub norm: u32,
    /// A hash of its releases of stages 1 to 3.
    pub releases: [u8; 32],
    /// What it drew for this session.
    pub nonce: [u8; 32],
}

/// A recipient of an offer, and the scale of the noise in the products with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// Who.
    pub party: Participant,
    /// σ.
    pub sigma: Sigma,
    /// Results lie within ± this, or are published as out of range.
    pub range: u64,
}

/// The terms of one offer: valid, with their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    people: u64,
    repetitions: u16,
    sender: Participant,
    recipients: Vec<Recipient>,
    bytes: Vec<u8>,
    hash: [u8; 64],
}

/// Why terms are refused (*terms* in docs/EXCHANGE.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TermsError {
    /// No people, or too many.
    #[error("an exchange needs 1 to 2^30 people, not {0}")]
    People(u64),
    /// No recipient, or too many.
    #[error("an offer needs 1 to 65,534 recipients, not {0}")]
    Recipients(usize),
    /// Recipients not in ascending order above the sender.
    #[error("recipients must be in ascending order, above the sender's index; party {0} is not")]
    Order(u16),
    /// A party without columns, or with too many.
    #[error("party {0} must bring 1 to 252 columns")]
    Columns(u16),
    /// A bound of rows that is zero or too large.
    #[error("the bound of the rows of party {0} must be between 1 and 2^20")]
    Norm(u16),
    /// Results could not be found.
    #[error(
        "products with party {0} could leave the range that can be searched; fewer people or columns, \
         or a larger epsilon, would fit"
    )]
    Range(u16),
}

impl Terms {
    /// Terms of an offer under a sealed contract; `attempt` counts the sender's sessions under it.
    pub fn new(
        contract: [u8; 32],
        attempt: u32,
        people: u64,
        sender: Participant,
        recipients: Vec<(Participant, Sigma)>,
    ) -> Result<Self, TermsError> {
        Self::with_repetitions(contract, attempt, people, sender, recipients, REPETITIONS)
    }

    /// [`Terms::new`] with a weaker proof, which tests break.
    pub(crate) fn with_repetitions(
        contract: [u8; 32],
        attempt: u32,
        people: u64,
        sender: Participant,
        recipients: Vec<(Participant, Sigma)>,
        repetitions: u16,
    ) -> Result<Self, TermsError> {
        if !(1..=MOST_PEOPLE).contains(&people) {
            return Err(TermsError::People(people));
        }
        let parties = u16::try_from(recipients.len() + 1)
            .ok()
            .filter(|&parties| parties > 1)
            .ok_or(TermsError::Recipients(recipients.len()))?;
        check_party(&sender)?;
        let mut last = sender.index;
        for (party, _) in &recipients {
            check_party(party)?;
            if party.index <= last {
                return Err(TermsError::Order(party.index));
            }
            last = party.index;
        }
        let recipients: Vec<Recipient> = recipients
            .into_iter()
            .map(|(party, sigma)| {
                let range = range_of_products(people, [sender.norm, party.norm], sigma)
                    .ok_or(TermsError::Range(party.index))?;
                Ok(Recipient { party, sigma, range })
            })
            .collect::<Result<_, TermsError>>()?;
        let mut bytes = b"potluck exchange terms 1".to_vec();
        bytes.extend(contract);
        bytes.extend(attempt.to_le_bytes());
        bytes.extend(people.to_le_bytes());
        for number in [GRID, repetitions, MASK_BITS, parties] {
            bytes.extend(number.to_le_bytes());
        }
        for party in [&sender].into_iter().chain(recipients.iter().map(|to| &to.party)) {
            bytes.extend(party.index.to_le_bytes());
            bytes.extend(party.columns.to_le_bytes());
            bytes.extend(party.norm.to_le_bytes());
            bytes.extend(party.releases);
            bytes.extend(party.nonce);
        }
        for recipient in &recipients {
            bytes.extend(recipient.sigma.get().to_le_bytes());
        }
        let hash = Sha512::digest(&bytes).into();
        Ok(Self { people, repetitions, sender, recipients, bytes, hash })
    }

    /// How many rows each party brings.
    pub fn people(&self) -> u64 {
        self.people
    }

    /// Who encrypts its rows.
    pub fn sender(&self) -> &Participant {
        &self.sender
    }

    /// Who multiplies them with its own, in ascending order.
    pub fn recipients(&self) -> &[Recipient] {
        &self.recipients
    }

    /// The recipient of this index.
    pub fn recipient(&self, index: u16) -> Option<&Recipient> {
        self.recipients.iter().find(|to| to.party.index == index)
    }

    /// The bytes that every challenge binds.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// SHA-512 of [`Terms::bytes`]: what headers name.
    pub fn hash(&self) -> &[u8; 64] {
        &self.hash
    }

    pub(crate) fn repetitions(&self) -> usize {
        usize::from(self.repetitions)
    }
}

fn check_party(party: &Participant) -> Result<(), TermsError> {
    if !(1..=MOST_EXCHANGED).contains(&usize::from(party.columns)) {
        return Err(TermsError::Columns(party.index));
    }
    if !(1..=LARGEST_NORM).contains(&party.norm) {
        return Err(TermsError::Norm(party.index));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(index: u16, columns: u16, norm: u32) -> Participant {
        Participant { index, columns, norm, releases: [1; 32], nonce: [2; 32] }
    }

    fn terms(
        people: u64,
        sender: Participant,
        recipients: Vec<(Participant, u64)>,
    ) -> Result<Terms, TermsError> {
        let recipients = recipients
            .into_iter()
            .map(|(party, sigma)| (party, Sigma::new(sigma).expect("in range")))
            .collect();
        Terms::new([0; 32], 0, people, sender, recipients)
    }

    #[test]
    fn terms_that_the_proof_does_not_cover_are_refused() {
        let good = || party(1, 252, 1 << 20);
        assert!(terms(1 << 10, good(), vec![(party(2, 1, 1), 1), (party(3, 1, 1), 1)]).is_ok());
        assert_eq!(terms(0, good(), vec![(party(2, 1, 1), 1)]), Err(TermsError::People(0)));
        let many = (1 << 30) + 1;
        assert_eq!(terms(many, good(), vec![(party(2, 1, 1), 1)]), Err(TermsError::People(many)));
        assert_eq!(terms(9, good(), vec![]), Err(TermsError::Recipients(0)));
        for order in [vec![1], vec![0], vec![3, 2], vec![2, 2]] {
            let wrong = *order.last().expect("one");
            let to = order.into_iter().map(|index| (party(index, 1, 1), 1)).collect();
            assert_eq!(terms(9, good(), to), Err(TermsError::Order(wrong)));
        }
        for columns in [0, 253] {
            let to = vec![(party(2, columns, 1), 1)];
            assert_eq!(terms(9, good(), to), Err(TermsError::Columns(2)));
            let to = vec![(party(2, 1, 1), 1)];
            assert_eq!(terms(9, party(1, columns, 1), to), Err(TermsError::Columns(1)));
        }
        for norm in [0, (1 << 20) + 1] {
            assert_eq!(terms(9, good(), vec![(party(2, 1, norm), 1)]), Err(TermsError::Norm(2)));
        }
        // The range holds 2^40 − 1 and no more.
        let to = |norm| vec![(party(2, 1, norm), 1)];
        let all = terms((1 << 20) - 1, good(), to(1 << 20)).expect("fits");
        assert_eq!(all.recipients()[0].range, (1 << 40) - (1 << 20) + 19);
        assert_eq!(terms(1 << 20, good(), to(1 << 20)), Err(TermsError::Range(2)));
        assert_eq!(terms(9, good(), vec![(party(2, 1, 1), 1 << 40)]), Err(TermsError::Range(2)));
    }
}
