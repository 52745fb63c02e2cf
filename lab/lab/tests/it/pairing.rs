//! Which blocks enter which figure.

use lab::bar::table;
use lab::block::Block;
use lab::compare::{self, AGAIN, Entry, Outcome, Plan};
use lab::identity::Identity;
use lab::report;
use lab::scenario;
use lab::tally::Tally;
use lab::validity::{CLIENT_BUSY_PERCENT_MAX, Fault};

/// A block that costs so many microseconds per response.
pub(crate) fn block(cpu_us: f64) -> Block {
    Block {
        tally: Tally { responses: 1_000, duration_us: 1_000_000, ..Tally::default() },
        server_cpu_ns: (cpu_us * 1e6) as u64,
        ..Block::default()
    }
}

fn identity() -> Identity {
    Identity { version: "planted".to_owned(), released: None, file_days: None }
}

/// A comparison with these blocks.
pub(crate) fn outcome(base: Vec<Block>, other: Vec<Block>) -> Outcome {
    let servers = compare::servers("null-epoll,shearwater-epoll", None).expect("both are in the table");
    let mut entries = compare::entries(&servers, &|_| identity());
    entries[0].blocks = base.clone();
    entries[1].blocks = base;
    entries[2].blocks = other;
    let scenario = scenario::find("plaintext").expect("it is in the table");
    let plan =
        Plan { scenario, servers, blocks: 3, seconds: 1, seed: 1, wait_percent_max: None, syscall_rounds: 0 };
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
fn smaller_receive_buffers_than_asked_for_are_said() {
    let granted = |bytes| {
        let mut block = block(4.0);
        block.tally.receive_buffer_bytes = bytes;
        block
    };
    let of = |name: &str, blocks: Vec<Block>| {
        let mut outcome = outcome(blocks.clone(), blocks);
        outcome.plan.scenario = scenario::find(name).expect("it is in the table");
        outcome
    };
    let few = of("1m", vec![granted(4_000_000), granted(212_992), granted(4_000_000)]);
    let note = "1m: receive buffers: asked 4000000 bytes, granted 212992; net.core.rmem_max bounds them";
    assert_eq!(few.receive_buffer_note().as_deref(), Some(note));
    assert!(report::render(&few).contains(note));
    assert!(table::render(&[], &[few], &[], 1).contains(note));
    for enough in [of("1m", vec![granted(4_000_000); 3]), of("1m-auto", vec![granted(0); 3])] {
        assert_eq!(enough.receive_buffer_note(), None);
        assert!(!report::render(&enough).contains("receive buffers"));
    }
}

#[test]
fn further_rounds_stand_in_for_blocks_that_do_not_count_within_a_bound() {
    let failed = || Block::failed("planted".to_owned());
    let disturbed = Block { faults: vec![Fault::Waited { percent: 9.0 }], ..block(4.0) };
    let outcome = outcome(vec![block(4.0), disturbed.clone(), block(4.0)], vec![failed(), failed()]);
    let enough = |entry: usize, blocks| outcome.entries[entry].has_enough(blocks);
    assert!(enough(0, 2) && !enough(0, 3));
    assert!(enough(2, 3), "what cannot be run will not be");
    let only_disturbed = Entry { blocks: vec![disturbed], ..outcome.entries[0].clone() };
    assert!(!only_disturbed.has_enough(1));
    let plan = |blocks| Plan { blocks, ..outcome.plan.clone() };
    assert_eq!([1, 3, 16].map(|blocks| plan(blocks).rounds_max()), [1, 4, 24]);
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
fn a_server_is_not_put_before_requests_that_it_has_no_answer_to() {
    for (name, serves, not) in [
        ("lighttpd", "1k-churn", "plaintext"),
        ("servedir", "1m", "json"),
        ("hyper", "plaintext-x16", "plaintext-varied"),
        ("axum", "plaintext", "1k"),
        ("shearwater-axum", "plaintext", "1k"),
    ] {
        let server = lab::server::find(name).expect("it is in the table");
        let find = |name| scenario::find(name).expect("it is in the table");
        assert!(server.serves(find(serves)) && !server.serves(find(not)), "{name}");
    }
}
