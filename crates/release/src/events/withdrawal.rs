//! A party's word that it takes an acceptance back.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::canonical;
use crate::signing::{PublicKey, Signature, SigningKey};

/// A party's word that it takes back an acceptance, before it has released: signed with the key
/// that it registered, so that a stolen invitation is not enough.
///
/// It names the event of the acceptance, so that it says nothing about a later one with the same
/// key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Withdrawal {
    /// The id of the study.
    pub study_id: String,
    /// The party that withdraws.
    pub party: String,
    /// The hash of the event with the acceptance.
    pub acceptance: String,
    /// Signature of the key that was registered, in hexadecimal.
    pub signature: String,
}

impl Withdrawal {
    /// Takes back the acceptance of `party` that is in the event with this hash; `key` is the one
    /// that it registered.
    pub fn new(study_id: &str, party: &str, acceptance: &str, key: &SigningKey) -> Self {
        let mut withdrawal = Self {
            study_id: study_id.to_owned(),
            party: party.to_owned(),
            acceptance: acceptance.to_owned(),
            signature: String::new(),
        };
        withdrawal.signature = key.sign_withdrawal(&withdrawal.message()).signature;
        withdrawal
    }

    /// Whether it is signed by this key.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        let signature = Signature { public_key: key.to_string(), signature: self.signature.clone() };
        signature.withdrawer(&self.message()).is_some()
    }

    pub(super) fn message(&self) -> [u8; 32] {
        let said = json!({ "study_id": self.study_id, "party": self.party, "acceptance": self.acceptance });
        Sha256::digest(canonical::json(&said)).into()
    }
}
