//! Which blocks enter which figure.

use lab::bar::{self, CASES, Case, Figure, Measure, Verdict};
use lab::block::Block;
use lab::compare::{self, AGAIN, Outcome, Plan};
use lab::report;
use lab::scenario;
use lab::tally::Tally;
use lab::validity::CLIENT_BUSY_PERCENT_MAX;

/// A block that costs so many microseconds per response.
fn block(cpu_us: f64) -> Block {
    Block {
        tally: Tally { responses: 1_000, duration_us: 1_000_000, ..Tally::default() },
        server_cpu_ns: (cpu_us * 1e6) as u64,
        ..Block::default()
    }
}

fn outcome(base: Vec<Block>, other: Vec<Block>) -> Outcome {
    let servers = compare::servers("null-epoll,shearwater-epoll", None).expect("both are in the table");
    let mut entries = compare::entries(&servers);
    entries[0].blocks = base.clone();
    entries[1].blocks = base;
    entries[2].blocks = other;
    let scenario = scenario::find("plaintext").expect("it is in the table");
    let plan = Plan { scenario, servers, blocks: 3, seconds: 1, seed: 1, wait_percent_max: 1.0 };
    Outcome { plan, null_bytes: 150, entries }
}

#[test]
fn the_base_runs_twice() {
    let outcome = outcome(vec![block(4.0)], vec![block(5.0)]);
    let labels: Vec<&str> = outcome.entries.iter().map(|entry| entry.label.as_str()).collect();
    assert_eq!(labels, ["null-epoll", &format!("null-epoll{AGAIN}"), "shearwater-epoll"]);
}

#[test]
fn the_base_asked_for_goes_first_and_twice_named_is_refused() {
    let names = |servers: Vec<&lab::server::ServerKind>| servers.iter().map(|it| it.name).collect::<Vec<_>>();
    let servers = compare::servers("null-epoll,nginx", Some("nginx")).expect("both are in the table");
    assert_eq!(names(servers), ["nginx", "null-epoll"]);
    assert!(compare::servers("nginx,nginx", None).is_err());
    assert!(compare::servers("apache", None).is_err());
    assert!(compare::servers("", None).is_err());
}

#[test]
fn ratios_are_taken_round_by_round_where_both_blocks_count() {
    let invalid = Block::failed("planted".to_owned());
    let base = vec![block(4.0), invalid.clone(), block(8.0), block(100.0)];
    let other = vec![block(6.0), block(900.0), block(12.0), invalid];
    let outcome = outcome(base, other);
    let ratio = outcome.ratio(&outcome.entries[2], &outcome.entries[0]).expect("two rounds count");
    assert!((ratio.median - 1.5).abs() < 1e-9, "{ratio:?}");
    assert_eq!(ratio.values, 2);
}

#[test]
fn an_invalid_block_is_shown_and_enters_no_figure() {
    let outcome =
        outcome(vec![block(4.0); 3], vec![block(5.0), Block::failed("planted".to_owned()), block(5.0)]);
    let entry = &outcome.entries[2];
    assert_eq!(entry.cpu_us(1).expect("two count").values, 2);
    let text = report::render(&outcome);
    assert!(text.contains("invalid, not counted: shearwater-epoll round 2: planted"), "{text}");
    assert!(text.contains("2/3"), "{text}");
}

#[test]
fn a_server_without_a_block_that_counts_leaves_the_outcome_incomplete() {
    let invalid = || vec![Block::failed("planted".to_owned()); 3];
    assert!(outcome(vec![block(4.0)], vec![block(5.0)]).is_whole());
    assert!(!outcome(vec![block(4.0)], invalid()).is_whole());
    let none = outcome(invalid(), vec![block(5.0)]);
    assert_eq!(none.ratio(&none.entries[2], &none.entries[0]), None);
}

#[test]
fn a_busy_client_voids_requests_per_second_but_not_cpu_per_response() {
    let mut bound = block(5.0);
    bound.client_busy_percent = CLIENT_BUSY_PERCENT_MAX;
    let outcome = outcome(vec![block(4.0)], vec![bound]);
    assert!(outcome.entries[0].rps(1).is_some());
    assert_eq!(outcome.entries[2].rps(1), None);
    assert!(outcome.entries[2].cpu_us(1).is_some());
    assert!(report::render(&outcome).contains("client-bound"));
}

#[test]
fn the_bar_holds_misses_or_does_not_know() {
    let measure = Measure::Cpu { over: "shearwater-epoll", under: "null-epoll" };
    let case = |scenario, figure| Case { scenario, measure, figure };
    let outcomes = [outcome(vec![block(4.0); 3], vec![block(5.0); 3])];
    let judge = |case: &Case| bar::judge(case, &outcomes, &[]);
    assert!(matches!(judge(&case("plaintext", Figure::AtMost(1.25))), Verdict::Held(_)));
    assert!(matches!(judge(&case("plaintext", Figure::AtMost(1.24))), Verdict::Missed(_)));
    assert!(matches!(judge(&case("plaintext", Figure::AtLeast(1.26))), Verdict::Missed(_)));
    assert!(matches!(judge(&case("1k", Figure::AtMost(2.0))), Verdict::Unknown(_)));
    let syscalls = Measure::Syscalls { of: "shearwater-epoll", less: "null-epoll" };
    let uncounted = Case { scenario: "plaintext", measure: syscalls, figure: Figure::AtMost(9.0) };
    assert!(matches!(judge(&uncounted), Verdict::Unknown(_)));
}

#[test]
fn lines_about_memory_are_judged_by_their_own_measure() {
    let measure = Measure::Idle { of: "shearwater-epoll" };
    let case = Case { scenario: "idle", measure, figure: Figure::AtMost(96.0) };
    let judge = |measured| bar::judge(&case, &[], &[(measure, measured)]);
    assert!(matches!(judge(Ok(96.0)), Verdict::Held(_)));
    assert!(matches!(judge(Ok(96.1)), Verdict::Missed(_)));
    assert_eq!(judge(Err("planted".to_owned())), Verdict::Unknown("planted".to_owned()));
    let other = (Measure::Fresh { of: "shearwater-epoll" }, Ok(1.0));
    assert!(matches!(bar::judge(&case, &[], &[other]), Verdict::Unknown(_)));
}

#[test]
fn every_line_of_the_bar_is_run_or_says_why_not() {
    let plans = bar::plans(1, 1, 1, 1.0).expect("the table names what exists");
    for case in CASES {
        let names = match case.measure {
            Measure::Cpu { over, under } => [over, under],
            Measure::Syscalls { of, less } => [of, less],
            Measure::Fresh { of } | Measure::Idle { of } => {
                assert!(lab::server::find(of).is_ok(), "{case:?}");
                continue;
            }
            Measure::Missing(why) => {
                assert!(!why.is_empty());
                continue;
            }
        };
        let plan = plans.iter().find(|plan| plan.scenario.name == case.scenario).expect("it is run");
        assert!(names.iter().all(|name| plan.servers.iter().any(|server| server.name == *name)), "{case:?}");
    }
}
