//! A worker's ledger of exchanges: each has one record, from its response or abort until all that was sent of it is known.
//!
//! A request is described once, when the head of its response is encoded, or when it is evicted or aborted without one.
//! The record then gathers the output of its response, and is reported when the send of that has ended:
//!
//! | event | operation |
//! |---|---|
//! | a request has begun, a part of its body has arrived | `begin`, `receive_body` |
//! | the head of a response is encoded; more of it; its end | `respond`; `extend` |
//! | the output of an event is sent, counts as sent, or is in flight | `flushed` |
//! | a send in flight has succeeded | `sent` |
//! | a send that counts as done (clause S7) isn't; all others of earlier turns are | `unsent`; `settle` |
//! | a connection is evicted; closed | `set_aside`; `abort` |

use std::net::{IpAddr, SocketAddr};

use shearwater_http1::KnownField;
use shearwater_io::secure::Version;
use shearwater_io::{Output, SlotArray, Token};

use crate::limits::{EXCHANGE_BYTES_MAX, EXCHANGE_FIELDS_MAX, SPARE_EXCHANGE_BYTES_MAX, SPARE_EXCHANGES_MAX};
use crate::memory::NONE;
use crate::observe::finished::{ExchangeListener, FinishedExchange, Listen};
use crate::observe::record::ExchangeEnd;
use crate::observe::record::{Group, NEVER, Progress, Received, WantedField};
use crate::proxies::Proxies;
use crate::response::responder::Responder;
use crate::server::panics;

/// No connection.
const NOBODY: Token = Token::new(NONE, NONE);

/// Memory that stays for unsettled records, in bytes of each list.
const UNSETTLED_BYTES_KEPT: usize = SPARE_EXCHANGES_MAX * SPARE_EXCHANGE_BYTES_MAX;

/// State of a connection.
pub(super) struct SlotState {
    /// Begin of its unfinished request.
    pub(super) begun_us: u64,
    pub(super) body_received: u64,
    /// Index of its group, else `NONE`.
    group: u32,
    port: u16,
    /// [`UNSETTLED`], and the [version of TLS](SlotState::tls).
    pub(super) marks: u8,
    address: Option<IpAddr>,
}

const _: () = assert!(size_of::<SlotState>() <= 40);

/// Mark: some of the connection's records are in `unsettled`.
const UNSETTLED: u8 = 1;
/// Mark: its responses are sent in pieces, with those of other streams between them.
pub(super) const MULTIPLEXED: u8 = 8;
/// Marks of the versions of TLS.
const TLS: [(u8, Version); 2] = [(2, Version::Tls12), (4, Version::Tls13)];

impl SlotState {
    /// Returns the version of TLS, of a connection with it.
    fn tls(&self) -> Option<Version> {
        TLS.iter().find(|(mark, _)| self.marks & mark != 0).map(|(_, version)| *version)
    }
}

impl Default for SlotState {
    fn default() -> Self {
        Self { begun_us: NEVER, body_received: 0, group: NONE, port: 0, marks: 0, address: None }
    }
}

/// State of an output that the driver got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendState {
    InFlight,
    /// Counts as sent, unless the driver reports otherwise in the next turn.
    Silent,
    Sent,
}

/// The ledger of a worker with listeners.
pub(crate) struct Ledger {
    listeners: Vec<Listen>,
    pub(super) wanted: Vec<WantedField>,
    /// There are trusted proxies: each request has the address of its client after its fields.
    has_clients: bool,
    /// Records of the responses in the output of the present event: of one connection.
    pub(super) current: Group,
    /// End of the last counted response in the output.
    mark: u64,
    pub(super) slots: SlotArray<SlotState>,
    /// Records that wait for their response, its rest or its send, a group for each connection.
    groups: Vec<Group>,
    free: Vec<u32>,
    /// Records whose sends count as done, in order.
    unsettled: Group,
    held_bytes: usize,
    /// Exchanges that ended as unknown since the start.
    pub(crate) dropped: u64,
    pub(super) turn_us: u64,
    unix_seconds: u64,
}

impl Ledger {
    /// Creates the worker's listeners; returns `None` if there are none.
    pub(crate) fn new(listeners: &[ExchangeListener], worker: usize, has_clients: bool) -> Option<Box<Self>> {
        if listeners.is_empty() {
            return None;
        }
        let mut wanted: Vec<WantedField> = Vec::new();
        for name in listeners.iter().flat_map(|listener| listener.fields.iter()) {
            if wanted.len() < EXCHANGE_FIELDS_MAX && wanted.iter().all(|(other, _)| other != name) {
                wanted.push((name.clone(), KnownField::from_name(name.as_bytes())));
            }
        }
        Some(Box::new(Self {
            listeners: listeners.iter().map(|listener| (listener.make)(worker)).collect(),
            wanted,
            has_clients,
            current: Group::default(),
            mark: 0,
            slots: SlotArray::new(),
            groups: Vec::new(),
            free: Vec::new(),
            unsettled: Group::default(),
            held_bytes: 0,
            dropped: 0,
            turn_us: 0,
            unix_seconds: 0,
        }))
    }

    pub(crate) fn begin_turn(&mut self, now_us: u64, unix_seconds: u64) {
        (self.turn_us, self.unix_seconds) = (now_us, unix_seconds);
    }

    /// Stores the address of an accepted connection: after a reset the system no longer has it.
    pub(crate) fn open(&mut self, token: Token, peer: Option<SocketAddr>) {
        self.slots.grow_to(token.slot());
        let (address, port) = (peer.map(|peer| peer.ip()), peer.map_or(0, |peer| peer.port()));
        self.slots[token.slot()] = SlotState { address, port, ..SlotState::default() };
    }

    /// Stores the version of a connection's TLS.
    pub(crate) fn secure(&mut self, token: Token, version: Version) {
        if let Some(slot) = self.slots.get_mut(token.slot()) {
            slot.marks |= TLS.iter().find(|(_, other)| *other == version).map_or(0, |(mark, _)| *mark);
        }
    }

    /// Returns the number of connections with an exchange that waits for the rest of its response, or its send.
    pub(crate) fn connections(&self) -> usize {
        self.groups.len() - self.free.len()
    }

    /// Frees the spare memory, and the state of slots from `slots` on.
    pub(crate) fn trim(&mut self, slots: usize) {
        self.slots.truncate(slots);
        if self.free.len() == self.groups.len() {
            (self.groups, self.free) = (Vec::new(), Vec::new());
        }
        for group in [&mut self.current, &mut self.unsettled] {
            if group.records.is_empty() {
                *group = Group::default();
            }
        }
    }
}

/// Requests and responses.
impl Ledger {
    /// A connection has an unfinished request.
    pub(crate) fn begin(&mut self, token: Token) {
        if let Some(slot) = self.slots.get_mut(token.slot()) {
            slot.begun_us = slot.begun_us.min(self.turn_us);
        }
    }

    /// Stores the bytes received of the unfinished request's body.
    pub(crate) fn receive_body(&mut self, token: Token, bytes: u64) {
        if let Some(slot) = self.slots.get_mut(token.slot()) {
            slot.body_received = bytes;
        }
    }

    /// Takes the begin of a connection's request, and the bytes received of its body.
    pub(super) fn take_request(&mut self, token: Token) -> (u64, u64) {
        let Some(slot) = self.slots.get_mut(token.slot()) else { return (self.turn_us, 0) };
        let begun_us = std::mem::replace(&mut slot.begun_us, NEVER).min(self.turn_us);
        (begun_us, std::mem::take(&mut slot.body_received))
    }

    /// Describes a request, and counts its response that was just encoded. Without a description the request is the one
    /// that was [set aside](Self::set_aside).
    #[inline]
    pub(crate) fn respond(
        &mut self,
        token: Token,
        received: Option<Received<'_>>,
        status: u16,
        progress: Progress,
        responder: &Responder,
        proxies: Option<&Proxies>,
    ) {
        let group = if received.is_none() { self.group_of(token) } else { None };
        let last = group.and_then(|index| self.groups[index].records.last_mut());
        let record = match last.filter(|last| last.status == 0) {
            Some(record) => record,
            None => {
                let (begun_us, body_received) = self.take_request(token);
                let received = received.unwrap_or(Received::Line(b""));
                let record = self.current.describe(token, &received, &self.wanted, proxies);
                (record.begun_us, record.body_received) = (begun_us, body_received);
                record
            }
        };
        let end = responder.out.len();
        record.head_bytes = responder.head_bytes as u32;
        record.queued = end - responder.begun_at;
        (record.status, record.tag, record.progress) = (status, responder.tag(), progress);
        self.mark = end;
    }

    /// Describes a request whose response waits for the end of the turn, or never comes.
    pub(crate) fn set_aside(&mut self, token: Token, received: &Received<'_>, proxies: Option<&Proxies>) {
        let (begun_us, body_received) = self.take_request(token);
        let mut own = Group::default();
        let record = own.describe(token, received, &self.wanted, proxies);
        (record.begun_us, record.body_received) = (begun_us, body_received);
        self.keep(token, &mut own);
    }

    /// Counts the bytes at the end of `out` to the response that has begun. With an `end`, no more of it follows.
    pub(crate) fn extend(&mut self, token: Token, out: &Output, end: Option<ExchangeEnd>) {
        let more = out.len().saturating_sub(self.mark);
        self.mark = out.len();
        let body_received = end.map_or(0, |_| self.take_request(token).1);
        let is_current = self.current.records.last().is_some_and(|last| last.token == token);
        let group = match self.group_of(token) {
            _ if is_current => &mut self.current,
            Some(index) => &mut self.groups[index],
            None => return,
        };
        let Some(record) = group.records.last_mut().filter(|last| last.is_open() && last.status > 0) else {
            return;
        };
        record.queued += more;
        if let Some(end) = end {
            record.progress = Progress::Whole(end);
            record.body_received = record.body_received.max(body_received);
        }
    }
}

/// Sends.
impl Ledger {
    /// The driver has got the output of a connection's event.
    pub(crate) fn flushed(&mut self, token: Token, now_us: u64, state: SendState) {
        self.mark = 0;
        let mut current = std::mem::take(&mut self.current);
        current.records.iter_mut().for_each(|record| record.begin_send(now_us));
        let waits = state == SendState::InFlight || current.is_open();
        if waits || self.group_of(token).is_some() {
            self.keep(token, &mut current);
            if let Some(index) = self.group_of(token) {
                // The response to a request that was set aside.
                self.groups[index].records.iter_mut().for_each(|record| record.begin_send(now_us));
            }
            if state != SendState::InFlight {
                self.sent(token, now_us, state);
            }
        } else if state == SendState::Silent {
            self.keep_unsettled(token, &mut current, now_us);
        } else {
            self.deliver(&mut current, now_us);
        }
        current.clear(SPARE_EXCHANGE_BYTES_MAX);
        self.current = current;
    }

    /// The connection's send has ended, and all of it was sent, or counts as such.
    pub(crate) fn sent(&mut self, token: Token, now_us: u64, state: SendState) {
        let Some(index) = self.group_of(token) else { return };
        let mut group = std::mem::take(&mut self.groups[index]);
        // The end of a piece is awaited.
        if state == SendState::Silent && !group.is_open() {
            self.keep_unsettled(token, &mut group, now_us);
        } else {
            self.deliver(&mut group, now_us);
            group.drop_ended();
        }
        self.put_back(token, index, group);
    }

    /// Keeps records of a connection until the results of the sends so far are known.
    fn keep_unsettled(&mut self, token: Token, group: &mut Group, now_us: u64) {
        let is_full = self.is_full(group);
        let Some(slot) = self.slots.get_mut(token.slot()).filter(|_| !is_full) else {
            return self.drop_as_unknown(group);
        };
        slot.marks |= if group.records.is_empty() { 0 } else { UNSETTLED };
        group.records.iter_mut().for_each(|record| record.ended_us = now_us);
        self.unsettled.append(group);
    }

    /// A send that counted as done is in flight, before one that is in flight already.
    pub(crate) fn unsent(&mut self, token: Token) {
        match self.slots.get_mut(token.slot()) {
            Some(slot) if slot.marks & UNSETTLED != 0 => slot.marks &= !UNSETTLED,
            _ => return,
        }
        let mut own = Group::default();
        for at in 0..self.unsettled.records.len() {
            if self.unsettled.records[at].token == token {
                own.append(&mut self.unsettled.copy_of(at));
                self.unsettled.records[at].token = NOBODY;
            }
        }
        for record in own.records.iter_mut().filter(|record| record.queued > 0) {
            record.ended_us = NEVER;
        }
        if let Some(index) = self.group_of(token) {
            own.append(&mut self.groups[index]);
        }
        self.keep(token, &mut own);
    }

    /// All sends that counted as done are, but for those [taken out](Self::unsent).
    pub(crate) fn settle(&mut self) {
        if self.unsettled.records.is_empty() {
            return;
        }
        let mut group = std::mem::take(&mut self.unsettled);
        group.records.retain(|record| record.token != NOBODY);
        for record in &group.records {
            if let Some(slot) = self.slots.get_mut(record.token.slot()) {
                slot.marks &= !UNSETTLED;
            }
        }
        self.deliver(&mut group, NEVER);
        group.clear(UNSETTLED_BYTES_KEPT);
        self.unsettled = group;
    }

    /// Ends all exchanges of a connection that is closed after so many bytes of the send in flight.
    pub(crate) fn abort(&mut self, token: Token, bytes: u64, end: ExchangeEnd, now_us: u64) {
        let Some(index) = self.group_of(token) else { return };
        let mut group = std::mem::take(&mut self.groups[index]);
        // Other streams' bytes lie between those of a record.
        let mut left = if self.slots[token.slot()].marks & MULTIPLEXED == 0 { bytes } else { 0 };
        group.records.iter_mut().for_each(|record| record.settle_part(&mut left, end));
        // Those before them are reported first.
        if self.slots[token.slot()].marks & UNSETTLED != 0 {
            self.keep_unsettled(token, &mut group, now_us);
        } else {
            self.deliver(&mut group, now_us);
        }
        group.records.clear();
        self.put_back(token, index, group);
    }
}

/// Reports.
impl Ledger {
    /// Reports the exchanges of a group that have ended: at `now_us`, or before.
    fn deliver(&mut self, group: &mut Group, now_us: u64) {
        group.records.iter_mut().for_each(|record| record.settle(now_us));
        let Self { listeners, wanted, slots, has_clients, unix_seconds, .. } = self;
        let (has_clients, unix_seconds) = (*has_clients, *unix_seconds);
        for record in group.records.iter().filter(|record| !record.is_open()) {
            let slot = slots.get(record.token.slot());
            let peer = slot.and_then(|slot| Some(SocketAddr::new(slot.address?, slot.port)));
            let tls = slot.and_then(SlotState::tls);
            let finished = FinishedExchange { record, group, wanted, peer, tls, has_clients, unix_seconds };
            for listen in &mut *listeners {
                // The panic hook has reported it; nothing else depends on the listener.
                let _ = panics::catch(|| listen(&finished));
            }
        }
    }

    /// Ends exchanges that can't be kept.
    fn drop_as_unknown(&mut self, group: &mut Group) {
        group.records.iter_mut().for_each(|record| record.progress = Progress::Whole(ExchangeEnd::Unknown));
        self.deliver(group, self.turn_us);
        self.dropped += group.records.len() as u64;
        group.clear(SPARE_EXCHANGE_BYTES_MAX);
    }
}

/// Groups.
impl Ledger {
    fn group_of(&self, token: Token) -> Option<usize> {
        let group = self.slots.get(token.slot())?.group;
        (group != NONE).then_some(group as usize)
    }

    /// Keeps records of a connection until their send ends. Those beyond the bound end here.
    pub(super) fn keep(&mut self, token: Token, group: &mut Group) {
        if group.records.is_empty() {
            return;
        }
        if self.is_full(group) || self.slots.get(token.slot()).is_none() {
            return self.drop_as_unknown(group);
        }
        let index = self.group_of(token).unwrap_or_else(|| {
            let index = self.free.pop().unwrap_or_else(|| {
                self.groups.push(Group::default());
                self.groups.len() as u32 - 1
            });
            self.slots[token.slot()].group = index;
            index as usize
        });
        let own = &mut self.groups[index];
        own.append(group);
        let counted = own.capacity();
        let before = std::mem::replace(&mut own.counted, counted);
        self.held_bytes = self.held_bytes + counted - before;
    }

    fn is_full(&self, group: &Group) -> bool {
        self.held_bytes + self.unsettled.len_bytes() + group.len_bytes() > EXCHANGE_BYTES_MAX
    }

    /// Puts a group back, or frees it if it is empty.
    fn put_back(&mut self, token: Token, index: usize, mut group: Group) {
        if !group.records.is_empty() {
            self.groups[index] = group;
            return;
        }
        self.held_bytes -= std::mem::take(&mut group.counted);
        let keeps = self.free.len() < SPARE_EXCHANGES_MAX;
        group.clear(if keeps { SPARE_EXCHANGE_BYTES_MAX } else { 0 });
        self.groups[index] = group;
        self.free.push(index as u32);
        self.slots[token.slot()].group = NONE;
    }
}

#[cfg(test)]
mod tests {
    use shearwater_io::{Output, Token};

    use super::{Ledger, Progress, Received, SendState};
    use crate::limits::{SPARE_EXCHANGE_BYTES_MAX, SPARE_EXCHANGES_MAX};
    use crate::observe::finished::{ExchangeListener, FinishedExchange};
    use crate::observe::record::ExchangeEnd;
    use crate::response::responder::Responder;

    #[test]
    fn keeps_a_bounded_number_of_spare_groups_and_little_memory_in_each() {
        let listener = ExchangeListener::new(&[], |_| |_: &FinishedExchange<'_>| {});
        let mut ledger = Ledger::new(&[listener], 0, false).expect("there is a listener");
        let tokens = (0..3 * SPARE_EXCHANGES_MAX as u32).map(|slot| Token::new(slot, 0));
        for token in tokens.clone() {
            ledger.open(token, None);
            let line = Some(Received::Line(&[b'x'; 3 * SPARE_EXCHANGE_BYTES_MAX]));
            ledger.respond(token, line, 200, Progress::Open, &Responder::new(0), None);
            ledger.flushed(token, 0, SendState::InFlight);
        }
        assert!(ledger.held_bytes > 0);
        for token in tokens {
            ledger.extend(token, &Output::new(), Some(ExchangeEnd::Complete));
            ledger.sent(token, 0, SendState::Sent);
        }
        assert_eq!(ledger.held_bytes, 0);
        let kept = ledger.groups.iter().filter(|group| group.capacity() > 0).count();
        assert!(kept <= SPARE_EXCHANGES_MAX, "{kept}");
        let bytes = ledger.groups.iter().map(|group| group.capacity()).max();
        assert!(bytes <= Some(2 * SPARE_EXCHANGE_BYTES_MAX), "{bytes:?}");
        ledger.trim(0);
        assert_eq!(ledger.groups.capacity(), 0);
    }
}
