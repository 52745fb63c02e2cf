//! The requests of a connection: built once, the number of the path written into them for each.

use crate::dice::Dice;
use crate::scenario::{Scenario, VARIED_PATHS};

/// One connection's requests.
pub(super) struct Requests {
    /// As many requests as are sent at once.
    bytes: Vec<u8>,
    /// Where the path's two digits lie, in every request.
    numbers: Vec<usize>,
    next: u32,
}

impl Requests {
    /// Those of the connection with this number.
    pub(super) fn of(scenario: &Scenario, connection: u32) -> Self {
        let target = scenario.target(0);
        let fields = if scenario.varied { own_fields(connection) } else { "Host: lab\r\n".to_owned() };
        let one = format!("GET {target} HTTP/1.1\r\n{fields}\r\n");
        let bytes = one.repeat(scenario.depth as usize).into_bytes();
        let digits = "GET ".len() + scenario.path.find("NN").unwrap_or(0);
        let requests = if scenario.varied { scenario.depth as usize } else { 0 };
        let numbers = (0..requests).map(|request| request * one.len() + digits).collect();
        Self { bytes, numbers, next: connection }
    }

    /// The next ones to be sent.
    pub(super) fn next(&mut self) -> &[u8] {
        for at in &self.numbers {
            let number = (self.next % VARIED_PATHS) as u8;
            self.bytes[*at] = b'0' + number / 10;
            self.bytes[*at + 1] = b'0' + number % 10;
            // A step that has no divisor in common with the number of paths visits all of them.
            self.next = self.next.wrapping_add(7);
        }
        &self.bytes
    }
}

/// Header fields in an order of the connection's own, with a cookie of its own, as browsers would send them.
fn own_fields(connection: u32) -> String {
    let mut fields = [
        "Host: lab".to_owned(),
        "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8".to_owned(),
        "Accept-Encoding: gzip, deflate, br".to_owned(),
        "Accept-Language: en-GB,en;q=0.7".to_owned(),
        format!("User-Agent: lab/{connection}"),
        format!(
            "Cookie: session={:016x}; seen={connection}",
            u64::from(connection).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ),
    ];
    Dice::new(u64::from(connection)).shuffle(&mut fields);
    fields.iter().map(|field| format!("{field}\r\n")).collect()
}
