//! The conversations, each without faults and with each fault at each operation.

mod scripts;
mod sweep;

use sweep::sweep;

#[test]
fn keep_alive() {
    sweep(&scripts::keep_alive());
}

#[test]
fn pipeline_of_two_hundred() {
    sweep(&scripts::pipeline_of_two_hundred());
}

#[test]
fn bodies_in_pieces() {
    sweep(&scripts::bodies_in_pieces());
}

#[test]
fn reads_a_chunked_upload() {
    sweep(&scripts::reads_a_chunked_upload());
}

#[test]
fn expect_continue() {
    sweep(&scripts::expect_continue());
}

#[test]
fn head_in_single_bytes() {
    sweep(&scripts::head_in_single_bytes());
}

#[test]
fn too_large_and_still_sending() {
    sweep(&scripts::too_large_and_still_sending());
}

#[test]
fn slow_reader() {
    sweep(&scripts::slow_reader());
}

#[test]
fn half_closed() {
    sweep(&scripts::half_closed());
}

#[test]
fn malformed_behind_good() {
    sweep(&scripts::malformed_behind_good());
}

#[test]
fn many_ways_to_end() {
    sweep(&scripts::many_ways_to_end());
}

#[test]
fn drained_in_the_middle() {
    sweep(&scripts::drained_in_the_middle());
}

#[test]
fn responded_later() {
    sweep(&scripts::responded_later());
}

#[test]
fn responded_later_in_a_pipeline() {
    sweep(&scripts::responded_later_in_a_pipeline());
}
