//! Trials of one server by itself: what they read, and when they do not count.

use lab::client::beside::Beside;
use lab::client::latency::percentile;
use lab::{allocations, core_time, downloads, quiet};

#[test]
fn allocations_are_the_worst_that_the_test_prints() {
    let passed = "test result: ok. 2 passed; 0 failed; 0 ignored";
    let printed = format!(
        "running 2 tests\ntest a ... lab-figure allocations=0\nok\nlab-figure allocations=3\n{passed}\n"
    );
    assert_eq!(allocations::parse(&printed), Ok(3.0));
    assert!(allocations::parse(passed).is_err_and(|why| why.contains("prints no line")));
    let none = "running 0 tests\nlab-figure allocations=0\ntest result: ok. 0 passed; 0 failed\n";
    assert!(allocations::parse(none).is_err_and(|why| why.contains("runs no test")));
    let broken = format!("lab-figure allocations=inf\nlab-figure allocations=x\n{passed}\n");
    assert!(allocations::parse(&broken).is_err());
}

#[test]
fn switches_of_both_kinds_are_added() {
    let status = "Name:\tworker\nvoluntary_ctxt_switches:\t41\nnonvoluntary_ctxt_switches:\t2\n";
    assert_eq!(quiet::switches(status), Some(43));
    assert_eq!(quiet::switches("voluntary_ctxt_switches:\t41\n"), None);
    assert_eq!(quiet::switches(""), None);
}

#[test]
fn idle_time_is_that_of_the_core() {
    let stat = "cpu  9 9 9 9 9 0\ncpu0 1 2 3 400 5 6 7 0 0 0\ncpu10 1 2 3 4 0\nintr 5\n";
    assert_eq!(core_time::parse(stat, 0), Some(4_050_000_000));
    assert_eq!(core_time::parse(stat, 10), Some(40_000_000));
    assert_eq!(core_time::parse(stat, 1), None);
    assert_eq!(core_time::foreign_ns(100, 30, 60), 10);
    assert_eq!(core_time::foreign_ns(100, 70, 60), 0);
    assert!(core_time::idle_ns(0).is_ok_and(|idle| idle > 0));
}

#[test]
fn percentiles_are_of_the_nearest_rank() {
    let sorted: Vec<u64> = (1..=200).collect();
    assert_eq!([50, 99, 100].map(|percent| percentile(&sorted, percent)), [100, 198, 200]);
    assert_eq!(percentile(&[7], 99), 7);
    assert_eq!(percentile(&[], 99), 0);
}

fn sound() -> Beside {
    Beside {
        answers: 2_000,
        p50_us: 400,
        p99_us: 1_500,
        max_us: 9_000,
        longest_turn_us: 900,
        downloaded_bytes: 1 << 30,
        least_downloaded_bytes: 1 << 20,
        errors: 0,
    }
}

#[test]
fn the_counts_beside_downloads_are_read_as_printed() {
    assert_eq!(Beside::parse(&format!("noise\n{}\n", sound())), Some(sound()));
    assert_eq!(Beside::parse(&sound().to_string().replace(" errors=0", "")), None);
    assert_eq!(Beside::parse(""), None);
}

#[test]
fn latency_counts_only_beside_downloads_that_all_got_on() {
    let figures = downloads::figures(&sound()).expect("sound");
    assert!(figures.contains(&("p99_ms", 1.5)), "{figures:?}");
    let held_up = |longest_turn_us| downloads::figures(&Beside { longest_turn_us, ..sound() });
    assert!(held_up(downloads::CLIENT_TURN_US_MAX).is_ok());
    assert!(held_up(downloads::CLIENT_TURN_US_MAX + 1).is_err());
    assert!(downloads::figures(&Beside { errors: 1, ..sound() }).is_err());
    assert!(downloads::figures(&Beside { answers: 0, ..sound() }).is_err());
    assert!(downloads::figures(&Beside { least_downloaded_bytes: 0, ..sound() }).is_err());
}
