//! Limits of the process.

use shearwater_io::os::{
    cores, listen_backlog_max, mappable, memory_max, pin_to_core, raise_descriptor_limit,
};

#[test]
fn the_descriptor_limit_is_raised_and_never_lowered() {
    let first = raise_descriptor_limit(u64::MAX).expect("as far as it goes");
    assert!(first.soft_now >= first.soft_before && first.soft_now <= first.hard);
    let second = raise_descriptor_limit(1).expect("nothing to do");
    assert_eq!(second.soft_now, first.soft_now);
    assert_eq!(second.soft_before, first.soft_now);
    assert_eq!(second.hard, first.hard);
}

#[test]
#[cfg(target_os = "linux")]
fn reports_the_backlog_s_bound() {
    assert!(listen_backlog_max().is_some_and(|max| max > 0));
}

#[test]
fn a_thread_stays_on_the_core_it_is_pinned_to() {
    let all = cores();
    assert!(!all.is_empty() && all.is_sorted());
    let core = all[all.len() - 1];
    let seen =
        std::thread::spawn(move || pin_to_core(core).map(|()| cores())).join().expect("the thread ends");
    match seen {
        Ok(seen) => assert_eq!(seen, [core]),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::Unsupported),
    }
    assert_eq!(cores(), all, "only that thread is pinned");
}

#[test]
fn rejects_a_missing_core() {
    for core in [100_000, 1000] {
        let result = std::thread::spawn(move || pin_to_core(core)).join().expect("the thread ends");
        assert!(result.is_err());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn reports_the_machine_s_memory() {
    assert!(memory_max().is_some_and(|bytes| bytes > 1 << 20));
}

/// Marks the child of [`subtracts_used_address_space_from_the_limit`].
#[cfg(target_os = "linux")]
const CHILD: &str = "SHEARWATER_IO_TEST_LIMITED";

/// The limit concerns the whole process, so it is set in one of its own.
#[test]
#[cfg(target_os = "linux")]
fn subtracts_used_address_space_from_the_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    const LIMIT: u64 = 1 << 30;
    let before = mappable().unwrap_or(u64::MAX);
    if std::env::var_os(CHILD).is_some() {
        for resource in [Resource::As, Resource::Data] {
            let limit = Rlimit { current: Some(LIMIT), ..getrlimit(resource) };
            setrlimit(resource, limit).expect("a lower limit");
            let left = mappable().expect("there is a limit");
            assert!(left < LIMIT && left <= before, "{left}");
        }
        return;
    }
    let program = std::env::current_exe().expect("the test program has a path");
    let name = "os::subtracts_used_address_space_from_the_limit";
    let output = std::process::Command::new(program)
        .args(["--exact", name])
        .env(CHILD, "1")
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
