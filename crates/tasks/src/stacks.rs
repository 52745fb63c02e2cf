//! A worker's pool of guarded stacks for coroutines.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::task::Waker;

use crate::arena::{Arena, ArenaStack};
use crate::limits::{SPARE_STACKS_MAX, STACK_BYTES, STACK_BYTES_MIN, STACKS_MAX};
use crate::overflow;

/// More than any system has; still a valid size with a guard page.
const STACK_BYTES_MAX: usize = isize::MAX as usize / 2;

/// Options of a worker's stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackOptions {
    /// A stack's size, rounded up to whole pages; at least [`STACK_BYTES_MIN`]. Only used pages take memory.
    /// A guard page is below it.
    pub stack_bytes: usize,
    /// Unused stacks that keep the memory that they have touched. [`Stacks::trim`] returns it.
    pub spare_max: usize,
    /// Stacks in use at the same time; further coroutines wait for one, in order of arrival.
    pub stacks_max: usize,
}

impl Default for StackOptions {
    fn default() -> Self {
        Self { stack_bytes: STACK_BYTES, spare_max: SPARE_STACKS_MAX, stacks_max: STACKS_MAX }
    }
}

/// A worker's stacks.
pub struct Stacks {
    options: StackOptions,
    pool: RefCell<StackPool>,
}

struct StackPool {
    arena: Arena,
    /// Unused stacks with memory.
    spare: Vec<ArenaStack>,
    /// Stacks in use.
    lent: usize,
    /// Coroutines woken to take a stack, each with one reserved.
    woken: usize,
    /// Waiting coroutines, in the order of their tickets.
    waiting: BTreeMap<u64, Waker>,
    tickets: u64,
}

/// A position in the queue for a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

impl Stacks {
    /// Creates the stacks of this thread, and enables reports of their overflows.
    ///
    /// An overflow logs the coroutine's label and the stack's size to standard error before the process
    /// aborts; any other fault goes to the previous handler.
    ///
    /// # Errors
    /// Fails if the system doesn't permit a handler for the signal, or has no memory for the handler's own
    /// stack.
    pub fn new(options: StackOptions) -> io::Result<Rc<Self>> {
        overflow::install()?;
        let options = StackOptions {
            stack_bytes: options.stack_bytes.clamp(STACK_BYTES_MIN, STACK_BYTES_MAX),
            stacks_max: options.stacks_max.max(1),
            ..options
        };
        let pool = StackPool {
            arena: Arena::new(options.stack_bytes, options.stacks_max),
            spare: Vec::new(),
            lent: 0,
            woken: 0,
            waiting: BTreeMap::new(),
            tickets: 0,
        };
        Ok(Rc::new(Self { options, pool: RefCell::new(pool) }))
    }

    /// Returns a stack's size, in bytes.
    pub fn stack_bytes(&self) -> usize {
        self.options.stack_bytes
    }

    /// Returns the number of coroutines with a stack.
    pub fn lent(&self) -> usize {
        self.pool.borrow().lent
    }

    /// Returns the number of coroutines that wait for a stack.
    pub fn waiting(&self) -> usize {
        let pool = self.pool.borrow();
        pool.waiting.len() + pool.woken
    }

    /// Returns the number of spare stacks: unused ones with memory.
    pub fn spare(&self) -> usize {
        self.pool.borrow().spare.len()
    }

    /// Frees the memory of unused stacks. To be called when the worker is idle.
    pub fn trim(&self) {
        let mut pool = self.pool.borrow_mut();
        let wanted = pool.woken;
        pool.keep_spare(wanted);
        pool.arena.trim();
    }

    /// Lends a stack, or queues the waker and returns its ticket, to pass to the next call or to return.
    ///
    /// # Errors
    /// Fails if the system has no memory for a stack and none is in use that could be released. The ticket is
    /// used up then.
    pub(crate) fn lend(
        &self,
        ticket: Option<Ticket>,
        waker: &Waker,
    ) -> io::Result<Result<ArenaStack, Ticket>> {
        let waits = ticket.is_some_and(|ticket| self.pool.borrow().waiting.contains_key(&ticket.0));
        if !waits && let Some(stack) = self.take(ticket.is_some())? {
            return Ok(Ok(stack));
        }
        Ok(Err(self.queue(ticket, waker.clone())))
    }

    /// Takes a stack back and wakes the coroutine that has waited longest.
    pub(crate) fn release(&self, stack: ArenaStack) {
        let mut pool = self.pool.borrow_mut();
        pool.lent -= 1;
        pool.spare.push(stack);
        drop(pool);
        self.wake_next();
    }

    /// Cancels a ticket.
    pub(crate) fn cancel(&self, ticket: Ticket) {
        let waker = self.pool.borrow_mut().waiting.remove(&ticket.0);
        if waker.is_none() {
            self.pool.borrow_mut().woken -= 1;
        }
        self.wake_next();
    }

    /// Returns a stack for a new or woken coroutine; `None` if it must wait.
    fn take(&self, woken: bool) -> io::Result<Option<ArenaStack>> {
        let mut borrowed = self.pool.borrow_mut();
        let pool = &mut *borrowed;
        pool.woken -= usize::from(woken);
        if pool.lent + pool.woken >= self.options.stacks_max {
            return Ok(None);
        }
        match pool.spare.pop().map_or_else(|| pool.arena.take(), Ok) {
            Ok(stack) => {
                pool.lent += 1;
                Ok(Some(stack))
            }
            Err(_) if pool.lent > 0 => Ok(None),
            Err(error) => {
                drop(borrowed);
                self.wake_next(); // nothing else wakes it: it must fail the same way
                Err(error)
            }
        }
    }

    /// Queues a waker at its ticket's position, or at the end.
    fn queue(&self, ticket: Option<Ticket>, waker: Waker) -> Ticket {
        let mut pool = self.pool.borrow_mut();
        let ticket = ticket.unwrap_or(Ticket(pool.tickets));
        pool.tickets = pool.tickets.max(ticket.0 + 1);
        let before = pool.waiting.insert(ticket.0, waker);
        drop(pool);
        drop(before); // not while the pool is borrowed
        ticket
    }

    /// Wakes the coroutine that has waited longest, if a stack may be available, and frees the memory of spare
    /// stacks beyond the bound.
    fn wake_next(&self) {
        let mut pool = self.pool.borrow_mut();
        let next =
            if pool.lent + pool.woken < self.options.stacks_max { pool.waiting.pop_first() } else { None };
        pool.woken += usize::from(next.is_some());
        let wanted = pool.woken;
        pool.keep_spare(self.options.spare_max.max(wanted));
        drop(pool);
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }
}

impl StackPool {
    /// Frees the memory of spare stacks beyond a number.
    fn keep_spare(&mut self, number: usize) {
        for stack in self.spare.drain(number.min(self.spare.len())..) {
            self.arena.release(stack);
        }
    }
}

impl fmt::Debug for Stacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stacks")
            .field("options", &self.options)
            .field("lent", &self.lent())
            .field("waiting", &self.waiting())
            .field("spare", &self.spare())
            .finish()
    }
}
