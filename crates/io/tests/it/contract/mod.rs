//! One suite for every driver: at least one test for each clause of the contract, named after it.
//!
//! A driver joins with a [`harness::Harness`] and one line, `contract_suite!(ItsHarness)`.

pub(crate) mod harness;
pub(crate) mod world;

pub(crate) mod accepting;
pub(crate) mod closing;
pub(crate) mod crowd;
pub(crate) mod handing_over;
pub(crate) mod receiving;
pub(crate) mod sending;
pub(crate) mod tokens;
pub(crate) mod turns;
pub(crate) mod versions;
pub(crate) mod waking;

mod on_sim;
#[cfg(target_os = "linux")]
pub(crate) mod on_uring;
pub(crate) mod sockets;

/// All tests of the suite for one harness, each as `#[test]`.
macro_rules! contract_suite {
    ($harness:ty) => {
        $crate::contract::contract_suite! { $harness;
            turns: t1_wait_lets_the_timeout_pass, t1_an_earlier_timeout_counts, t1_wait_returns_for_an_event,
                t1_wait_returns_at_once_for_input_left, t1_wait_returns_at_once_for_a_file_left, t2_one_connection_is_read_a_bounded_number_of_times,
                t2_a_sender_cannot_hold_a_turn, t2_a_flood_does_not_hide_a_neighbour, t2_an_unfinished_turn_loses_nothing,
                t3_the_clock_stands_still_within_a_turn,
                t5_who_rests_loses_nothing;
            accepting: a1_accepted_once_and_first, a1_the_listener_and_the_peer_are_told, a2_full_is_said_once,
                a2_full_is_reported_only_when_a_connection_waits, a2_the_last_place_goes_to_the_listener_that_is_used,
                a2_the_queue_waits_until_there_is_room, a3_paused_means_none, a3_a_turn_accepts_a_bounded_number,
                a3_each_listener_has_its_share_of_a_turn,
                a4_stop_empties_the_queue_then_closes, a4_stop_takes_what_came_after_the_wait, a4_stop_of_an_empty_queue, a4_connections_outlive_the_listener,
                a6_a_failed_listener_is_reported_once, a6_stop_does_not_wait_for_a_failed_listener;
            handing_over: a5_who_is_handed_over_is_served, a5_a_full_inbox_refuses_and_a_paused_driver_takes_nothing,
                a5_full_is_said_once_and_they_wait, a5_who_would_wait_behind_a_full_driver_is_refused,
                a5_room_between_a_resume_and_the_next_look_holds_nobody_up,
                a5_stop_waits_for_the_sender, a5_a_turn_takes_a_bounded_number,
                a5_a_full_driver_loses_nobody_when_all_ends;
            receiving: r1_receiving_is_armed_at_accept, r2_bytes_arrive_whole_and_in_order, r2_never_more_than_the_buffer,
                r3_pause_holds_and_resume_loses_nothing, r3_pause_within_a_turn, r3_pausing_and_resuming_twice,
                r4_data_and_fin_together, r4_fin_behind_a_full_buffer, r4_fin_between_wait_and_receive,
                r4_fin_while_paused, r4_fin_alone, r4_reset_with_unread_data, r4_reset_while_paused,
                r5_a_half_closed_peer_gets_its_response,
                r6_a_fin_is_reported_while_paused, r6_a_fin_before_the_pause_is_reported, r6_a_reset_is_reported_while_paused,
                r6_a_fin_is_reported_once, r6_closing_a_paused_connection_ends_it,
                r7_more_than_a_turn_reads_is_read_later;
            sending: s1_an_output_comes_back_untouched, s1_an_empty_output_comes_back_as_sent,
                s1_an_output_comes_back_from_a_broken_connection, s1_a_shared_block_is_let_go,
                s1_sends_begun_together_come_back_each,
                s2_a_second_send_is_refused, s3_partial_sends_go_on_byte_by_byte, s3_a_gathered_output_is_in_order,
                s5_a_file_is_sent_in_shares, s5_a_short_file_is_told, s5_files_sent_one_after_the_other_share_the_turn,
                s6_progress_never_goes_back, s7_what_is_sent_at_once_is_told_by_no_event, s7_what_is_not_comes_back,
                s7_what_nobody_waits_for_comes_back,
                s8_what_the_peer_takes_is_seen_before_there_is_room,
                s11_counts_all_bytes_taken;
            versions: s10_a_file_in_its_version_is_sent_whole, s10_a_changed_file_ends_short_of_its_last_bytes,
                s10_a_file_without_a_promise_is_sent_as_it_is, s10_each_piece_is_looked_at, s10_what_was_copied_stays_as_it_was,
                s10_a_file_rewritten_on_the_way_ends_short, s10_a_file_that_grows_or_gets_other_metadata_is_sent_whole,
                s10_a_file_that_is_touched_on_the_way_is_sent_whole_if_the_system_tells;
            closing: c1_fin_follows_what_was_sent, c2_close_ends_with_closed, c2_close_cuts_a_send_off,
                c2_close_delivers_a_decided_send_first, c2_a_send_begun_in_response_to_a_sent_comes_before_closed,
                c2_close_in_response_to_each_event, c3_reset_resets, c3_reset_discards_what_is_unsent, c4_a_broken_connection_stays, c5_detach_hands_the_connection_out;
            tokens: k1_a_slot_comes_again_with_another_generation, k1_slots_are_dense, k1_a_closing_slot_is_not_reused,
                k2_verbs_on_closed_tokens_do_nothing;
            waking: w1_a_wake_ends_the_next_wait, w1_wakes_may_merge, w1_a_wake_between_events;
            crowd: a_thousand_connections_are_responded, churn_leaves_nothing_behind;
        }
    };
    ($harness:ty; $($group:ident: $($name:ident),+;)+) => {
        $($(
            #[test]
            fn $name() {
                if !crate::contract::harness::is_missing::<$harness>() {
                    crate::contract::$group::$name::<$harness>();
                }
            }
        )+)+
    };
}
pub(crate) use contract_suite;
