//! mixing
