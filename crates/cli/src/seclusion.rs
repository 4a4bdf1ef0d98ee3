//! Keeps what this process holds in memory from outliving it, and from other processes.

/// No core dump is written of this process, and on Linux no other process of the same user can look
/// into it.
///
/// Rows, noise and keys are in its memory. Where the system refuses, there is nothing better to be
/// done.
#[cfg(unix)]
pub(crate) fn seclude() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Programs that collect dumps over a pipe do not ask for the limit.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// Elsewhere the operating system's own settings decide.
#[cfg(not(unix))]
pub(crate) fn seclude() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, getrlimit};

    #[test]
    fn a_secluded_process_is_neither_dumped_nor_traced() {
        super::seclude();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        assert_eq!(getrlimit(Resource::Core).maximum, Some(0));
    }
}
