//! `[performance]`, `[limits]`, `[timeouts]` and `[cache]`.

use std::time::Duration;

use crate::context::Context;
use crate::rules::collections::Optional;
use crate::rules::numbers::{duration, integer, size};
use crate::rules::strings::Flag;
use crate::section::{Source, section};

/// A day in milliseconds.
const DAY_MS: u64 = 86_400_000;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

section! {
    /// Number of connections, their idle timeouts and buffer sizes.
    Performance {
        max_connections: u64 = 0, integer(0..=1_000_000_000),
            "Maximum number of open connections of all workers together. When it is reached, the longest idle connections are closed for new \
             ones, which wait while none is idle. 0: as many as the descriptor limit allows, which is the upper bound in any case, except with \
             `driver = \"uring\"` from Linux 6.8 on. The start report shows the effective value.";
        connection_timeout: Duration = Duration::from_secs(10), duration(1..=DAY_MS),
            "Timeout from accepting a connection to the end of its first request head. Integers are seconds.";
        keep_alive_timeout: Duration = Duration::from_secs(75), duration(1..=DAY_MS),
            "Timeout of an idle connection between two requests. Integers are seconds. Behind a proxy it must be longer than the proxy's own, \
             which is often 60 s: otherwise a request can meet the close.";
        request_buffer_size: u32 = 65_536, size(KIB..=MIB),
            "Bytes requested by one receive call; with io_uring at most 16KiB, whatever is set, because it keeps a pool of such buffers. It doesn't \
             limit requests: see `[limits]`.";
        response_buffer_size: u32 = 65_536, size(KIB..=16 * MIB),
            "Bytes of responses gathered per connection before they are sent. It doesn't limit responses.";
    }
}

section! {
    /// Limits of requests and connections.
    Limits {
        head_bytes_max: u32 = 65_536, size(64..=GIB),
            "Maximum size of a request head; 431 beyond.";
        target_bytes_max: u32 = 8192, size(1..=GIB),
            "Maximum length of a request target (path and query); 414 beyond.";
        fields_max: u16 = 100, integer(1..=65_534),
            "Maximum number of header fields in a request; 431 beyond.";
        body_bytes_max: u64 = 10 * MIB, size(0..=TIB),
            "Maximum size of a request body; 413 beyond.";
        buffered_bytes_max: Option<u64> = None, Optional(size(64 * KIB..=TIB)),
            "Memory per worker for unfinished requests; beyond, the connection that holds most gets a 503. Default: a quarter of the \
             machine's memory divided by the number of workers, at most 256MiB. The start report shows the effective value.";
        connections_per_address_max: u32 = 0, integer(0..=4_294_967_295),
            "Maximum number of connections per client address; an IPv6 /64 counts as one address. Further ones are reset. 0: no limit.";
        requests_per_connection_max: u32 = 0, integer(0..=4_294_967_295),
            "Maximum number of requests per connection; the last response closes it. 0: no limit.";
        streams_max: u16 = 100, integer(1..=10_000),
            "Maximum number of requests in progress on a connection of HTTP/2; further ones are refused (REFUSED_STREAM), and the client may \
             repeat them.";
        body_bytes_per_second_min: u32 = 240, size(0..=4_294_967_295),
            "Minimum rate of a request body per second; 408 below. 0: no minimum.";
        send_bytes_per_second_min: u32 = 240, size(0..=4_294_967_295),
            "Minimum rate per second at which a client reads its response, averaged over `timeouts.write`; reset below. 0: any progress is \
             enough.";
        linger_bytes_max: u32 = 67_108_864, size(0..=4_294_967_295),
            "Bytes read and discarded after the last response, so that the client receives it; reset beyond.";
    }

    fn example() -> Self {
        Self { buffered_bytes_max: Some(256 * MIB), ..Self::default() }
    }
}

section! {
    /// Timeouts of connections.
    Timeouts {
        head: Duration = Duration::from_secs(10), duration(1..=DAY_MS),
            "From the first byte of a request head to its end; 408. (First request: `performance.connection_timeout`.)";
        body: Duration = Duration::from_secs(30), duration(1..=DAY_MS),
            "Between two parts of a request body; 408.";
        body_grace: Duration = Duration::from_secs(10), duration(1..=DAY_MS),
            "Before the minimum rate of a request body applies (`limits.body_bytes_per_second_min`); 408.";
        write: Duration = Duration::from_secs(60), duration(1..=DAY_MS),
            "For a client to read any part of its response (see `limits.send_bytes_per_second_min`); reset.";
        linger: Duration = Duration::from_secs(10), duration(1..=DAY_MS),
            "For a client to close its side after the last response; closed.";
        drain_idle: Duration = Duration::from_millis(500), duration(0..=DAY_MS),
            "For an idle connection to send one more request during a graceful shutdown; closed.";
    }
}

section! {
    /// Each worker's cache of files.
    Cache {
        enabled: bool = true, Flag,
            "Caches contents of files. If off, files are opened and read in every turn that sends them.";
        bytes_max: Option<u64> = None, Optional(size(0..=TIB)),
            "Memory per worker for cached files, about 1KiB of overhead for each included; one that was not used recently is evicted. \
             Default: a 32nd of the machine's memory divided by the number of workers.";
        entries_max: u32 = 16_777_216, integer(1..=16_777_216),
            "Maximum number of cached files, and of what is known about others: open files, directories, paths; one that was not used \
             recently is evicted. Default: as many as fit in `bytes_max`.";
        file_bytes_max: u64 = 65_536, size(0..=GIB),
            "Maximum size of a cached file. Larger files are sent from disk.";
        hashed_bytes_max: u64 = GIB, size(0..=TIB),
            "Maximum size of a file that isn't cached and whose `ETag` is a hash of its content, computed in the background. The tag of a \
             larger file is its length and modification time.";
    }

    fn example() -> Self {
        Self { bytes_max: Some(64 * MIB), ..Self::default() }
    }

    fn check(&mut self, source: &Source<'_>, context: &mut Context<'_>) {
        if self.bytes_max.is_some_and(|bytes_max| self.file_bytes_max > bytes_max) {
            let name = if source.has("file_bytes_max") { "file_bytes_max" } else { "bytes_max" };
            let message = "`file_bytes_max` is larger than `bytes_max`";
            source.error(context, name, message, "raise `bytes_max` or lower `file_bytes_max`");
        }
    }
}
