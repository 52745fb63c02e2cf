//! Room in full buffers: a connection that holds most gives its memory up, so that one that holds less goes on.

use shearwater_io::{CloseKind, Driver, Token};

use crate::app::App;
use crate::conn::{Flag, Phase};
use crate::holders::Class;
use crate::refuse::Refusal;
use crate::respond::After;
use crate::service::Service;
use crate::worker::Worker;

/// How a connection learns that it was evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// By a `503`.
    Refused,
    /// Its response has begun: that ends short.
    CutOff,
    /// It sends on while an earlier response is on its way, so it can't be answered: by a reset.
    Reset,
}

impl<A: App> Service<A> {
    /// Makes room, if the buffers are full, for a connection that holds memory: at the cost of one that holds more. False where none does:
    /// then it is the one to be refused.
    #[inline]
    pub(crate) fn make_room(&mut self, token: Token) -> bool {
        !self.blocks.is_full() || self.make_room_for(token, 0)
    }

    /// The same for one that holds so many bytes beside its block. What is evicted frees as much at least: one is enough.
    #[cold]
    pub(crate) fn make_room_for(&mut self, token: Token, more: usize) -> bool {
        if self.blocks.reclaim() {
            return true;
        }
        let own = Class::of(self.blocks.held_by(self.table.get(token).block) + more);
        match self.blocks.largest() {
            Some((largest, class)) if class > own && largest != token => self.evict(largest),
            _ => return false,
        }
        self.blocks.reclaim()
    }

    /// Takes a connection's memory at once. What it is told has to wait for the end of the turn: another connection's output is being
    /// gathered.
    fn evict(&mut self, token: Token) {
        let has_begun = self.give_up_call(token);
        let conn = self.table.get(token);
        let eviction = match conn.has(Flag::Sending) {
            _ if has_begun => Eviction::CutOff,
            true => Eviction::Reset,
            false => Eviction::Refused,
        };
        // Nothing more is read from it.
        conn.phase = Phase::Last;
        self.blocks.release(&mut conn.block);
        if eviction != Eviction::Refused {
            self.counters.hit_buffered_bytes.add(1);
        }
        if eviction == Eviction::CutOff {
            self.set_after(token, After::Close);
        }
        self.evicted.push((token, eviction));
    }
}

impl<D: Driver, A: App> Worker<D, A> {
    /// Tells the connections that were evicted in this turn.
    #[inline]
    pub(crate) fn end_evicted(&mut self) {
        if !self.service.evicted.is_empty() {
            self.tell_evicted();
        }
    }

    fn tell_evicted(&mut self) {
        // At most one for each event of the turn.
        for (token, eviction) in std::mem::take(&mut self.service.evicted) {
            let is_open = self.service.table.find(token).is_some_and(|conn| conn.phase == Phase::Last);
            match eviction {
                _ if !is_open => {}
                Eviction::Reset => self.shut(token, CloseKind::Reset),
                Eviction::CutOff => self.flush(token),
                Eviction::Refused => {
                    self.service.refuse(token, Refusal::BuffersFull);
                    self.flush(token);
                }
            }
        }
    }
}
