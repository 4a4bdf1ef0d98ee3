//! potluck-party
