//! The R package as R's own source archive.

use super::{command, folder, fresh, only, version};
use crate::programs::{call_in, root};

pub(super) fn build() -> Result<(), String> {
    let place = fresh("r")?;
    let source = root().join("r/potluck");
    let command = format!("POTLUCK={}", command::prefix().join("bin/potluck").display());
    // With the command, so that the vignette has results.
    call_in(&place, "env", &[&command, "LC_ALL=C.UTF-8", "R", "CMD", "build", &source.to_string_lossy()])?;
    let archive = only(&place, ".tar.gz")?;
    let name = format!("potluck-r-{}.tar.gz", version());
    super::copy(&archive, &folder().join(name))
}

/// Installs it into a library that has nothing else, and fits with the command.
pub(super) fn try_it() -> Result<(), String> {
    let place = fresh("try-r")?;
    let archive = folder().join(format!("potluck-r-{}.tar.gz", version()));
    // R goes by the name.
    let named = place.join(format!("potluck_{}.tar.gz", version()));
    super::copy(&archive, &named)?;
    let command = format!("POTLUCK={}", command::prefix().join("bin/potluck").display());
    call_in(&place, "mkdir", &["library"])?;
    call_in(&place, "R", &["CMD", "INSTALL", "--library=library", &named.to_string_lossy()])?;
    let script = "\
        library(potluck, lib.loc = 'library'); \
        done <- system2(potluck_command(), c('demo', '--rows', '5000', '--out', 'demo'), stdout = FALSE); \
        fit <- potluck_fit(pressure ~ ., 'demo/public.parquet'); \
        print(summary(fit)); \
        stopifnot(done == 0, all(is.finite(confint(fit, level = 0.9))), nrow(vignette(package = 'potluck', lib.loc = 'library')$results) == 1)";
    call_in(&place, "env", &[&command, "Rscript", "-e", script])
}
