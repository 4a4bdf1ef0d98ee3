//! potluck-report
