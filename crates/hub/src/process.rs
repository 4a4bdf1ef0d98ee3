//! What the operating system says of this process, under the names that Prometheus gives such
//! numbers everywhere.

use std::fs;

use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// Memory, open files and start of this process. Where the system does not tell (it does on
/// Linux), a number is not there rather than zero.
#[derive(Default)]
pub(crate) struct Process {
    resident: Option<Gauge>,
    files: Option<Gauge>,
    most_files: Option<Gauge>,
}

impl Process {
    /// Registers what can be told.
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("process");
        let mut tell = |value: Option<i64>, name: &str, help: &str, unit: Option<Unit>| {
            let gauge = Gauge::default();
            gauge.set(value?);
            match unit {
                Some(unit) => registry.register_with_unit(name, help, unit, gauge.clone()),
                None => registry.register(name, help, gauge.clone()),
            }
            Some(gauge)
        };
        let began = Some(Timestamp::now().as_second());
        tell(began, "start_time", "When the hub started, since 1970", Some(Unit::Seconds));
        Self {
            resident: tell(
                resident_bytes(),
                "resident_memory",
                "Memory that the hub holds",
                Some(Unit::Bytes),
            ),
            files: tell(open_files(), "open_fds", "Open files and connections", None),
            most_files: tell(most_files(), "max_fds", "Files and connections that may be open", None),
        }
    }

    /// Reads the numbers again.
    pub(crate) fn look(&self) {
        let numbers = [
            (&self.resident, resident_bytes()),
            (&self.files, open_files()),
            (&self.most_files, most_files()),
        ];
        for (gauge, value) in numbers {
            if let (Some(gauge), Some(value)) = (gauge, value) {
                gauge.set(value);
            }
        }
    }
}

/// Memory in use, from the line `VmRSS:   1234 kB`.
fn resident_bytes() -> Option<i64> {
    let kilobytes: i64 = field("/proc/self/status", "VmRSS:")?.first()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

fn open_files() -> Option<i64> {
    i64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}

/// The soft limit, from the line `Max open files   1024   4096   files`.
fn most_files() -> Option<i64> {
    field("/proc/self/limits", "Max open files")?.first()?.parse().ok()
}

/// The words after a name at the start of a line.
fn field(path: &str, name: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(path).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}
