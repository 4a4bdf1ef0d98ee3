//! Help texts, as snapshots: `TRYCMD=overwrite cargo test -p potluck --test help` accepts a change.

#[test]
fn help_is_as_recorded() {
    trycmd::TestCases::new().case("tests/help/*.trycmd");
}
