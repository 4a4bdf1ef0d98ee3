//! What can go wrong: whose message, and which check of docs/EXCHANGE.md it failed. No error holds
//! a value of a row, a key or noise.

use std::fmt;
use std::io;

use thiserror::Error;

/// Why a step of an exchange was not taken.
#[derive(Debug, Error)]
pub enum Error {
    /// A party's message fails a check: the party deviated from the protocol, or its message was
    /// damaged on the way.
    #[error(
        "the {message} of party {party} is refused: {check}; nothing that depends on your rows was sent \
         in answer: ask the party for the message it recorded, or begin a new session"
    )]
    Refused {
        /// The index of the party that made the message.
        party: u16,
        /// Which of its messages.
        message: Message,
        /// The check it failed, named as in docs/EXCHANGE.md.
        check: Check,
    },
    /// An own row is longer than the terms allow.
    #[error(
        "a row of party {party} is longer than the bound in the terms; rows must be pulled into the ball \
         before an exchange, and nothing was sent"
    )]
    OwnRowTooLong {
        /// The index of the party whose rows these are: one's own.
        party: u16,
    },
    /// The own rows are not as many bytes as the terms say.
    #[error("the rows of party {party} take {found} bytes; {expected} follow from the terms")]
    OwnRowsLength {
        /// The index of the party whose rows these are: one's own.
        party: u16,
        /// Bytes that follow from people and columns.
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// What was read again is not what was read, or checked, before.
    #[error("{0} changed while it was read; nothing was sent: begin a new session with a copy that stays")]
    Changed(Reading),
    /// The offer handed in with a reply is not the one that was sent.
    #[error("this is not the offer that party {party} sent; take the bytes that were recorded then")]
    OtherOffer {
        /// The index of the sender: oneself.
        party: u16,
    },
    /// The party plays no such part under these terms.
    #[error("party {0} is no recipient under these terms")]
    NoRecipient(u16),
    /// Bytes of a sent offer that were kept do not belong to these terms.
    #[error("what was kept of an offer does not belong to these terms; the session is dead")]
    Kept,
    /// Rows or a message cannot be read.
    #[error("reading {0}: {1}")]
    Read(Reading, io::Error),
    /// A message cannot be written.
    #[error("writing a message: {0}; what was written of it must not be sent")]
    Write(io::Error),
}

/// What is read, more than once, in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The own rows.
    Rows,
    /// A message.
    Message(Message),
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows => f.write_str("the table of rows"),
            Self::Message(message) => write!(f, "the {message}"),
        }
    }
}

/// A kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The sender's encrypted rows.
    Offer,
    /// A recipient's products with them.
    Reply,
    /// What is published.
    Result,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Offer => "offer",
            Self::Reply => "reply",
            Self::Result => "result",
        })
    }
}

/// A check of a message, named as in docs/EXCHANGE.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Check {
    /// *length*: every length follows from the terms.
    #[error("it has {found} bytes, and {expected} follow from the terms")]
    Length {
        /// Bytes that follow from the terms.
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// *header*: kind, terms, and the messages that it answers.
    #[error("its header names other terms, another message or another pair")]
    Header,
    /// *point*: canonical encodings only.
    #[error("an encoding of a point is not canonical")]
    Point,
    /// *scalar*: canonical encodings only.
    #[error("an encoding of a scalar is not canonical")]
    Scalar,
    /// *sum too large*: sums of entries lie within ±2¹²¹.
    #[error("an opened sum is too large, so an entry may be no small integer")]
    SumTooLarge,
    /// *norm*: every row has the squared norm that the terms allow.
    #[error("the proof of the rows' norms does not hold")]
    Norm,
    /// *openings*: responses and sums open the commitments.
    #[error("the proof that rows are what was committed does not hold")]
    Openings,
    /// *outputs*: products were made with the committed rows.
    #[error("the proof that products were made of the committed rows does not hold")]
    Outputs,
    /// *range*: a published number lies within what the terms allow.
    #[error("a number lies outside the range that the terms allow")]
    Range,
}
