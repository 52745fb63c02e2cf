//! The requests of a connection, built once where they don't differ.

use super::Load;
use crate::scenario::VARIED_PATHS;

/// Distance between successive paths: without a common divisor with their number, it visits all of them.
const STRIDE: usize = 7;

/// One connection's requests.
pub(super) struct Requests {
    /// A whole batch, where there is only one exchange.
    batch: Vec<u8>,
    /// Positions of the path's two digits in every request of the batch.
    digits: Vec<usize>,
    exchanges: usize,
    /// Index of the next exchange or path.
    next: usize,
}

impl Requests {
    pub(super) fn new(load: &Load, connection: u32) -> Self {
        let (exchanges, depth) = (load.exchanges.len(), load.depth as usize);
        let mut requests =
            Self { batch: Vec::new(), digits: Vec::new(), exchanges, next: connection as usize };
        if let [exchange] = load.exchanges.as_slice() {
            let mut one = exchange.request.clone();
            if load.varied {
                one = with_own_headers(&one, connection);
                let first = one.find(" HTTP/1.1").unwrap_or(2) - 2;
                requests.digits = (0..depth).map(|request| request * one.len() + first).collect();
            }
            requests.batch = one.repeat(depth).into_bytes();
        } else {
            requests.next %= exchanges;
        }
        requests
    }

    /// Returns the exchange of the next request.
    pub(super) fn next_index(&self) -> usize {
        if self.exchanges == 1 { 0 } else { self.next }
    }

    pub(super) fn index_after(&self, index: usize) -> usize {
        (index + 1) % self.exchanges
    }

    /// Appends the next batch of requests.
    pub(super) fn write_next(&mut self, load: &Load, out: &mut Vec<u8>) {
        if self.exchanges > 1 {
            for _ in 0..load.depth {
                out.extend_from_slice(load.exchanges[self.next].request.as_bytes());
                self.next = self.index_after(self.next);
            }
            return;
        }
        for at in &self.digits {
            let number = (self.next % VARIED_PATHS as usize) as u8;
            self.batch[*at] = b'0' + number / 10;
            self.batch[*at + 1] = b'0' + number % 10;
            self.next += STRIDE;
        }
        out.extend_from_slice(&self.batch);
    }
}

/// Replaces the headers by those of a browser, in an order and with a cookie of the connection's own.
fn with_own_headers(request: &str, connection: u32) -> String {
    let session = u64::from(connection).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut headers = [
        "Host: lab".to_owned(),
        "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8".to_owned(),
        "Accept-Encoding: gzip, deflate, br".to_owned(),
        "Accept-Language: en-GB,en;q=0.7".to_owned(),
        format!("User-Agent: lab/{connection}"),
        format!("Cookie: session={session:016x}; seen={connection}"),
    ];
    fastrand::Rng::with_seed(connection.into()).shuffle(&mut headers);
    let line = request.lines().next().unwrap_or_default();
    format!("{line}\r\n{}\r\n\r\n", headers.join("\r\n"))
}
