//! One suite for every driver: at least one test for each clause of the contract, named after it.
//!
//! A driver joins with a [`Harness`] and one line, `contract_suite!(ItsHarness)`.

pub(crate) mod accepting;
pub(crate) mod adopting;
pub(crate) mod closing;
pub(crate) mod hosting;
pub(crate) mod listeners;
pub(crate) mod on_sim;
pub(crate) mod outputs;
pub(crate) mod receiving;
pub(crate) mod sending;
pub(crate) mod sockets;
pub(crate) mod turns;
pub(crate) mod unsettled;
pub(crate) mod versions;
pub(crate) mod world;

use std::net::SocketAddr;
use std::time::Duration;

use shearwater_io::{Driver, ListenerId};

/// Options of a harness.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    /// Number of listeners.
    pub listeners: usize,
    /// Connections that the driver may hold.
    pub connections_max: usize,
    /// Size of the receive buffer.
    pub recv_buffer_bytes: usize,
    /// Capacity of the inbox; 0 for none.
    pub inbox: usize,
    /// True if another process shares the listeners, for [`Harness::fail_listener`].
    pub shares_listeners: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            listeners: 1,
            connections_max: 4096,
            recv_buffer_bytes: shearwater_io::limits::RECV_BUFFER_BYTES,
            inbox: 0,
            shares_listeners: false,
        }
    }
}

/// Index of a peer, assigned by the harness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PeerId(pub usize);

/// State of a peer's receiving side after a [`Harness::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerState {
    /// Nothing more at present.
    Open,
    /// The driver's side has sent FIN.
    Eof,
    /// The driver's side has sent RST.
    Reset,
}

/// A driver and its peers. Nothing here blocks. The driver sees a peer's actions in its next `wait`, or on a
/// kernel perhaps a few later: tests take turns until the expected event.
pub(crate) trait Harness: Sized {
    /// The driver under test.
    type Driver: Driver;

    /// Returns the reason if this system has no such driver.
    fn missing() -> Option<String> {
        None
    }

    /// Returns whether its connections are secured: the peers begin with a handshake.
    fn secures() -> bool {
        false
    }

    /// Returns the most bytes that one `Received` may lend (R2).
    fn lent_max(setup: Setup) -> usize {
        setup.recv_buffer_bytes
    }

    /// Returns the most bytes that may follow a pause (R3).
    fn after_pause_max() -> usize {
        shearwater_io::limits::RECV_AFTER_PAUSE_MAX
    }

    /// Continues what the peers have to send, before each wait.
    fn pump(&mut self) {}

    /// Creates a listening driver with `setup` and no connection.
    fn new(setup: Setup) -> Self;

    /// The driver.
    fn driver(&mut self) -> &mut Self::Driver;

    /// Starts connecting a new peer to the listener with this index.
    fn connect(&mut self, listener: usize) -> PeerId;

    /// Accepts a new peer's connection and hands it over, as from this listener. `None` if the inbox is full.
    fn hand_over(&mut self, listener: ListenerId) -> Option<PeerId>;

    /// Wakes the driver after a batch.
    fn wake_inbox(&mut self);

    /// Ends the sender of the inbox.
    fn end_inbox(&mut self);

    /// Returns the peer's own address, equal to that of [`Driver::peer`]. `None` if the connection failed.
    fn address(&self, peer: PeerId) -> Option<SocketAddr>;

    /// Adds a listener, whose number is its index.
    fn add_listener(&mut self) -> usize;

    /// Returns whether a listener refuses connections, by a trial connect.
    fn refused(&mut self, listener: usize) -> bool;

    /// Shuts a listener down from outside; returns the errno of accepting after that.
    fn fail_listener(&mut self, listener: usize) -> i32;

    /// Writes as much of `bytes` as possible without blocking; returns the number.
    fn write(&mut self, peer: PeerId, bytes: &[u8]) -> usize;

    /// Reads at most `max` available bytes and appends them to `into`.
    fn read(&mut self, peer: PeerId, max: usize, into: &mut Vec<u8>) -> PeerState;

    /// Ends the peer's sending side (FIN).
    fn shutdown(&mut self, peer: PeerId);

    /// Resets the connection (RST) and drops the peer.
    fn reset(&mut self, peer: PeerId);

    /// Requests a small receive window. Used right after `connect`.
    fn narrow(&mut self, peer: PeerId);

    /// Returns whether [`Driver::detach`] is supported.
    fn detaches(&self) -> bool;

    /// Returns true if the driver distinguishes writes to a file from other changes of its times (S10).
    fn tells_writes() -> bool {
        cfg!(target_os = "linux")
    }

    /// Returns the time after which a test has failed, by the driver's own clock.
    fn patience(&self) -> Duration;
}

/// Returns whether the driver is missing; logs the reason, and its tests are skipped.
pub(crate) fn is_missing<H: Harness>() -> bool {
    let missing = H::missing();
    if let Some(why) = &missing {
        println!("skipped: {why}");
    }
    missing.is_some()
}

/// All tests of the suite for one harness, each as `#[test]`.
macro_rules! contract_suite {
    ($harness:ty) => {
        $crate::contract::contract_suite! { $harness;
            turns: t1_wait_lets_the_timeout_pass, t1_an_earlier_timeout_counts, t1_wait_returns_for_an_event,
                t1_wait_returns_at_once_for_input_left, t1_wait_returns_at_once_for_a_file_left, t2_one_connection_is_read_a_bounded_number_of_times,
                t2_a_sender_cannot_hold_a_turn, t2_a_flood_does_not_hide_a_neighbour, t2_an_unfinished_turn_loses_nothing,
                t3_the_clock_stands_still_within_a_turn,
                t5_a_trimmed_driver_loses_nothing;
            hosting: t6_arrivals_show, t6_what_the_turn_has_left_is_sent, t6_work_left_is_due_at_once,
                t6_the_end_of_a_timeout_shows, t6_wakes_show;
            accepting: a1_accepted_once_and_first, a1_reports_listener_and_peer, a2_reports_full_once,
                a2_reports_full_only_if_a_connection_waits, a2_the_last_slot_goes_to_a_busy_listener,
                a2_the_queue_waits_until_there_is_room, a3_paused_accepts_none, a3_a_turn_accepts_a_bounded_number,
                a3_each_listener_has_its_share_of_a_turn,
                a4_stop_empties_the_queue_then_closes, a4_stop_takes_what_came_after_the_wait, a4_stop_of_an_empty_queue, a4_connections_outlive_the_listener,
                a6_a_failed_listener_is_reported_once, a6_stop_does_not_wait_for_a_failed_listener;
            listeners: a7_a_listener_that_is_added_accepts, a7_listeners_are_added_and_removed_often,
                a7_a_paused_driver_takes_none_from_a_new_listener, a7_nothing_is_added_after_a_stop,
                a8_a_removed_listener_is_emptied_then_closed, a8_the_others_keep_accepting,
                a8_a_pause_holds_a_removal_up, a8_a_full_driver_loses_no_connection_of_a_removed_listener,
                a8_a_stop_takes_the_place_of_a_removal, a8_a_failed_listener_is_removed,
                a8_connections_outlive_a_removed_listener;
            accepting: a5_serves_handed_over_connections, a5_a_full_inbox_refuses_and_a_paused_driver_takes_nothing,
                a5_reports_full_once_and_keeps_the_others, a5_a_full_driver_refuses_connections_that_would_wait,
                a5_room_between_a_resume_and_the_next_check_blocks_nothing,
                a5_stop_waits_for_the_sender, a5_a_turn_takes_a_bounded_number,
                a5_stop_of_a_full_driver_loses_no_connection;
            adopting: a9_an_adopted_socket_is_served, a9_input_from_before_is_received, a9_each_side_ends_by_itself,
                a9_a_program_that_reads_nothing_holds_a_send_up, a9_pauses_hold, a9_counts_for_no_limit;
            receiving: r1_receiving_is_armed_at_accept, r2_bytes_arrive_whole_and_in_order, r2_never_more_than_the_buffer,
                r3_pause_holds_and_resume_loses_nothing, r3_pause_within_a_turn, r3_pausing_and_resuming_twice,
                r4_data_and_fin_together, r4_fin_behind_a_full_buffer, r4_fin_between_wait_and_receive,
                r4_fin_while_paused, r4_fin_alone, r4_reset_with_unread_data, r4_reset_while_paused,
                r5_a_half_closed_peer_gets_its_response,
                r6_a_fin_is_reported_while_paused, r6_a_fin_before_the_pause_is_reported, r6_a_reset_is_reported_while_paused,
                r6_a_fin_is_reported_once, r6_closing_a_paused_connection_ends_it,
                r7_more_than_a_turn_reads_is_read_later;
            sending: s1_an_output_comes_back_untouched, s1_an_empty_output_comes_back_as_sent,
                s1_an_output_comes_back_from_a_broken_connection, s1_releases_a_shared_block,
                s1_sends_begun_together_come_back_each,
                s2_a_second_send_is_refused, s3_partial_sends_resume_in_order, s3_a_gathered_output_is_in_order,
                s5_a_file_is_sent_in_shares, s5_reports_a_short_file, s5_files_sent_one_after_the_other_share_the_turn,
                s6_progress_never_goes_back, s6_a_failed_send_reports_its_bytes, s7_a_send_done_at_once_has_no_event, s7_sends_not_done_at_once_come_back,
                s7_unawaited_sends_arrive, s7_what_a_full_socket_left_arrives,
                s7_sends_after_one_done_at_once_are_in_order, s7_the_end_follows_what_was_sent,
                s8_shows_acknowledged_bytes_before_there_is_room,
                s11_counts_all_bytes_taken;
            unsettled: s7_a_close_reports_what_was_not_sent, s7_unsent_sends_come_first_if_asked_for;
            versions: s10_a_file_in_its_version_is_sent_whole, s10_a_changed_file_ends_short_of_its_last_bytes,
                s10_a_file_without_a_promise_is_sent_as_it_is, s10_checks_each_range, s10_copied_bytes_stay_unchanged,
                s10_a_file_rewritten_on_the_way_ends_short, s10_a_file_that_grows_or_gets_other_metadata_is_sent_whole,
                s10_a_touched_file_is_sent_whole_if_the_system_reports_writes;
            closing: c1_fin_follows_what_was_sent, c2_close_ends_with_closed, c2_close_cancels_a_send,
                c2_close_delivers_a_decided_send_first, c2_a_send_begun_in_response_to_a_sent_comes_before_closed,
                c2_close_in_response_to_each_event, c3_reset_resets, c3_reset_discards_what_is_unsent, c4_a_broken_connection_stays, c5_detach_hands_the_connection_out,
                c5_a_close_ends_a_detach, c5_input_during_a_detach_is_returned;
            closing: k1_a_slot_comes_again_with_another_generation, k1_slots_are_dense, k1_a_closing_slot_is_not_reused,
                k2_verbs_on_closed_tokens_do_nothing;
            turns: w1_a_wake_ends_the_next_wait, w1_wakes_may_merge, w1_a_wake_between_events;
            turns: serves_a_thousand_connections, churn_leaves_nothing_behind;
        }
    };
    ($harness:ty; $($group:ident: $($name:ident),+;)+) => {
        $($(
            #[test]
            fn $name() {
                if !crate::contract::is_missing::<$harness>() {
                    crate::contract::$group::$name::<$harness>();
                }
            }
        )+)+
    };
}
pub(crate) use contract_suite;
