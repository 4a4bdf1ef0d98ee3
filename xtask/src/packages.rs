//! Packages of the system that tests and `cargo xtask dist` need beside potluck.

use crate::programs::{call, succeeds};

/// A package of Debian, and what shows that it is there.
type Package = (&'static str, &'static str);

/// What tests run beside potluck.
pub(crate) const OF_TESTS: [Package; 9] = [
    ("postgresql", "ls /usr/lib/postgresql/*/bin/initdb"),
    ("default-jre-headless", "java -version"),
    ("chromium", "test -x /usr/bin/chromium"),
    ("r-base-core", "R --version"),
    ("r-cran-curl", "Rscript -e 'loadNamespace(\"curl\")'"),
    ("r-cran-generics", "Rscript -e 'loadNamespace(\"generics\")'"),
    ("r-cran-jsonlite", "Rscript -e 'loadNamespace(\"jsonlite\")'"),
    ("r-cran-knitr", "Rscript -e 'loadNamespace(\"knitr\")'"),
    ("r-cran-markdown", "Rscript -e 'loadNamespace(\"markdown\")'"),
];

/// What `cargo xtask dist` builds and tries with: R's packages as above, and a root to install
/// into.
pub(crate) const OF_DIST: [Package; 8] = [
    ("binutils", "strip --version"),
    ("mmdebstrap", "mmdebstrap --version"),
    OF_TESTS[3],
    OF_TESTS[4],
    OF_TESTS[5],
    OF_TESTS[6],
    OF_TESTS[7],
    OF_TESTS[8],
];

/// Installs those that are missing if we are root; says how to if not.
pub(crate) fn provide(packages: &[Package]) -> Result<(), String> {
    let missing: Vec<&str> = packages
        .iter()
        .filter(|(_, check)| !succeeds("sh", &["-c", check]))
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let install = [&["install", "--yes", "--no-install-recommends"][..], &missing].concat();
    if !succeeds("sh", &["-c", "test $(id -u) -eq 0"]) {
        return Err(format!("this needs other software: sudo apt-get {}", install.join(" ")));
    }
    call("apt-get", &["update", "--quiet"], &[])?;
    call("apt-get", &install, &[("DEBIAN_FRONTEND", "noninteractive")])
}
