//! The list of all metrics: names, kinds, descriptions, and where their values come from.

use shearwater::Totals;

use crate::certificates::CertificateState;
use crate::counts::{CLASSES, ENDS, METHODS};
use crate::exposition::Samples;
use crate::snapshot::{ServerFigures, Snapshot};

/// Kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A count that only grows, with the suffix `_total`.
    Counter,
    /// A value that may fall.
    Gauge,
    /// Durations in cumulative buckets.
    Histogram,
    /// Labels with the constant value 1, with the suffix `_info`.
    Info,
}

/// A metric.
#[derive(Clone, Copy)]
pub struct Family {
    /// Name without the suffix of its kind.
    pub name: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Names of its labels, in order. Buckets also have `le`.
    pub labels: &'static [&'static str],
    /// Description.
    pub help: &'static str,
    /// Adds its values, or none if they are unknown.
    pub(crate) samples: fn(&Snapshot, &mut Samples<'_>),
}

impl std::fmt::Debug for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Family").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Family {
    /// Returns the name with the suffix of its kind, as in queries; that of a histogram has further suffixes there.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}{}", self.name, self.suffix())
    }

    pub(crate) const fn suffix(&self) -> &'static str {
        match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        }
    }

    /// Returns its unit, the last word of its name.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes"].into_iter().find(|unit| self.name.ends_with(unit))
    }
}

macro_rules! families {
    ($($kind:ident $name:literal [$($label:literal),*] $help:literal = $samples:expr;)*) => {
        /// All metrics, in the order of the output.
        pub const FAMILIES: &[Family] = &[$(Family {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
            samples: $samples,
        }),*];
    };
}

families! {
    Info "shearwater_build" ["version", "driver"] "Version of the program and its I/O driver." = |all, samples| {
        // A driver that isn't known yet would be a second series.
        all.server.iter().for_each(|server| samples.add(&[&all.version, server.driver], 1));
    };
    Gauge "shearwater_ready" [] "1 while requests are taken, 0 before the start and while draining." = |all, samples| {
        samples.add(&[], u64::from(all.is_ready()));
    };
    Gauge "shearwater_workers" [] "Worker threads." = |all, samples| {
        of_server(all, samples, |server| server.workers as u64);
    };
    Counter "shearwater_requests" ["method", "class"] "Requests by method and class of the status; none without a response." = |all, samples| {
        for (method, classes) in METHODS.iter().zip(&all.requests) {
            for (class, count) in CLASSES.iter().zip(classes) {
                samples.add(&[method, class], *count);
            }
        }
    };
    Histogram "shearwater_request_duration_seconds" [] "Time from a request's first byte to the end of its response." = |all, samples| {
        samples.histogram(&all.duration);
    };
    Histogram "shearwater_request_first_byte_seconds" [] "Time from a request's first byte to the first byte of its response." = |all, samples| {
        samples.histogram(&all.first_byte);
    };
    Counter "shearwater_request_ends" ["end"] "Requests by how they ended: complete, or why not." = |all, samples| {
        ENDS.iter().zip(&all.ends).for_each(|(end, count)| samples.add(&[end.name()], *count));
    };
    Counter "shearwater_received_bytes" [] "Bytes received on all connections." = |all, samples| {
        of_server(all, samples, |server| server.totals.bytes_received);
    };
    Counter "shearwater_sent_bytes" [] "Bytes that the kernel has taken on all connections." = |all, samples| {
        of_server(all, samples, |server| server.totals.bytes_sent);
    };
    Gauge "shearwater_connections" [] "Open connections." = |all, samples| {
        of_server(all, samples, |server| server.totals.connections_open());
    };
    Gauge "shearwater_connections_in_state" ["state"] "Open connections with an unfinished request, with a response that isn't sent whole, and upgraded ones. A connection may be in the first two; idle ones are in none." = |all, samples| {
        for (state, count) in all.server.iter().flat_map(|server| states(&server.totals)) {
            samples.add(&[state], count);
        }
    };
    Counter "shearwater_connections_accepted" [] "Connections accepted." = |all, samples| {
        of_server(all, samples, |server| server.totals.connections_accepted);
    };
    Counter "shearwater_connections_closed" [] "Connections closed." = |all, samples| {
        of_server(all, samples, |server| server.totals.connections_closed);
    };
    Counter "shearwater_connections_refused" [] "Connections reset at once because their address held too many." = |all, samples| {
        of_server(all, samples, |server| server.totals.connections_refused);
    };
    Counter "shearwater_connections_reset" [] "Connections reset by the server for any reason." = |all, samples| {
        of_server(all, samples, |server| server.totals.connections_reset);
    };
    Counter "shearwater_connections_broken" [] "Connections broken by the client or the network." = |all, samples| {
        of_server(all, samples, |server| server.totals.connections_broken);
    };
    Counter "shearwater_connections_upgraded" [] "Connections upgraded to another protocol." = |all, samples| {
        of_server(all, samples, |server| server.totals.connections_upgraded);
    };
    Counter "shearwater_connections_cut_off" [] "Connections closed during a request or response because the server ended." = |all, samples| {
        of_server(all, samples, |server| server.totals.connections_cut_off);
    };
    Counter "shearwater_limit_hits" ["limit"] "How often each limit was reached; docs/limits.md describes them." = |all, samples| {
        for (limit, count) in all.server.iter().flat_map(|server| server.totals.limits()) {
            samples.add(&[limit], count);
        }
    };
    Counter "shearwater_handler_panics" [] "Handlers that panicked." = |all, samples| {
        of_server(all, samples, |server| server.totals.handler_panics);
    };
    Counter "shearwater_handler_errors" [] "Invalid responses of handlers, sent as 500." = |all, samples| {
        of_server(all, samples, |server| server.totals.handler_errors);
    };
    Counter "shearwater_file_failures" [] "Responses truncated because a file had shrunk or could not be read." = |all, samples| {
        of_server(all, samples, |server| server.totals.files_failed);
    };
    Gauge "shearwater_http2_connections_open" [] "Open HTTP/2 connections." = |all, samples| {
        of_server(all, samples, |server| server.totals.http2_connections_open);
    };
    Counter "shearwater_http2_connections" [] "HTTP/2 connections." = |all, samples| {
        of_server(all, samples, |server| server.totals.http2_connections);
    };
    Counter "shearwater_http2_requests" [] "Requests by HTTP/2: streams that have begun." = |all, samples| {
        of_server(all, samples, |server| server.totals.http2_streams);
    };
    Counter "shearwater_http2_resets_received" [] "Streams that clients have reset." = |all, samples| {
        of_server(all, samples, |server| server.totals.http2_resets_received);
    };
    Counter "shearwater_http2_resets_sent" ["code"] "RST_STREAM frames sent, by error code. NO_ERROR: the response is complete before its request." = |all, samples| {
        for (code, count) in all.server.iter().flat_map(|server| server.totals.http2_resets_sent()) {
            samples.add(&[code], count);
        }
    };
    Counter "shearwater_http2_goaways_sent" ["code"] "GOAWAY frames sent, by error code. NO_ERROR: an idle connection, or a drain; ENHANCE_YOUR_CALM: a limit." = |all, samples| {
        for (code, count) in all.server.iter().flat_map(|server| server.totals.http2_go_aways_sent()) {
            samples.add(&[code], count);
        }
    };
    Gauge "shearwater_tls_connections" [] "Open connections by TLS, those within their handshake included. Like all metrics of TLS, absent without it." = |all, samples| {
        of_tls(all).for_each(|totals| samples.add(&[], totals.tls_connections));
    };
    Counter "shearwater_tls_handshakes" ["version"] "Completed handshakes by version." = |all, samples| {
        for totals in of_tls(all) {
            samples.add(&["1.2"], totals.tls12_handshakes);
            samples.add(&["1.3"], totals.tls13_handshakes);
        }
    };
    Counter "shearwater_tls_handshakes_resumed" [] "Completed handshakes that continued an earlier session." = |all, samples| {
        of_tls(all).for_each(|totals| samples.add(&[], totals.tls_resumed));
    };
    Counter "shearwater_tls_handshakes_queued" [] "Handshakes whose costly step waited for a later turn." = |all, samples| {
        of_tls(all).for_each(|totals| samples.add(&[], totals.tls_queued));
    };
    Counter "shearwater_tls_failures" ["reason"] "Sessions that failed, in the handshake or later, by reason." = |all, samples| {
        for (reason, count) in of_tls(all).flat_map(|totals| totals.tls_failures()) {
            samples.add(&[reason], count);
        }
    };
    Gauge "shearwater_tls_partial_bytes" [] "Memory of records that are incomplete." = |all, samples| {
        of_tls(all).for_each(|totals| samples.add(&[], totals.tls_partial_bytes));
    };
    Gauge "shearwater_tls_certificate_end_timestamp_seconds" ["name", "source"] "End of each certificate, since 1970; absent for one that the server doesn't have yet." = |all, samples| {
        for certificate in &all.certificates {
            if let Some((_, end)) = certificate.validity {
                samples.add(&[&certificate.name, certificate.source], end);
            }
        }
    };
    Gauge "shearwater_tls_certificate_ok" ["name", "source"] "1 while a certificate is valid and doesn't end soon: not within 14 days, or the last fifth of its life." = |all, samples| {
        for certificate in &all.certificates {
            let is_ok = certificate.state(all.now) == CertificateState::Valid;
            samples.add(&[&certificate.name, certificate.source], u64::from(is_ok));
        }
    };
    Gauge "shearwater_tls_certificate_order_failing" ["name"] "1 while the last order of a certificate that the server gets by itself has failed." = |all, samples| {
        for certificate in all.certificates.iter().filter(|certificate| certificate.source == "auto") {
            samples.add(&[&certificate.name], u64::from(certificate.is_failing));
        }
    };
    Counter "shearwater_reloads" ["result"] "Reloads of the configuration: done, or refused." = |all, samples| {
        samples.add(&["done"], all.configuration.reloads);
        samples.add(&["refused"], all.configuration.reloads_refused);
    };
    Gauge "shearwater_last_reload_timestamp_seconds" [] "Time of the last reload that took effect, since 1970." = |all, samples| {
        all.configuration.last_reload.iter().for_each(|seconds| samples.add(&[], *seconds));
    };
    Counter "shearwater_site_requests" ["site", "class"] "Requests of each site by class of the status." = |all, samples| {
        for site in &all.sites {
            let classes = CLASSES.iter().zip(&site.classes);
            classes.for_each(|(class, count)| samples.add(&[&site.name, class], *count));
        }
    };
    Counter "shearwater_site_sent_bytes" ["site"] "Bytes of each site's responses." = |all, samples| {
        all.sites.iter().for_each(|site| samples.add(&[&site.name], site.bytes_sent));
    };
    Gauge "shearwater_cache_files" [] "Files in memory, all workers together." = |all, samples| {
        all.cache.iter().for_each(|cache| samples.add(&[], cache.files));
    };
    Gauge "shearwater_cache_bytes" [] "Bytes of the files in memory." = |all, samples| {
        all.cache.iter().for_each(|cache| samples.add(&[], cache.bytes));
    };
    Counter "shearwater_cache_hits" [] "Look-ups of files that were in memory." = |all, samples| {
        all.cache.iter().for_each(|cache| samples.add(&[], cache.hits));
    };
    Counter "shearwater_cache_misses" [] "Look-ups of files that were not in memory." = |all, samples| {
        all.cache.iter().for_each(|cache| samples.add(&[], cache.misses));
    };
    Counter "shearwater_compressions" [] "Files compressed on the fly." = |all, samples| {
        all.compression.iter().for_each(|counts| samples.add(&[], counts.done));
    };
    Counter "shearwater_compression_rejections" [] "Files that weren't compressed for a request, because too many waited." = |all, samples| {
        all.compression.iter().for_each(|counts| samples.add(&[], counts.rejections));
    };
    Counter "shearwater_compression_in_bytes" [] "Bytes of the files that compression on the fly has made shorter." = |all, samples| {
        all.compression.iter().for_each(|counts| samples.add(&[], counts.bytes_in));
    };
    Counter "shearwater_compression_out_bytes" [] "Bytes of the results." = |all, samples| {
        all.compression.iter().for_each(|counts| samples.add(&[], counts.bytes_out));
    };
    Gauge "shearwater_compression_cache_bytes" [] "Bytes of the results that are kept." = |all, samples| {
        all.compression.iter().for_each(|counts| samples.add(&[], counts.bytes));
    };
    Counter "shearwater_compression_cache_evictions" [] "Results that were evicted." = |all, samples| {
        all.compression.iter().for_each(|counts| samples.add(&[], counts.evictions));
    };
    Counter "shearwater_log_lines" ["result"] "Lines of the access log: written, or dropped because its destination was too slow or failed." = |all, samples| {
        if let Some(log) = &all.log {
            samples.add(&["written"], log.written);
            samples.add(&["dropped"], log.dropped);
        }
    };
    Gauge "shearwater_log_failing" [] "1 while the destination of the access log can't be written to, or takes nothing for a second." = |all, samples| {
        all.log.iter().for_each(|log| samples.add(&[], u64::from(log.is_failing)));
    };
    Counter "process_cpu_seconds" [] "CPU time of all threads of the process." = |all, samples| {
        samples.add(&[], all.process.cpu_seconds);
    };
    Gauge "process_start_time_seconds" [] "Time at which the process started, since 1970." = |all, samples| {
        samples.add(&[], all.started_unix_seconds);
    };
    Gauge "process_resident_memory_bytes" [] "Resident memory of the process." = |all, samples| {
        all.process.resident_bytes.iter().for_each(|bytes| samples.add(&[], *bytes));
    };
    Gauge "process_virtual_memory_bytes" [] "Virtual memory of the process." = |all, samples| {
        all.process.virtual_bytes.iter().for_each(|bytes| samples.add(&[], *bytes));
    };
    Gauge "process_open_fds" [] "Open descriptors of the process." = |all, samples| {
        all.process.open_descriptors.iter().for_each(|count| samples.add(&[], *count));
    };
    Gauge "process_max_fds" [] "Limit of the process's descriptors." = |all, samples| {
        all.process.descriptors_max.iter().for_each(|count| samples.add(&[], *count));
    };
}

/// Returns the states of connections that are known.
pub(crate) fn states(totals: &Totals) -> [(&'static str, u64); 3] {
    [
        ("unfinished", totals.connections_unfinished),
        ("sending", totals.connections_sending),
        ("upgraded", totals.connections_handed_over),
    ]
}

/// Returns the totals of a server that secures connections, if it has started.
fn of_tls(all: &Snapshot) -> impl Iterator<Item = &Totals> {
    all.server.iter().filter(|server| server.has_tls).map(|server| &server.totals)
}

/// Adds a value that is known once the server has started.
fn of_server(all: &Snapshot, samples: &mut Samples<'_>, value: impl Fn(&ServerFigures) -> u64) {
    all.server.iter().for_each(|server| samples.add(&[], value(server)));
}
