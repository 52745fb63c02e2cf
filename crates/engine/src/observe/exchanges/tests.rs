//! Bounds of what is kept for unfinished exchanges.

use shearwater_io::{Output, Token};

use super::{Exchanges, Progress};
use crate::limits::{SPARE_EXCHANGE_BYTES_MAX, SPARE_EXCHANGES_MAX};
use crate::observe::finished::{ExchangeListener, FinishedExchange};
use crate::response::responder::Responder;

#[test]
fn keeps_a_bounded_number_of_spare_groups_and_little_memory_in_each() {
    let listener = ExchangeListener::new(&[], |_| |_: &FinishedExchange<'_>| {});
    let mut exchanges = Exchanges::new(&[listener], 0, false).expect("there is a listener");
    let tokens = (0..3 * SPARE_EXCHANGES_MAX as u32).map(|slot| Token::new(slot, 0));
    for token in tokens.clone() {
        exchanges.open(token, None);
        exchanges.describe_line(token, &[b'x'; 3 * SPARE_EXCHANGE_BYTES_MAX], None);
        exchanges.respond(token, 200, &Responder::new(0), Progress::Open);
        exchanges.in_flight(token, 0);
    }
    assert!(exchanges.held_bytes > 0);
    for token in tokens {
        exchanges.complete(token, &Output::new(), crate::ExchangeEnd::Complete);
        exchanges.sent(token, 0);
    }
    assert_eq!(exchanges.held_bytes, 0);
    let kept = exchanges.groups.iter().filter(|group| group.capacity() > 0).count();
    assert!(kept <= SPARE_EXCHANGES_MAX, "{kept}");
    let bytes = exchanges.groups.iter().map(|group| group.capacity()).max();
    assert!(bytes <= Some(2 * SPARE_EXCHANGE_BYTES_MAX), "{bytes:?}");
    exchanges.trim(0);
    assert_eq!(exchanges.groups.capacity(), 0);
}
