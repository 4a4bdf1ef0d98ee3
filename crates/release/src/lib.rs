//! potluck-release
