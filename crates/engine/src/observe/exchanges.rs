//! A worker's unfinished exchanges: described with their request, counted with their response, ended with its send.

use std::net::{IpAddr, SocketAddr};

use shearwater_http1::{Head, KnownField, Version};
use shearwater_io::{Output, SlotArray, Token};

use crate::connection::NONE;
use crate::limits::{EXCHANGE_BYTES_MAX, EXCHANGE_FIELDS_MAX, SPARE_EXCHANGE_BYTES_MAX, SPARE_EXCHANGES_MAX};
use crate::observe::finished::{ExchangeEnd, ExchangeListener, FinishedExchange, Listen};
use crate::observe::record::{Group, NEVER, Progress, Record};
use crate::proxies::Proxies;
use crate::response::responder::Responder;
use crate::server::panics;

mod unsettled;

/// No connection.
const NOBODY: Token = Token::new(NONE, NONE);

/// State of a connection.
struct SlotState {
    begun_us: u64,
    body_received: u64,
    /// Index of its group, else `NONE`.
    group: u32,
    port: u16,
    /// Some of its exchanges are in `unsettled`.
    is_unsettled: bool,
    address: Option<IpAddr>,
}

const _: () = assert!(size_of::<SlotState>() <= 40);

impl Default for SlotState {
    fn default() -> Self {
        Self { begun_us: NEVER, body_received: 0, group: NONE, port: 0, is_unsettled: false, address: None }
    }
}

/// All exchanges of a worker with listeners.
pub(crate) struct Exchanges {
    listeners: Vec<Listen>,
    /// Fields that listeners asked for.
    names: Vec<Box<str>>,
    known: Vec<Option<KnownField>>,
    /// There are trusted proxies: each request has the address of its client after its fields.
    has_clients: bool,
    /// Exchanges whose responses are in the turn's output: of one connection.
    current: Group,
    /// Connection that `current` belongs to.
    current_token: Token,
    /// Request in `current` without a response.
    draft: Option<(Token, Record)>,
    /// End of the last counted response in the output.
    mark: u64,
    slots: SlotArray<SlotState>,
    /// Exchanges that wait for their response's rest or its send, a group for each connection.
    groups: Vec<Group>,
    free: Vec<u32>,
    /// Exchanges whose sends count as done until the driver reports otherwise, and the connection of each, in order.
    unsettled: Group,
    unsettled_tokens: Vec<Token>,
    held_bytes: usize,
    /// Exchanges that ended as unknown since the start.
    pub(crate) dropped: u64,
    turn_us: u64,
    unix_seconds: u64,
}

impl Exchanges {
    /// Creates the worker's listeners; returns `None` if there are none.
    pub(crate) fn new(listeners: &[ExchangeListener], worker: usize, has_clients: bool) -> Option<Box<Self>> {
        if listeners.is_empty() {
            return None;
        }
        let mut names: Vec<Box<str>> = Vec::new();
        for name in listeners.iter().flat_map(|listener| listener.fields.iter()) {
            if !names.contains(name) && names.len() < EXCHANGE_FIELDS_MAX {
                names.push(name.clone());
            }
        }
        Some(Box::new(Self {
            listeners: listeners.iter().map(|listener| (listener.make)(worker)).collect(),
            known: names.iter().map(|name| KnownField::from_name(name.as_bytes())).collect(),
            names,
            has_clients,
            current: Group::default(),
            current_token: NOBODY,
            draft: None,
            mark: 0,
            slots: SlotArray::new(),
            groups: Vec::new(),
            free: Vec::new(),
            unsettled: Group::default(),
            unsettled_tokens: Vec::new(),
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
        if self.current.records.is_empty() && self.draft.is_none() {
            self.current = Group::default();
        }
        if self.unsettled.records.is_empty() {
            (self.unsettled, self.unsettled_tokens) = (Group::default(), Vec::new());
        }
    }
}

/// Requests.
impl Exchanges {
    /// A part of the connection's next request has arrived.
    pub(crate) fn begin(&mut self, token: Token) {
        let turn_us = self.turn_us;
        if let Some(slot) = self.slots.get_mut(token.slot())
            && slot.begun_us == NEVER
        {
            slot.begun_us = turn_us;
        }
    }

    /// Stores the bytes received of the current request's body.
    pub(crate) fn receive_body(&mut self, token: Token, bytes: u64) {
        if let Some(slot) = self.slots.get_mut(token.slot()) {
            slot.body_received = bytes;
        }
    }

    /// Describes the current request, which has no response yet.
    pub(crate) fn describe(&mut self, token: Token, head: &Head<'_>, proxies: Option<&Proxies>) {
        self.withdraw();
        let Self { current, names, known, .. } = self;
        let target = head.target_str().as_bytes();
        let record = current.describe(head.method_name().as_bytes(), target, Some(head.version()));
        for (name, known) in names.iter().zip(known) {
            match known {
                Some(known) if !head.is_repeated(*known) => current.describe_field(head.field(*known)),
                _ => current.describe_values(head.all_named(name)),
            }
        }
        if let Some(proxies) = proxies {
            current.describe_client(proxies.client(token, head));
        }
        self.draft = Some((token, record));
    }

    /// Describes a request whose head is malformed or incomplete by its first line.
    pub(crate) fn describe_line(&mut self, token: Token, input: &[u8], proxies: Option<&Proxies>) {
        self.withdraw();
        let line = input.strip_prefix(b"\r\n").unwrap_or(input);
        let line = line.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        let mut words = line.splitn(2, |byte| *byte == b' ');
        let (method, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        // An unknown version stays a part of the target.
        let (target, version) = match (rest.strip_suffix(b" HTTP/1.1"), rest.strip_suffix(b" HTTP/1.0")) {
            (Some(target), _) => (target, Some(Version::Http11)),
            (_, Some(target)) => (target, Some(Version::Http10)),
            _ => (rest, None),
        };
        let record = self.current.describe(method, target, version);
        self.names.iter().for_each(|_| self.current.describe_field(None));
        if let Some(proxies) = proxies {
            self.current.describe_client(proxies.address(token));
        }
        self.draft = Some((token, record));
    }

    /// Drops the description of a request whose response is deferred.
    pub(crate) fn withdraw(&mut self) {
        if let Some((_, record)) = self.draft.take() {
            self.current.withdraw(&record);
        }
    }

    /// Returns true if the connection's current request is described or has a response that isn't complete.
    pub(crate) fn is_described(&mut self, token: Token) -> bool {
        self.draft.is_some_and(|(of, _)| of == token) || self.open_record(token).is_some()
    }

    /// Keeps the described request of a connection whose response waits for the end of the turn, or never comes.
    pub(crate) fn park(&mut self, token: Token) {
        if let Some((_, record)) = self.draft.take_if(|(of, _)| *of == token) {
            let record = self.stamped(token, record);
            let mut own = self.current.split_off(record);
            self.keep(token, &mut own);
        }
    }

    /// Makes a parked request the described one again.
    pub(crate) fn unpark(&mut self, token: Token) {
        let Some(group) = self.group_of(token) else { return };
        let is_parked = |record: &mut Record| record.status == 0;
        let Some(record) = self.groups[group].records.pop_if(is_parked) else { return };
        self.withdraw();
        let mut own = self.groups[group].split_off(record);
        let record = own.records.pop().map(|record| self.current.take_over(&mut own, record));
        self.draft = record.map(|record| (token, record));
    }

    /// Takes the begin and the received bytes of a connection's request into its record.
    fn stamped(&mut self, token: Token, record: Record) -> Record {
        if record.begun_us != NEVER {
            return record;
        }
        let Some(slot) = self.slots.get_mut(token.slot()) else {
            return Record { begun_us: self.turn_us, ..record };
        };
        let begun_us = std::mem::replace(&mut slot.begun_us, NEVER);
        let begun_us = if begun_us == NEVER { self.turn_us } else { begun_us };
        Record { begun_us, body_received: std::mem::take(&mut slot.body_received), ..record }
    }
}

/// Responses.
impl Exchanges {
    /// Counts the response that was just encoded, to the request described last.
    pub(crate) fn respond(&mut self, token: Token, status: u16, responder: &Responder, progress: Progress) {
        let record = match self.draft.take_if(|(of, _)| *of == token) {
            Some((_, record)) => record,
            None => {
                self.withdraw();
                let record = self.current.describe(b"", b"", None);
                self.names.iter().for_each(|_| self.current.describe_field(None));
                if self.has_clients {
                    self.current.describe_client(None);
                }
                record
            }
        };
        let end = responder.out.len();
        let record = Record {
            head_bytes: responder.head_bytes as u32,
            queued: end - responder.begun_at,
            status,
            tag: responder.tag(),
            progress,
            ..self.stamped(token, record)
        };
        self.current.records.push(record);
        (self.mark, self.current_token) = (end, token);
    }

    /// Counts the bytes at the end of `out` to the response that has begun.
    pub(crate) fn extend(&mut self, token: Token, out: &Output) {
        let more = out.len().saturating_sub(self.mark);
        self.mark = out.len();
        if let Some(record) = self.open_record(token).filter(|record| record.status > 0) {
            record.queued += more;
        }
    }

    /// Ends the response that has begun: no more of it follows those bytes of `out`.
    pub(crate) fn complete(&mut self, token: Token, out: &Output, end: ExchangeEnd) {
        self.extend(token, out);
        let body_received = self.slots.get_mut(token.slot()).map(|slot| {
            slot.begun_us = NEVER;
            std::mem::take(&mut slot.body_received)
        });
        if let Some(record) = self.open_record(token) {
            record.progress = Progress::Whole(end);
            record.body_received = record.body_received.max(body_received.unwrap_or(0));
        }
    }

    /// Returns the exchange of a connection whose response isn't complete.
    fn open_record(&mut self, token: Token) -> Option<&mut Record> {
        let is_open = |record: &&mut Record| record.progress == Progress::Open;
        if self.current_token == token && !self.current.records.is_empty() {
            return self.current.records.last_mut().filter(is_open);
        }
        let group = self.group_of(token)?;
        self.groups[group].records.last_mut().filter(is_open)
    }
}

/// Sends.
impl Exchanges {
    /// The turn's output of a connection counts as sent: certainly, or unless the driver reports otherwise later.
    pub(crate) fn flushed(&mut self, token: Token, now_us: u64, settles_later: bool) {
        self.mark = 0;
        let has_open = self.current.records.last().is_some_and(|record| record.progress == Progress::Open);
        if has_open || self.group_of(token).is_some() {
            self.in_flight(token, now_us);
            return if settles_later { self.count_as_sent(token, now_us) } else { self.sent(token, now_us) };
        }
        let mut current = std::mem::take(&mut self.current);
        current.records.iter_mut().for_each(|record| record.begin_send(now_us));
        if settles_later {
            self.keep_unsettled(token, &mut current, now_us);
        } else {
            current.records.iter_mut().for_each(Record::settle);
            for record in &current.records {
                self.deliver(token, &current, record, None, now_us);
            }
        }
        current.clear(SPARE_EXCHANGE_BYTES_MAX);
        self.current = current;
    }

    /// A send with the turn's output of a connection is in flight.
    pub(crate) fn in_flight(&mut self, token: Token, now_us: u64) {
        self.mark = 0;
        if self.current.records.is_empty() {
            return;
        }
        let mut current = std::mem::take(&mut self.current);
        current.records.iter_mut().for_each(|record| record.begin_send(now_us));
        self.keep(token, &mut current);
        current.clear(SPARE_EXCHANGE_BYTES_MAX);
        self.current = current;
    }

    /// The connection's send has ended, and all of it was sent.
    pub(crate) fn sent(&mut self, token: Token, now_us: u64) {
        let Some(index) = self.group_of(token) else { return };
        let mut group = std::mem::take(&mut self.groups[index]);
        for record in &mut group.records {
            record.begin_send(now_us);
            record.settle();
        }
        for record in group.records.iter().filter(|record| record.progress != Progress::Open) {
            self.deliver(token, &group, record, None, now_us);
        }
        group.drop_ended();
        self.put_back(token, index, group);
    }

    /// Ends all exchanges of a connection that is closed after so many bytes of the send in flight.
    pub(crate) fn abort(&mut self, token: Token, bytes: u64, end: ExchangeEnd, now_us: u64) {
        self.park(token);
        let Some(index) = self.group_of(token) else { return };
        // Those before them are reported first.
        let is_unsettled = self.slots.get(token.slot()).is_some_and(|slot| slot.is_unsettled);
        let mut group = std::mem::take(&mut self.groups[index]);
        let mut left = bytes;
        for at in 0..group.records.len() {
            let is_whole = group.records[at].settle_part(&mut left);
            let end = Some(end).filter(|_| !is_whole);
            if is_unsettled {
                group.records[at].progress = Progress::Whole(end.unwrap_or(ExchangeEnd::Complete));
            } else {
                self.deliver(token, &group, &group.records[at], end, now_us);
            }
        }
        if is_unsettled {
            self.keep_unsettled(token, &mut group, now_us);
        }
        group.records.clear();
        self.put_back(token, index, group);
    }

    /// Calls the listeners. `end` replaces the end that the record has.
    fn deliver(
        &mut self,
        token: Token,
        group: &Group,
        record: &Record,
        end: Option<ExchangeEnd>,
        ended_us: u64,
    ) {
        let of_record = match record.progress {
            Progress::Whole(end) => end,
            Progress::Open => ExchangeEnd::Unknown,
        };
        let slot = self.slots.get(token.slot());
        let peer = slot.and_then(|slot| Some(SocketAddr::new(slot.address?, slot.port)));
        let Self { listeners, names, has_clients, unix_seconds, .. } = self;
        let client = if *has_clients { group.client(record, names.len()) } else { peer };
        let end = end.unwrap_or(of_record);
        let ended_us = record.ended_us.min(ended_us);
        let unix_seconds = *unix_seconds;
        let finished =
            FinishedExchange { record, group, names, token, peer, client, end, ended_us, unix_seconds };
        for listen in listeners {
            // The panic hook has reported it; nothing else depends on the listener.
            let _ = panics::catch(|| listen(&finished));
        }
    }
}

/// Groups.
impl Exchanges {
    fn group_of(&self, token: Token) -> Option<usize> {
        let group = self.slots.get(token.slot())?.group;
        (group != NONE).then_some(group as usize)
    }

    /// Keeps exchanges of a connection until their send ends. Those beyond the bound end here.
    fn keep(&mut self, token: Token, group: &mut Group) {
        if self.is_full(group) || self.slots.get(token.slot()).is_none() {
            return self.drop_as_unknown(token, group);
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

    /// Ends exchanges that can't be kept.
    fn drop_as_unknown(&mut self, token: Token, group: &mut Group) {
        let now_us = self.turn_us;
        group.records.iter_mut().for_each(Record::settle);
        for record in &group.records {
            self.deliver(token, group, record, Some(ExchangeEnd::Unknown), now_us);
        }
        self.dropped += group.records.len() as u64;
        group.clear(SPARE_EXCHANGE_BYTES_MAX);
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
mod tests;
