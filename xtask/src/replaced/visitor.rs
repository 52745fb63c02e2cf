//! A client that asks for one file again and again, and has every answer judged.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::ask::Ask;
use super::judge::{Seen, Verdict, judge};
use super::kind::Kind;
use super::site::Changing;
use super::tally::Tally;
use crate::harness::answer::{BodyLength, Fault};
use crate::harness::client::Client;
use crate::harness::random::Random;

/// Between two requests: those who change the files need a core too.
const PAUSE: Duration = Duration::from_micros(500);
/// What a slow client reads before it pauses, and how long it does.
const SLOW_BYTES: u64 = 128 * 1024;
const SLOW_PAUSE: Duration = Duration::from_millis(2);

/// Asks until it is over.
pub(super) fn visit(
    address: SocketAddr,
    file: &Changing,
    kind: Kind,
    mut random: Random,
    is_over: &AtomicBool,
) -> Tally {
    let mut tally = Tally::default();
    let mut client = None;
    let mut tag = None;
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(PAUSE);
        let ask = Ask::random(file, kind, tag.as_ref(), &mut random);
        match answer(&mut client, address, &ask) {
            Ok(seen) => {
                let verdict = judge(file, kind, &ask, &seen);
                if seen.is_short || seen.head.announces_close() {
                    client = None;
                }
                if matches!(verdict, Ok(Verdict::Whole | Verdict::Part)) {
                    tag = seen.head.field("etag").map(str::to_owned).or(tag);
                }
                tally.note(verdict.map_err(|what| format!("{ask:?}: {what}")));
            }
            Err(fault) => {
                client = None;
                tally.note(Err(format!("{ask:?}: {fault}")));
            }
        }
    }
    tally
}

/// Asks, on the connection that there is or a new one.
fn answer(client: &mut Option<Client>, address: SocketAddr, ask: &Ask) -> Result<Seen, Fault> {
    let client = match client {
        Some(client) => client,
        None => client.insert(Client::open(address)?),
    };
    let asked = Instant::now();
    client.send(&ask.bytes())?;
    let head = client.head()?;
    let mut left = match head.body_length(false) {
        BodyLength::None => 0,
        BodyLength::Exactly(length) => length,
        other => return Err(Fault::Malformed(format!("a file's length is {other:?}"))),
    };
    let (mut body, mut until_pause) = (Vec::new(), SLOW_BYTES);
    while left > 0 {
        match client.some(left, &mut |bytes| body.extend_from_slice(bytes)) {
            Ok(count) => {
                left -= count;
                until_pause = until_pause.saturating_sub(count);
            }
            Err(Fault::Truncated) => return Ok(Seen { head, body, is_short: true, asked }),
            Err(fault) => return Err(fault),
        }
        if ask.is_slow && until_pause == 0 {
            thread::sleep(SLOW_PAUSE);
            until_pause = SLOW_BYTES;
        }
    }
    Ok(Seen { head, body, is_short: false, asked })
}
