//! How much memory there is for what need not be held, but makes things faster.

/// The share of available memory that is taken unless people say how much.
const SHARE: u64 = 4;

/// What is taken where the system does not tell how much is available.
const UNTOLD: u64 = 512 << 20;

/// What may be held unless people say how much: a quarter of what the system would give us now.
pub(crate) fn allowance() -> u64 {
    available().map_or(UNTOLD, |bytes| bytes / SHARE)
}

/// The least of what the machine has left, what our control group may still take, and what limits
/// of the process allow.
#[cfg(target_os = "linux")]
fn available() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = of_machine(&read("/proc/meminfo")?)?;
    let process = read("/proc/self/limits").and_then(|text| of_process(&text));
    let group = read("/proc/self/cgroup").and_then(|text| of_group(&text, read));
    [Some(machine), process, group].into_iter().flatten().min()
}

#[cfg(not(target_os = "linux"))]
fn available() -> Option<u64> {
    None
}

/// `MemAvailable:   16393940 kB`.
fn of_machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The soft limits of `Max data size` and `Max address space`, if there are any.
fn of_process(text: &str) -> Option<u64> {
    let soft = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    ["Max data size", "Max address space"].into_iter().filter_map(soft).min()
}

/// What our control group (version 2) and those above it may still take: pages of files do not
/// count, since they make room.
fn of_group(own: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let mut path = own.lines().find_map(|line| line.strip_prefix("0::"))?.trim_end_matches('/');
    let mut least = None;
    loop {
        let file = |name: &str| read(&format!("/sys/fs/cgroup{path}/{name}"));
        let limit = file("memory.max").and_then(|text| text.trim().parse::<u64>().ok());
        if let Some(limit) = limit {
            let used = file("memory.stat").and_then(|text| {
                text.lines().find_map(|line| line.strip_prefix("anon "))?.parse::<u64>().ok()
            });
            let left = limit.saturating_sub(used.unwrap_or(0));
            least = Some(least.map_or(left, |least: u64| least.min(left)));
        }
        match path.rfind('/') {
            Some(end) => path = &path[..end],
            None => return least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_has_left_is_read_in_bytes() {
        let text = "MemTotal:       24 kB\nMemFree:  1 kB\nMemAvailable:   16 kB\n";
        assert_eq!(of_machine(text), Some(16 * 1024));
        assert_eq!(of_machine("MemTotal: 24 kB\n"), None);
    }

    #[test]
    fn the_tightest_limit_of_the_process_counts() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \nMax data size             1000                 unlimited            bytes     \nMax address space         unlimited            unlimited            bytes     \n";
        assert_eq!(of_process(text), Some(1000));
        assert_eq!(of_process(&text.replace("1000     ", "unlimited")), None);
    }

    #[test]
    fn groups_above_ours_count_too_and_pages_of_files_do_not() {
        let files = |path: &str| {
            let text = match path {
                "/sys/fs/cgroup/a/b/memory.max" => "900\n",
                "/sys/fs/cgroup/a/b/memory.stat" => "anon 100\nfile 700\n",
                "/sys/fs/cgroup/a/memory.max" => "max\n",
                "/sys/fs/cgroup/memory.max" => "850\n",
                "/sys/fs/cgroup/memory.stat" => "anon 300\nfile 9\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        assert_eq!(of_group("0::/a/b\n", files), Some(550));
        assert_eq!(
            of_group("0::/a/b\n", |path: &str| files(path).filter(|_| path.contains("/a/b/"))),
            Some(800)
        );
        assert_eq!(of_group("0::/\n", |_: &str| None), None);
        assert_eq!(of_group("4:memory:/x\n", files), None);
    }

    #[test]
    fn some_memory_is_allowed() {
        assert!(allowance() > 0);
    }
}
