//! Connections that end soon: all of them during a drain, or those of listeners that were removed.
//!
//! A connection of a removed listener ends as in a drain: after the response to the requests that it has sent, or shortly
//! if it is idle. A response that is being sent ends in its own time.

use std::collections::VecDeque;

use shearwater_io::{Listener, ListenerId, SlotArray, Token};

use crate::limits::LISTENERS_REMEMBERED_MAX;

/// The number of a listener that is noted for a connection that ends soon. No listener has this number.
const LEAVES: ListenerId = ListenerId::MAX;

/// Connections that end soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    None,
    /// Those of removed listeners.
    Some,
    /// All: the worker drains.
    All,
}

/// The listener of each connection, and which of them were removed.
#[derive(Debug)]
pub(crate) struct Leaving {
    ending: Ending,
    listeners: SlotArray<ListenerId>,
    /// Listeners that were removed last: connections of theirs may still be handed over.
    removed: VecDeque<ListenerId>,
    /// Number of connections that end soon.
    count: usize,
}

impl Default for Leaving {
    fn default() -> Self {
        Self { ending: Ending::None, listeners: SlotArray::new(), removed: VecDeque::new(), count: 0 }
    }
}

impl Leaving {
    /// Has all connections end soon.
    pub(crate) fn drain(&mut self) {
        self.ending = Ending::All;
    }

    /// Notes the listener of a new connection.
    pub(crate) fn open(&mut self, token: Token, listener: ListenerId) {
        self.listeners.grow_to(token.slot());
        self.listeners[token.slot()] = listener;
        if self.removed.contains(&listener) {
            self.mark(token);
        }
    }

    /// Returns the listener of a connection; `None` if it was removed.
    pub(crate) fn listener_of(&self, token: Token) -> Option<ListenerId> {
        self.listeners.get(token.slot()).copied().filter(|listener| *listener != LEAVES)
    }

    /// Removes a closed connection.
    pub(crate) fn close(&mut self, token: Token) {
        let Some(listener) = self.listeners.get_mut(token.slot()).filter(|listener| **listener == LEAVES)
        else {
            return;
        };
        *listener = 0;
        self.count -= 1;
        if self.count == 0 && self.ending == Ending::Some {
            self.ending = Ending::None;
        }
    }

    /// Returns whether a connection ends soon.
    #[inline]
    pub(crate) fn ends_soon(&self, token: Token) -> bool {
        match self.ending {
            Ending::None => false,
            Ending::Some => self.is_marked(token),
            Ending::All => true,
        }
    }

    /// Returns whether a connection ends soon because its listener was removed.
    pub(crate) fn is_marked(&self, token: Token) -> bool {
        self.listeners.get(token.slot()) == Some(&LEAVES)
    }

    /// Returns whether there are such connections.
    pub(crate) fn has_marked(&self) -> bool {
        self.count > 0
    }

    fn mark(&mut self, token: Token) {
        self.listeners[token.slot()] = LEAVES;
        self.count += 1;
        if self.ending == Ending::None {
            self.ending = Ending::Some;
        }
    }

    /// A new listener has this number.
    pub(crate) fn add(&mut self, listener: ListenerId) {
        self.removed.retain(|removed| *removed != listener);
    }

    /// Has the connections of a listener among these end soon, and new ones of it.
    pub(crate) fn remove(&mut self, listener: ListenerId, connections: &[Token]) {
        for token in connections {
            if self.listeners.get(token.slot()) == Some(&listener) {
                self.mark(*token);
            }
        }
        self.removed.truncate(LISTENERS_REMEMBERED_MAX - 1);
        self.removed.push_front(listener);
    }

    /// Frees the memory of slots from `slots` on.
    pub(crate) fn trim(&mut self, slots: usize) {
        self.listeners.truncate(slots);
    }
}

/// A change of a worker's listeners.
#[derive(Debug)]
pub(crate) enum ListenerChange {
    /// Accepts from one more, or only knows of it: the acceptor hands its connections over.
    Add(ListenerId, Option<Listener>),
    Remove(ListenerId),
}

#[cfg(test)]
mod tests {
    use super::{LEAVES, Leaving, Token};
    use crate::limits::LISTENERS_REMEMBERED_MAX;

    #[test]
    fn marks_the_connections_of_removed_listeners() {
        let mut leaving = Leaving::default();
        let tokens = [0, 1, 2].map(|slot| Token::new(slot, 0));
        for (listener, token) in [4, 5, 4].into_iter().zip(tokens) {
            leaving.open(token, listener);
        }
        assert!(tokens.iter().all(|token| !leaving.ends_soon(*token)));
        leaving.remove(4, &tokens);
        assert_eq!(tokens.map(|token| leaving.ends_soon(token)), [true, false, true]);
        let late = Token::new(3, 0);
        leaving.open(late, 4);
        assert!(leaving.ends_soon(late), "it was accepted before the removal");
        for token in [tokens[0], tokens[2], late] {
            leaving.close(token);
        }
        assert!(!leaving.has_marked() && !leaving.ends_soon(tokens[1]));
        leaving.add(4);
        leaving.open(late, 4);
        assert!(!leaving.ends_soon(late), "a new listener has the number");
    }

    #[test]
    fn remembers_a_bounded_number_of_removed_listeners() {
        let mut leaving = Leaving::default();
        for listener in 0..2 * LISTENERS_REMEMBERED_MAX {
            leaving.remove(u16::try_from(listener).expect("a few"), &[]);
        }
        assert_eq!(leaving.removed.len(), LISTENERS_REMEMBERED_MAX);
        leaving.open(Token::new(0, 0), 0);
        assert_ne!(leaving.listeners[0], LEAVES, "the oldest was dropped");
    }
}
