//! Exchanges whose sends count as done until the driver reports otherwise in a later turn (clause S7).

use shearwater_io::Token;

use super::{Exchanges, NOBODY};
use crate::limits::{SPARE_EXCHANGE_BYTES_MAX, SPARE_EXCHANGES_MAX};
use crate::observe::record::{Group, NEVER, Progress, Record};

/// Memory that stays for the next turn in each list, in bytes.
const KEPT_BYTES: usize = SPARE_EXCHANGES_MAX * SPARE_EXCHANGE_BYTES_MAX;

impl Exchanges {
    /// Keeps exchanges of a connection until the results of the sends so far are known.
    pub(super) fn keep_unsettled(&mut self, token: Token, group: &mut Group, now_us: u64) {
        let is_full = self.is_full(group);
        let Some(slot) = self.slots.get_mut(token.slot()).filter(|_| !is_full) else {
            return self.drop_as_unknown(token, group);
        };
        slot.is_unsettled |= !group.records.is_empty();
        for record in &mut group.records {
            record.ended_us = now_us;
            self.unsettled_tokens.push(token);
        }
        self.unsettled.append(group);
    }

    /// Like [`Self::keep_unsettled`] for a connection's exchanges that began in earlier sends.
    pub(super) fn count_as_sent(&mut self, token: Token, now_us: u64) {
        let Some(index) = self.group_of(token) else { return };
        // The end of a piece is awaited.
        if self.groups[index].records.last().is_some_and(|record| record.progress == Progress::Open) {
            return self.sent(token, now_us);
        }
        let mut group = std::mem::take(&mut self.groups[index]);
        self.keep_unsettled(token, &mut group, now_us);
        self.put_back(token, index, group);
    }

    /// A send that counted as done is in flight, before one that is in flight already.
    pub(crate) fn unsent(&mut self, token: Token) {
        match self.slots.get_mut(token.slot()) {
            Some(slot) if slot.is_unsettled => slot.is_unsettled = false,
            _ => return,
        }
        let mut own = Group::default();
        for (at, of) in self.unsettled_tokens.iter_mut().enumerate().filter(|(_, of)| **of == token) {
            own.append(&mut self.unsettled.copy_of(at));
            *of = NOBODY;
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
        if self.unsettled_tokens.is_empty() {
            return;
        }
        let (mut group, mut tokens) =
            (std::mem::take(&mut self.unsettled), std::mem::take(&mut self.unsettled_tokens));
        group.records.iter_mut().for_each(Record::settle);
        for (token, record) in tokens.iter().zip(&group.records).filter(|(token, _)| **token != NOBODY) {
            if let Some(slot) = self.slots.get_mut(token.slot()) {
                slot.is_unsettled = false;
            }
            self.deliver(*token, &group, record, None, record.ended_us);
        }
        group.clear(KEPT_BYTES);
        tokens.clear();
        tokens.shrink_to(KEPT_BYTES / size_of::<Token>());
        (self.unsettled, self.unsettled_tokens) = (group, tokens);
    }
}
