//! Each kind of invalid block, planted; a sound one passes.

use lab::tally::Tally;
use lab::validity::{
    CLIENT_BUSY_PERCENT_MAX, Evidence, FOREIGN_PERCENT_MAX, Fault, WAIT_PERCENT_MAX, is_client_bound, judge,
};

fn sound() -> Evidence {
    Evidence {
        tally: Tally { responses: 1_000, bytes: 150_000, duration_us: 2_000_000, ..Tally::default() },
        answer_bytes: 150,
        answer_bytes_after: 150,
        in_flight_bytes_max: 64 * 150,
        server_cpu_ns: 5_000_000,
        server_wait_ns: 1_000_000,
        foreign_ns: None,
        window_ns: 2_000_000_000,
        wait_percent_max: WAIT_PERCENT_MAX,
    }
}

fn with_tally(change: impl FnOnce(&mut Tally)) -> Vec<Fault> {
    let mut evidence = sound();
    change(&mut evidence.tally);
    judge(&evidence)
}

#[test]
fn a_sound_block_counts() {
    assert_eq!(judge(&sound()), []);
    assert_eq!(with_tally(|tally| tally.bytes += 64 * 150), [], "unfinished answers are allowed for");
}

#[test]
fn one_byte_too_few_or_too_many_is_a_fault() {
    let few = with_tally(|tally| tally.bytes -= 1);
    assert!(matches!(few[..], [Fault::Bytes { received: 149_999, expected_min: 150_000, .. }]), "{few:?}");
    let many = with_tally(|tally| tally.bytes += 64 * 150 + 1);
    assert!(matches!(many[..], [Fault::Bytes { expected_max: 159_600, .. }]), "{many:?}");
}

#[test]
fn an_unexpected_status_is_a_fault() {
    assert_eq!(with_tally(|tally| tally.status_errors = 3), [Fault::Status(3)]);
}

#[test]
fn every_kind_of_socket_error_is_a_fault() {
    assert_eq!(with_tally(|tally| tally.connect_errors = 1), [Fault::Sockets(1)]);
    assert_eq!(with_tally(|tally| tally.read_errors = 1), [Fault::Sockets(1)]);
    assert_eq!(with_tally(|tally| tally.write_errors = 1), [Fault::Sockets(1)]);
    assert_eq!(with_tally(|tally| tally.timeouts = 1), [Fault::Sockets(1)]);
}

#[test]
fn waiting_for_the_cpu_is_a_fault_beyond_its_bound() {
    let at = |percent: f64| {
        let mut evidence = sound();
        evidence.server_wait_ns = (evidence.window_ns as f64 * percent / 100.0) as u64;
        judge(&evidence)
    };
    assert_eq!(at(WAIT_PERCENT_MAX - 0.1), []);
    assert!(matches!(at(WAIT_PERCENT_MAX + 0.1)[..], [Fault::Waited { .. }]));
}

#[test]
fn where_threads_wait_for_one_another_only_what_others_ran_counts() {
    let at = |percent: f64| {
        let mut evidence = sound();
        evidence.server_wait_ns = 3 * evidence.window_ns;
        evidence.foreign_ns = Some((evidence.window_ns as f64 * percent / 100.0) as u64);
        judge(&evidence)
    };
    assert_eq!(at(FOREIGN_PERCENT_MAX - 0.1), []);
    assert!(matches!(at(FOREIGN_PERCENT_MAX + 0.1)[..], [Fault::Foreign { .. }]));
}

#[test]
fn a_window_of_no_length_is_a_fault() {
    let faults = judge(&Evidence { window_ns: 0, server_wait_ns: 0, ..sound() });
    assert!(matches!(faults[..], [Fault::Waited { percent }] if percent.is_nan()));
    let faults = judge(&Evidence { window_ns: 0, foreign_ns: Some(0), ..sound() });
    assert!(matches!(faults[..], [Fault::Foreign { percent }] if percent.is_nan()));
}

#[test]
fn an_answer_that_changed_its_length_is_a_fault() {
    let faults = judge(&Evidence { answer_bytes_after: 151, ..sound() });
    assert_eq!(faults, [Fault::AnswerChanged { before: 150, after: 151 }]);
}

#[test]
fn no_responses_and_no_cpu_time_are_faults() {
    assert_eq!(with_tally(|tally| (tally.responses, tally.bytes) = (0, 0)), [Fault::NoResponses]);
    assert_eq!(judge(&Evidence { server_cpu_ns: 0, ..sound() }), [Fault::NoCpuTime]);
}

#[test]
fn faults_add_up() {
    let mut evidence = sound();
    evidence.tally.status_errors = 1;
    evidence.tally.timeouts = 1;
    assert_eq!(judge(&evidence), [Fault::Status(1), Fault::Sockets(1)]);
}

#[test]
fn a_busy_client_is_the_limit() {
    assert!(is_client_bound(CLIENT_BUSY_PERCENT_MAX));
    assert!(!is_client_bound(CLIENT_BUSY_PERCENT_MAX - 0.1));
}
