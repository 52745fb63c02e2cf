//! What the system grants the process.

use shearwater_io::os::{cores, listen_backlog_max, pin_to_core, raise_descriptor_limit};

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
fn the_backlog_s_bound_is_known() {
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
fn a_core_that_is_not_there_is_an_error() {
    for core in [100_000, 1000] {
        let result = std::thread::spawn(move || pin_to_core(core)).join().expect("the thread ends");
        assert!(result.is_err());
    }
}
