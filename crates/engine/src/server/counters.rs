//! A worker's counters. Only the worker writes them and any thread may read: no locked instruction on the hot
//! path.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use shearwater_http2::{ErrorCode, SentCodes};
use shearwater_io::secure::Failure;

macro_rules! counters {
    (
        counts { $($(#[$doc:meta])* $name:ident),* $(,)? }
        limits { $($(#[$limit_doc:meta])* $limit:ident = $limit_name:literal),* $(,)? }
    ) => {
        /// Counters of one worker since its start.
        #[derive(Debug, Default)]
        #[repr(align(64))]
        pub(crate) struct Counters {
            $($(#[$doc])* pub(crate) $name: Counter,)*
            $($(#[$limit_doc])* pub(crate) $limit: Counter,)*
            http2_resets_sent: [Counter; ErrorCode::COUNT],
            http2_go_aways_sent: [Counter; ErrorCode::COUNT],
        }

        /// Snapshot of the counters of one worker, or summed over several.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
            $($(#[$limit_doc])* pub $limit: u64,)*
            http2_resets_sent: [u64; ErrorCode::COUNT],
            http2_go_aways_sent: [u64; ErrorCode::COUNT],
        }

        impl Totals {
            /// Adds the current values of `counters`.
            pub(crate) fn add(&mut self, counters: &Counters) {
                $(self.$name += counters.$name.get();)*
                $(self.$limit += counters.$limit.get();)*
                for number in 0..ErrorCode::COUNT {
                    self.http2_resets_sent[number] += counters.http2_resets_sent[number].get();
                    self.http2_go_aways_sent[number] += counters.http2_go_aways_sent[number].get();
                }
            }

            /// Returns each counter's name and value, in a fixed order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)* $((stringify!($limit), self.$limit),)*].into_iter()
            }

            /// Returns each limit's name as in `docs/limits.md`, and how often it was reached.
            pub fn limits(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($limit_name, self.$limit),)*].into_iter()
            }
        }
    };
}

counters! {
    counts {
        /// Connections accepted.
        connections_accepted,
        /// Connections closed.
        connections_closed,
        /// Connections reset at once because their address holds too many (`connections_per_address_max`).
        connections_refused,
        /// Connections reset by this server for any reason.
        connections_reset,
        /// Connections reset because they don't begin with a PROXY header of a trusted proxy.
        proxy_headers_rejected,
        /// Connections broken by the peer or the network.
        connections_broken,
        /// Connections upgraded to another protocol. Each stays open until it has ended, or its worker has.
        connections_upgraded,
        /// Connections closed during a request or response because the server ended.
        connections_cut_off,
        /// Complete requests that were passed to a handler.
        requests,
        /// Requests rejected by the server itself (`4xx` or `5xx`, then a close). With `requests`: all final
        /// responses.
        requests_refused,
        /// Redirections and not-modified responses (`3xx`).
        responses_3xx,
        /// Client error responses (`4xx`).
        responses_4xx,
        /// Server error responses (`5xx`).
        responses_5xx,
        /// Handlers that panicked.
        handler_panics,
        /// Invalid responses of handlers (a bad field), sent as `500`.
        handler_errors,
        /// Responses truncated because a file had shrunk or could not be read.
        files_failed,
        /// Turns in which deferred handlers were ready to run.
        task_turns,
        /// Deferred handlers that were ready, over all turns.
        tasks_ready,
        /// Bytes received.
        bytes_received,
        /// Bytes sent: accepted by the kernel, including those of truncated and in-flight responses.
        /// Connections that were handed over are no longer counted.
        bytes_sent,
        /// Reloads that were ordered (`Control::reload`).
        reloads,
        /// Connections with an unfinished request now: its head or body is incomplete, or its handler has deferred the
        /// response. Like the next three, it is 0 without a listener for exchanges.
        connections_unfinished,
        /// Connections with a response that the kernel hasn't taken whole now.
        connections_sending,
        /// Upgraded connections that are open now.
        connections_handed_over,
        /// HTTP/2 connections that are open now.
        http2_connections_open,
        /// HTTP/2 connections.
        http2_connections,
        /// HTTP/2 requests: streams that have begun.
        http2_streams,
        /// Streams that clients have reset.
        http2_resets_received,
        /// Connections with TLS now, those within their handshake included.
        tls_connections,
        /// Completed handshakes of TLS 1.2.
        tls12_handshakes,
        /// Completed handshakes of TLS 1.3.
        tls13_handshakes,
        /// Completed handshakes that continued an earlier session by a ticket.
        tls_resumed,
        /// Handshakes whose costly step waited for a later turn.
        tls_queued,
        /// Memory of records that are incomplete now, in bytes.
        tls_partial_bytes,
        /// Connections that began with something else, such as plain HTTP. Like the following, failed sessions by reason.
        tls_failed_not_tls,
        /// No common version.
        tls_failed_version,
        /// No common cipher suite, group or signature scheme.
        tls_failed_nothing_in_common,
        /// No certificate for the server name.
        tls_failed_unknown_name,
        /// No common application protocol.
        tls_failed_protocol,
        /// The client's certificate was missing or not accepted.
        tls_failed_client_certificate,
        /// The client sent an alert: it doesn't trust the certificate, for example.
        tls_failed_alert,
        /// A malformed record.
        tls_failed_bad_record,
        /// Renegotiation or early data.
        tls_failed_unsupported,
        /// The connection ended within the handshake.
        tls_failed_truncated,
        /// The handshake took too long.
        tls_failed_timed_out,
        /// Memory for incomplete records had run out.
        tls_failed_memory,
        /// Any other reason.
        tls_failed_other,
    }
    limits {
        /// Heads rejected as too large (`431`).
        hit_head_bytes = "head_bytes_max",
        /// Heads rejected for their target (`414`).
        hit_target_bytes = "target_bytes_max",
        /// Heads rejected for their number of fields (`431`).
        hit_fields = "fields_max",
        /// Heads rejected for their method (`501`).
        hit_method_bytes = "METHOD_BYTES_MAX",
        /// Bodies rejected as too large, by the server's limit or the handler's own (`413`).
        hit_body_bytes = "body_bytes_max",
        /// Bodies rejected for a chunk's size line (`400`).
        hit_chunk_line_bytes = "chunk_line_bytes_max",
        /// Bodies rejected for the size of their trailers (`431`).
        hit_trailer_bytes = "trailer_bytes_max",
        /// Bodies rejected for the number of their trailers (`431`).
        hit_trailers = "trailers_max",
        /// Times accepting paused because descriptors, slots or memory had run out.
        hit_connections = "connections_max",
        /// Times the acceptor waited because every worker's inbox was full.
        hit_inbox = "INBOX_MAX",
        /// Connections closed after their last request.
        hit_requests_per_connection = "requests_per_connection_max",
        /// Requests rejected because the worker's buffers were full (`503`).
        hit_buffered_bytes = "buffered_bytes_max",
        /// Requests rejected because too many were deferred (`503`).
        hit_calls = "calls_max",
        /// Times pipelined requests waited until earlier responses were sent.
        hit_output_bytes = "output_bytes_max",
        /// Times they waited because of the number of shared blocks and file ranges in those responses.
        hit_output_items = "OUTPUT_ITEMS_MAX",
        /// Times they waited because of the number of different files in those responses.
        hit_output_files = "OUTPUT_FILES_MAX",
        /// Times pipelined requests waited for the next turn.
        hit_requests_per_turn = "REQUESTS_PER_TURN_MAX",
        /// Connections reset because of a PROXY header that is too large.
        hit_proxy_header_bytes = "PROXY_HEADER_BYTES_MAX",
        /// Connections reset because they sent too much after their last response.
        hit_linger_bytes = "linger_bytes_max",
        /// Connections closed, or rejected with `408`, because their first head was not complete in time.
        hit_first_head_ms = "first_head_ms",
        /// Later heads that were not complete in time (`408`).
        hit_head_ms = "head_ms",
        /// Bodies that stalled for too long (`408`).
        hit_body_ms = "body_ms",
        /// Bodies below the minimum rate (`408`).
        hit_body_rate = "body_bytes_per_second_min",
        /// Connections closed because they were idle too long.
        hit_idle_ms = "idle_ms",
        /// Connections reset because the client read nothing.
        hit_write_ms = "write_ms",
        /// Connections reset because the client read too slowly.
        hit_send_rate = "send_bytes_per_second_min",
        /// Connections closed because the client sent no FIN in time after the last response.
        hit_linger_ms = "linger_ms",
        /// Connections closed because the client had sent a FIN and its response took too long.
        hit_half_closed_ms = "half_closed_ms",
        /// Idle connections closed while draining.
        hit_drain_idle_ms = "drain_idle_ms",
        /// Turns that left due deadlines to the next one.
        hit_expiries_per_turn = "EXPIRIES_PER_TURN",
        /// Exchanges whose end is unknown to listeners, because too many were unfinished.
        hit_exchange_bytes = "EXCHANGE_BYTES_MAX",
        /// Notices to the operator that were dropped: unread, or of too many kinds at once.
        hit_notices = "NOTICES_MAX",
    }
}

impl Counters {
    /// Returns the counter of a failed TLS session.
    pub(crate) fn tls_failed(&self, failure: Failure) -> &Counter {
        match failure {
            Failure::NotTls => &self.tls_failed_not_tls,
            Failure::Version => &self.tls_failed_version,
            Failure::NothingInCommon => &self.tls_failed_nothing_in_common,
            Failure::UnknownName => &self.tls_failed_unknown_name,
            Failure::Protocol => &self.tls_failed_protocol,
            Failure::ClientCertificate => &self.tls_failed_client_certificate,
            Failure::Alert => &self.tls_failed_alert,
            Failure::BadRecord => &self.tls_failed_bad_record,
            Failure::Unsupported => &self.tls_failed_unsupported,
            Failure::Truncated => &self.tls_failed_truncated,
            Failure::TimedOut => &self.tls_failed_timed_out,
            Failure::Memory => &self.tls_failed_memory,
            Failure::Other => &self.tls_failed_other,
        }
    }

    /// Counts RST_STREAM and GOAWAY frames.
    #[cold]
    pub(crate) fn count_codes(&self, sent: &SentCodes) {
        for number in 0..ErrorCode::COUNT {
            self.http2_resets_sent[number].add(sent.resets[number].into());
            self.http2_go_aways_sent[number].add(sent.go_aways[number].into());
        }
    }

    /// Counts a response by class, unless it is a `2xx`: those are derived from the total.
    pub(crate) fn count_class(&self, status: u16) {
        let counter = match status {
            ..400 => &self.responses_3xx,
            400..500 => &self.responses_4xx,
            500.. => &self.responses_5xx,
        };
        counter.add(1);
    }
}

impl Totals {
    /// Returns the number of final responses.
    #[must_use]
    pub fn responses(&self) -> u64 {
        self.requests + self.requests_refused
    }

    /// Returns the number of successful responses (`2xx`, and `101`).
    #[must_use]
    pub fn responses_2xx(&self) -> u64 {
        // A concurrent read may see a part ahead of the total.
        self.responses().saturating_sub(self.responses_3xx + self.responses_4xx + self.responses_5xx)
    }

    /// Returns the failed TLS sessions by reason.
    pub fn tls_failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.iter().filter_map(|(name, count)| Some((name.strip_prefix("tls_failed_")?, count)))
    }

    /// Returns the RST_STREAM frames sent, by error code (RFC 9113 section 7).
    pub fn http2_resets_sent(&self) -> impl Iterator<Item = (&'static str, u64)> {
        by_code(self.http2_resets_sent)
    }

    /// Returns the GOAWAY frames sent, by error code. `NO_ERROR` is that of idle timeouts and drains.
    pub fn http2_go_aways_sent(&self) -> impl Iterator<Item = (&'static str, u64)> {
        by_code(self.http2_go_aways_sent)
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn connections_open(&self) -> u64 {
        self.connections_accepted.saturating_sub(self.connections_closed)
    }
}

fn by_code(counts: [u64; ErrorCode::COUNT]) -> impl Iterator<Item = (&'static str, u64)> {
    ErrorCode::ALL.iter().map(|code| code.name()).zip(counts)
}

/// One counter with a single writer, so that a load and a store suffice.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// Sets the counter to a total that the driver keeps.
    pub(crate) fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Formats one line: requests by status class, connections, bytes, then reached limits and faults by name;
/// zeros are omitted.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests (2xx {}, 3xx {}, 4xx {}, 5xx {}), ",
            self.responses(),
            self.responses_2xx(),
            self.responses_3xx,
            self.responses_4xx,
            self.responses_5xx
        )?;
        write!(
            f,
            "{} connections ({} open, {} refused, {} reset, {} broken off), {} bytes received, {} bytes sent",
            self.connections_accepted,
            self.connections_open(),
            self.connections_refused,
            self.connections_reset,
            self.connections_broken,
            self.bytes_received,
            self.bytes_sent
        )?;
        let faults = [
            ("handler_panics", self.handler_panics),
            ("handler_errors", self.handler_errors),
            ("files_failed", self.files_failed),
            ("connections_cut_off", self.connections_cut_off),
            ("proxy_headers_rejected", self.proxy_headers_rejected),
        ];
        let events = [("connections_upgraded", self.connections_upgraded), ("reloads", self.reloads)];
        list(f, "; ", events.into_iter())?;
        list(f, "; limits reached: ", self.limits())?;
        list(f, "; faults: ", faults.into_iter())
    }
}

/// Lists the counts that aren't 0.
fn list(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    counts: impl Iterator<Item = (&'static str, u64)>,
) -> fmt::Result {
    let mut before = title;
    for (name, count) in counts.filter(|(_, count)| *count > 0) {
        write!(f, "{before}{name} {count}")?;
        before = ", ";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::server::counters::Totals;

    #[test]
    fn omits_counters_that_are_zero() {
        let line = Totals::default().to_string();
        assert_eq!(
            line,
            "0 requests (2xx 0, 3xx 0, 4xx 0, 5xx 0), 0 connections (0 open, 0 refused, 0 reset, 0 broken off), \
             0 bytes received, 0 bytes sent"
        );
    }

    #[test]
    fn lists_every_counter_that_is_not_zero() {
        let totals = Totals {
            requests: 90,
            requests_refused: 10,
            responses_3xx: 3,
            responses_4xx: 4,
            responses_5xx: 5,
            connections_accepted: 20,
            connections_closed: 12,
            connections_refused: 1,
            connections_reset: 2,
            connections_broken: 3,
            connections_upgraded: 4,
            reloads: 2,
            bytes_received: 7,
            bytes_sent: 9,
            hit_head_ms: 6,
            hit_write_ms: 1,
            files_failed: 8,
            connections_cut_off: 11,
            proxy_headers_rejected: 12,
            ..Totals::default()
        };
        assert_eq!(
            totals.to_string(),
            "100 requests (2xx 88, 3xx 3, 4xx 4, 5xx 5), 20 connections (8 open, 1 refused, 2 reset, 3 broken off), \
             7 bytes received, 9 bytes sent; connections_upgraded 4, reloads 2; limits reached: head_ms 6, write_ms 1; faults: files_failed 8, connections_cut_off 11, proxy_headers_rejected 12"
        );
    }
}
