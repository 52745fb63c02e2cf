//! A worker's state for deferred requests.

use std::cell::Cell;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use shearwater_http1::{Head, HeadLimits};
use shearwater_io::{Token, Waker};
use shearwater_tasks::{Options, TaskId, Tasks};

use crate::deferred::call::Call;
use crate::deferred::clock::Clock;
use crate::deferred::shared::Shared;
use crate::exchange::id::ExchangeId;
use crate::limits::{PEERS_KEPT_MAX, SPARE_BUFFER_BYTES_MAX, SPARE_CALLS_MAX};
use crate::request::{DriverView, Request};
use crate::response::draft::ResponseDraft;
use crate::server::panics;
use crate::server::reports::named;
use crate::server::watchdog::Beat;

/// A request that was deferred.
pub(crate) struct Deferred {
    pub(crate) shared: Rc<Shared>,
    pub(crate) task: TaskId,
    /// The future was already polled with the waker of this task.
    pub(crate) is_polled: bool,
    /// Fields and settings that the deferring response got afterwards.
    pub(crate) added: Option<Box<ResponseDraft>>,
}

/// A handler's decision to respond later.
pub(crate) enum Deferral {
    Deferred(Deferred),
    /// Too many requests are deferred already.
    Full,
}

/// Tasks and timers of a worker, and spare memory for the next calls.
pub(crate) struct Calls {
    /// Decision of the handler that is being called; taken as soon as that returns.
    pub(crate) deferral: Option<Deferral>,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Rc<Clock>,
    limits: HeadLimits,
    pub(crate) peers: Peers,
    spare: Vec<Rc<Shared>>,
    // Boxed as in the calls.
    #[expect(clippy::vec_box, reason = "parts move between here and a call without being copied")]
    spare_drafts: Vec<Box<ResponseDraft>>,
    /// Memory of all exchanges, in bytes.
    held: Rc<Cell<usize>>,
    beat: Arc<Beat>,
    /// Method and path of the request whose handler has blocked the worker in this turn.
    pub(crate) blocked_by: Option<String>,
}

impl Calls {
    pub(crate) fn new(options: Options, limits: HeadLimits, waker: Waker, beat: Arc<Beat>) -> Self {
        Self {
            deferral: None,
            tasks: Tasks::new(options, move || waker.wake()),
            clock: Rc::default(),
            limits,
            peers: Peers::default(),
            spare: Vec::new(),
            spare_drafts: Vec::new(),
            held: Rc::default(),
            beat,
            blocked_by: None,
        }
    }

    /// Names the request whose handler has just run, if the watchdog has found the worker blocked meanwhile.
    #[inline(always)]
    pub(crate) fn note_block(&mut self, head: &Head<'_>) {
        if self.is_blocked() {
            self.name_block(head);
        }
    }

    /// Returns true if the watchdog has found the worker blocked, and nothing was named for it.
    #[inline(always)]
    pub(crate) fn is_blocked(&self) -> bool {
        self.beat.is_blocked()
    }

    #[cold]
    pub(crate) fn name_block(&mut self, head: &Head<'_>) {
        self.blocked_by = self.beat.take_block().then(|| named(head));
    }

    /// Creates a call of a request, which continues `response`, and spawns the future that completes it. `None` if too
    /// many are deferred.
    pub(crate) fn begin<F: Future<Output = ()> + 'static>(
        &mut self,
        request: &Request<'_>,
        response: &mut ResponseDraft,
        is_polled: bool,
        make: impl FnOnce(Call) -> F,
    ) -> Option<Deferred> {
        let peer = self.peer_of(request);
        let new = || Shared::new(self.limits, Rc::clone(&self.held), Rc::clone(&self.clock));
        let mut shared = self.spare.pop().unwrap_or_else(|| Rc::new(new()));
        let mut draft = self.spare_draft();
        if !response.is_new() {
            std::mem::swap(&mut *draft, response);
            // It may have had a large response before.
            draft.shrink_to(SPARE_BUFFER_BYTES_MAX);
        }
        let spare = Rc::get_mut(&mut shared).expect("a spare one has one owner");
        spare.open(request, peer, size_of::<F>() + draft.capacity());
        let call = Call::new(Rc::clone(&shared), draft);
        match self.tasks.spawn(ExchangeId::NONE.0, make(call)) {
            Ok(task) => Some(Deferred { shared, task, is_polled, added: None }),
            Err(future) => {
                drop(future);
                if let Some(mut draft) = shared.take_draft() {
                    std::mem::swap(&mut *draft, response);
                    self.recycle_draft(draft);
                }
                self.recycle(shared);
                None
            }
        }
    }

    /// Returns the client's address of a request.
    pub(crate) fn peer_of(&mut self, request: &Request<'_>) -> Option<SocketAddr> {
        self.peers.of(request.token(), request.driver())
    }

    /// Returns a draft for a response; [`recycle_draft`](Self::recycle_draft) takes it back.
    pub(crate) fn spare_draft(&mut self) -> Box<ResponseDraft> {
        self.spare_drafts.pop().unwrap_or_default()
    }

    /// Ends a call without a response: drops its future, unless that has already dropped its call.
    pub(crate) fn abandon(&mut self, shared: Rc<Shared>, task: TaskId) {
        if !shared.is_over() {
            self.cancel(task);
        }
        if let Some(task) = shared.coder_task() {
            self.cancel(task);
        }
        if let Some(draft) = shared.take_draft() {
            self.recycle_draft(draft);
        }
        self.recycle(shared);
    }

    /// Drops a future that was never polled. Returns the response as far as it was built.
    pub(crate) fn withdraw(&mut self, deferred: Deferred) -> Option<Box<ResponseDraft>> {
        self.cancel(deferred.task);
        let draft = deferred.shared.take_draft();
        self.recycle(deferred.shared);
        draft
    }

    fn cancel(&mut self, task: TaskId) {
        let tasks = &mut self.tasks;
        // A future that panics when it is dropped has no response left to fail; the panic hook has
        // reported it.
        let _ = panics::catch(|| tasks.cancel(task));
    }

    /// Recycles the memory of a call, unless the program still holds it.
    pub(crate) fn recycle(&mut self, mut shared: Rc<Shared>) {
        if let Some(only) = Rc::get_mut(&mut shared) {
            only.close();
            if self.spare.len() < SPARE_CALLS_MAX {
                self.spare.push(shared);
            }
        } else {
            shared.leave();
        }
    }

    /// Frees the spare memory.
    pub(crate) fn free_spare(&mut self) {
        self.spare = Vec::new();
        self.spare_drafts = Vec::new();
        self.peers.clear();
        self.tasks.forget_spare();
    }

    /// Takes what a response got after it was deferred.
    pub(crate) fn take_additions(&mut self, draft: &mut ResponseDraft) -> Option<Box<ResponseDraft>> {
        if draft.is_new() {
            return None;
        }
        let mut added = self.spare_draft();
        std::mem::swap(draft, &mut *added);
        added.shrink_to(SPARE_BUFFER_BYTES_MAX);
        Some(added)
    }

    pub(crate) fn recycle_draft(&mut self, mut draft: Box<ResponseDraft>) {
        if self.spare_drafts.len() < SPARE_CALLS_MAX {
            draft.clear();
            draft.shrink_to(SPARE_BUFFER_BYTES_MAX);
            self.spare_drafts.push(draft);
        }
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self::new(Options::default(), HeadLimits::default(), Waker::new(|| ()), Arc::default())
    }

    /// Returns the counter of the bytes that calls hold for clients.
    pub(crate) fn held_bytes(&self) -> Rc<Cell<usize>> {
        Rc::clone(&self.held)
    }
}

/// Addresses by slot; slots that are `PEERS_KEPT_MAX` apart share an entry.
#[derive(Default)]
pub(crate) struct Peers {
    known: Vec<Option<(Token, Option<SocketAddr>)>>,
}

impl Peers {
    /// Returns the client's address of a connection.
    pub(crate) fn of(&mut self, token: Token, driver: &dyn DriverView) -> Option<SocketAddr> {
        let place = token.slot() % PEERS_KEPT_MAX;
        if place >= self.known.len() {
            self.known.resize(place + 1, None);
        }
        match self.known[place] {
            Some((known, peer)) if known == token => peer,
            _ => {
                let peer = driver.peer_of(token);
                self.known[place] = Some((token, peer));
                peer
            }
        }
    }

    /// Frees the cache.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod calls_tests {
    use std::rc::Rc;

    use super::{Calls, HeadLimits};
    use crate::deferred::shared::Shared;
    use crate::limits::SPARE_CALLS_MAX;

    #[test]
    fn keeps_a_bounded_number_of_spare_calls() {
        let mut calls = Calls::for_tests();
        for _ in 0..3 * SPARE_CALLS_MAX {
            let held = calls.held_bytes();
            calls.recycle(Rc::new(Shared::new(HeadLimits::default(), held, Rc::default())));
            calls.recycle_draft(Box::default());
        }
        assert_eq!((calls.spare.len(), calls.spare_drafts.len()), (SPARE_CALLS_MAX, SPARE_CALLS_MAX));
        let one = Rc::new(Shared::new(HeadLimits::default(), calls.held_bytes(), Rc::default()));
        calls.spare.clear();
        calls.recycle(Rc::clone(&one));
        assert!(calls.spare.is_empty(), "still in use");
    }
}

#[cfg(test)]
mod peers_tests {
    use std::cell::Cell;
    use std::net::SocketAddr;

    use super::{DriverView, PEERS_KEPT_MAX, Peers, Token};

    /// A driver that counts queries.
    #[derive(Default)]
    struct System {
        asked: Cell<usize>,
    }

    impl DriverView for System {
        fn peer_of(&self, token: Token) -> Option<SocketAddr> {
            self.asked.set(self.asked.get() + 1);
            let port = (token.slot() + token.generation() as usize) as u16;
            (port != 7).then(|| SocketAddr::from(([127, 0, 0, 1], port)))
        }

        fn unix_now(&self) -> u64 {
            0
        }

        fn ms_now(&self) -> u64 {
            0
        }
    }

    #[test]
    fn remembers_a_bounded_number_of_addresses() {
        let system = System::default();
        let mut peers = Peers::default();
        let mut ask = |slot: usize, generation| {
            let token = Token::new(slot as u32, generation);
            assert_eq!(peers.of(token, &System::default()), system.peer_of(token), "{token:?}");
            peers.known.len()
        };
        for slot in (0..10 * PEERS_KEPT_MAX).chain(0..10) {
            assert!(ask(slot, 0) <= PEERS_KEPT_MAX);
            ask(slot, 1);
        }
    }

    #[test]
    fn queries_each_address_once_if_all_fit() {
        let system = System::default();
        let mut peers = Peers::default();
        for _ in 0..3 {
            for slot in 0..PEERS_KEPT_MAX as u32 {
                peers.of(Token::new(slot, 0), &system);
            }
        }
        assert_eq!(system.asked.get(), PEERS_KEPT_MAX);
        peers.of(Token::new(0, 1), &system);
        assert_eq!(system.asked.get(), PEERS_KEPT_MAX + 1, "another connection in the slot");
        peers.clear();
        assert_eq!(peers.known.capacity(), 0);
    }
}
