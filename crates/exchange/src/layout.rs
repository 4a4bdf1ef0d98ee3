//! Where everything stands in a message: the tables of docs/EXCHANGE.md#offer and #reply.

use crate::terms::Terms;

/// Bytes of the header of an offer.
pub(crate) const OFFER_HEADER: usize = 8 + 64;

/// Bytes of the header of a reply.
pub(crate) const REPLY_HEADER: usize = 8 + 64 + 64 + 2;

/// The header of the offer under these terms.
pub(crate) fn offer_header(terms: &Terms) -> Vec<u8> {
    [b"PLXC-OF1".as_slice(), terms.hash()].concat()
}

/// The header of the reply of `recipient` to the offer of this hash.
pub(crate) fn reply_header(terms: &Terms, offer: &[u8; 64], recipient: u16) -> Vec<u8> {
    [b"PLXC-RE1".as_slice(), terms.hash(), offer, &recipient.to_le_bytes()].concat()
}

/// A section of a message.
#[derive(Clone, Copy)]
pub(crate) struct Section {
    pub(crate) first: u64,
    /// Bytes of one of its equal parts: of a row, a repetition, or the whole.
    pub(crate) part: usize,
    pub(crate) parts: u64,
}

impl Section {
    pub(crate) fn length(self) -> u64 {
        self.part as u64 * self.parts
    }

    /// Where part `index` begins.
    pub(crate) fn at(self, index: u64) -> u64 {
        self.first + index * self.part as u64
    }
}

/// Lays sections one after another.
struct Ruler(u64);

impl Ruler {
    fn section(&mut self, part: usize, parts: u64) -> Section {
        let section = Section { first: self.0, part, parts };
        self.0 += section.length();
        section
    }
}

/// The sections of an offer.
pub(crate) struct OfferLayout {
    pub(crate) keys: Section,
    pub(crate) masks: Section,
    pub(crate) rows: Section,
    pub(crate) norm: Section,
    pub(crate) responses: Section,
    pub(crate) closing: Section,
    pub(crate) sums: Section,
    pub(crate) length: u64,
}

impl OfferLayout {
    pub(crate) fn new(terms: &Terms) -> Self {
        let d = usize::from(terms.sender().columns);
        let (people, repetitions) = (terms.people(), terms.repetitions() as u64);
        let mut ruler = Ruler(OFFER_HEADER as u64);
        Self {
            keys: ruler.section(32 * d, 1),
            masks: ruler.section(32 * (d + 2), repetitions),
            rows: ruler.section(32 * (2 * d + 6), people),
            norm: ruler.section(64, 1),
            responses: ruler.section(32 * (d + 6), people),
            closing: ruler.section(32, 1),
            sums: ruler.section(64 + 16 * (d + 4), repetitions),
            length: ruler.0,
        }
    }
}

/// The sections of a reply.
pub(crate) struct ReplyLayout {
    pub(crate) masks: Section,
    pub(crate) rows: Section,
    pub(crate) outputs: Section,
    pub(crate) noise: Section,
    pub(crate) norm: Section,
    pub(crate) output_mask: Section,
    pub(crate) responses: Section,
    pub(crate) closing: Section,
    pub(crate) openings: Section,
    pub(crate) sums: Section,
    pub(crate) length: u64,
}

impl ReplyLayout {
    /// For a recipient that brings `columns` columns.
    pub(crate) fn new(terms: &Terms, columns: u16) -> Self {
        let (own, offered) = (usize::from(columns), usize::from(terms.sender().columns));
        let (people, repetitions) = (terms.people(), terms.repetitions() as u64);
        let mut ruler = Ruler(REPLY_HEADER as u64);
        Self {
            masks: ruler.section(32, repetitions),
            rows: ruler.section(64, people),
            outputs: ruler.section(32 * own * (offered + 2), 1),
            noise: ruler.section(64 * own * (offered + 1), 1),
            norm: ruler.section(64, 1),
            output_mask: ruler.section(32, 1),
            responses: ruler.section(32 * (own + 5), people),
            closing: ruler.section(32, 1),
            openings: ruler.section(64 * own * (offered + 1), 1),
            sums: ruler.section(32 + 16 * (own + 4), repetitions),
            length: ruler.0,
        }
    }
}
