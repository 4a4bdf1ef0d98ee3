//! The `potluck` command.
fn main() {}
