//! Sends from memory by one entry that never waits; files and remainders go by hand.

use std::os::fd::AsRawFd;

use io_uring::types::Fd;

use super::Uring;
use super::entry::{Done, Name, Operation, Purpose};
use super::recv::reset_full;
use super::turn::{pend, settle};
use crate::connections::{Flags, GATHER_MAX, IN_RING, NONE, Sending};
use crate::limits::{SEND_QUANTUM_BYTES, SENT_LATE_BYTES_MAX};
use crate::{Event, Item, Output, SendError, Token};
use rustix::io::Errno;

/// Items that fit a message header: bytes may precede each and follow the last.
const ITEMS_MAX: usize = (GATHER_MAX - 1) / 2;

fn writable_name(token: Token) -> Name {
    Name::new(Purpose::Writable, token)
}

/// Returns whether an output can be sent by one entry.
fn fits_an_entry(output: &Output) -> bool {
    let in_memory = |(_, item): &(usize, Item)| matches!(item, Item::Shared(_));
    let items = output.items();
    !output.is_empty()
        && output.len() <= SEND_QUANTUM_BYTES
        && items.len() <= ITEMS_MAX
        && items.iter().all(in_memory)
}

impl Uring {
    /// Sends. If the end `is_awaited`, it ends the next enter's wait.
    pub(super) fn start_send(&mut self, token: Token, output: Output, is_awaited: bool) {
        let Some(slot) = self.conns.sender(token) else { return };
        reset_full(slot);
        if !fits_an_entry(&output) {
            if self.conns.send_by_hand(token, output) {
                self.await_writable(token);
            }
            return;
        }
        let Some(fd) = pend(slot, Flags::SENDING) else { return };
        slot.send = IN_RING;
        let is_awaited = is_awaited || output.len() > SENT_LATE_BYTES_MAX;
        self.ring.send(token, fd, output, is_awaited);
    }

    /// Handles the completion of a send.
    pub(super) fn sent(&mut self, done: Done) -> Option<Event> {
        let sent = done.result();
        let (token, output) = self.ring.reclaim(done);
        let taken = sent.map_or(0, u64::from);
        self.conns.note_taken(taken);
        let slot = self.conns.slots.held_mut(token)?;
        settle(slot, Flags::SENDING);
        let closing = slot.flags.has(Flags::CLOSING);
        let result = match sent {
            Ok(_) if taken >= output.len() => Ok(()),
            Err(errno) if !closing && !matches!(errno, Errno::AGAIN | Errno::INTR | Errno::CANCELED) => {
                slot.flags.set(Flags::BROKEN);
                Err(SendError::Broken(errno.into()))
            }
            _ if closing => Err(SendError::Cancelled),
            _ => {
                slot.send = self.conns.sends.insert(Sending::new(output, taken));
                self.await_writable(token);
                return None;
            }
        };
        let event = self.conns.sent(token, output, result);
        if closing {
            self.finish_close(token);
        }
        Some(event)
    }

    /// Waits by an entry until the socket has room.
    pub(super) fn await_writable(&mut self, token: Token) {
        let Some(slot) = self.conns.slots.open_mut(token) else { return };
        if slot.send == NONE || slot.flags.has(Flags::AWAITING) {
            return;
        }
        let Some(fd) = pend(slot, Flags::AWAITING) else { return };
        self.ring.push(Operation::poll(fd, libc::POLLOUT), writable_name(token));
    }

    /// Handles a completion of the entry that waits for room.
    pub(super) fn awaited(&mut self, done: &Done) {
        let (token, until) = (done.token(), libc::POLLOUT | libc::POLLERR | libc::POLLHUP);
        let takes_more = done.result().map_or(true, |events| events & until as u32 != 0);
        match (takes_more, done.is_last()) {
            (true, true) => self.writable.push_back(token),
            // Its last completion comes next, and sending continues then.
            (true, false) => self.stop_awaiting(token),
            (false, true) => self.await_behind_fin(token),
            (false, false) => {}
        }
    }

    /// Waits for room at a peer that has ended its side. The kernel adds `POLLRDHUP` to every entry, so a
    /// one-shot entry would complete at once, again and again; a multishot one completes on changes.
    fn await_behind_fin(&mut self, token: Token) {
        let Some(fd) = self.conns.slots.open_mut(token).and_then(|slot| slot.fd.as_ref()) else {
            return self.writable.push_back(token);
        };
        let fd = Fd(fd.as_raw_fd());
        // It replaces the ended entry, also in the slot's account.
        self.ring.push(Operation::poll_changes(fd, libc::POLLOUT), writable_name(token));
    }

    pub(super) fn stop_awaiting(&mut self, token: Token) {
        self.ring.cancel(writable_name(token));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
    use std::time::Duration;

    use super::{Flags, Uring};
    use crate::driver::UringOptions;
    use crate::limits::{SENT_LATE_BYTES_MAX, SENT_LATE_SENDS_MAX};
    use crate::{CloseKind, Driver, Event, Output, Token};

    const BUFFER_BYTES: usize = 1024;

    /// Returns a driver with `count` connections, and their peers. `None` if the kernel has no io_uring.
    fn connected(count: usize) -> Option<(Uring, Vec<Token>, Vec<TcpStream>)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let options = UringOptions { recv_buffer_bytes: BUFFER_BYTES, ..UringOptions::default() };
        let mut driver =
            Uring::new(vec![listener], options).map_err(|why| println!("skipped: {why}")).ok()?;
        let peers = (0..count).map(|_| TcpStream::connect(address).expect("connects")).collect();
        let mut tokens = Vec::new();
        while tokens.len() < count {
            driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
            while let Some(event) = driver.next() {
                if let Event::Accepted { token, .. } = event {
                    tokens.push(token);
                }
            }
        }
        driver.wait(Some(Duration::ZERO)).expect("the receives are submitted");
        Some((driver, tokens, peers))
    }

    fn send(driver: &mut Uring, token: Token, len: usize, is_awaited: bool) {
        let mut output = Output::new();
        output.bytes_mut().resize(len, b'x');
        assert!(!driver.send_at_once(token, &mut output, || is_awaited));
    }

    /// Responds to the first event, and returns the number of further events in the same turn.
    fn response_the_first(driver: &mut Uring, token: Token) -> usize {
        for _ in 0..100 {
            driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
            let mut behind = None;
            while let Some(event) = driver.next() {
                match (event, behind) {
                    (Event::Received { .. }, None) => {
                        send(driver, token, 6, false);
                        behind = Some(0);
                    }
                    (_, seen) => behind = seen.map(|count| count + 1),
                }
            }
            if let Some(behind) = behind {
                return behind;
            }
        }
        panic!("nothing came")
    }

    #[test]
    fn only_short_unawaited_sends_end_late() {
        let longest = SENT_LATE_BYTES_MAX as usize;
        for (len, is_awaited, late) in [(longest, false, 1), (longest, true, 0), (longest + 1, false, 0)] {
            let Some((mut driver, tokens, _peers)) = connected(1) else { return };
            send(&mut driver, tokens[0], len, is_awaited);
            assert_eq!(driver.ring.late_sends(), late, "{len} {is_awaited}");
            let mut turns = 0;
            while driver.conns.slots.open(tokens[0]).is_some_and(|slot| slot.send != super::NONE) {
                // Nothing else happens: the test would block here if the end of the send didn't end the wait.
                driver.wait(None).expect("the driver waits");
                while driver.next().is_some() {}
                turns += 1;
            }
            assert_eq!(turns, 1);
        }
    }

    #[test]
    fn bounds_late_ends_by_what_an_enter_processes() {
        for count in [SENT_LATE_SENDS_MAX, SENT_LATE_SENDS_MAX + 1] {
            let Some((mut driver, tokens, _peers)) = connected(count) else { return };
            tokens.iter().for_each(|token| send(&mut driver, *token, 6, false));
            assert_eq!(driver.ring.late_sends(), if count > SENT_LATE_SENDS_MAX { 0 } else { count });
        }
    }

    /// Input behind a response sent in the same turn waits for its end: more of a pipeline, or the client's
    /// FIN.
    #[test]
    fn input_after_a_response_awaits_its_end() {
        for (bytes, is_ended, expected) in [(100, false, 1), (2 * BUFFER_BYTES, false, 0), (100, true, 0)] {
            let Some((mut driver, tokens, mut peers)) = connected(1) else { return };
            peers[0].write_all(&vec![b'?'; bytes]).expect("the queue has room");
            if is_ended {
                peers[0].shutdown(Shutdown::Write).expect("it can");
            }
            let behind = response_the_first(&mut driver, tokens[0]);
            if behind == 0 && expected == 0 {
                println!("skipped: each receive has a turn of its own");
                continue;
            }
            assert_eq!(driver.ring.late_sends(), expected, "{bytes} {is_ended}");
        }
    }

    #[test]
    fn a_close_awaits_the_late_end() {
        let Some((mut driver, tokens, _peers)) = connected(1) else { return };
        send(&mut driver, tokens[0], 6, false);
        driver.close(tokens[0], CloseKind::Normal);
        assert_eq!(driver.ring.late_sends(), 0);
    }

    /// A wake is reported after everything that happened before it.
    #[test]
    fn a_wake_follows_the_late_end() {
        let Some((mut driver, tokens, _peers)) = connected(1) else { return };
        send(&mut driver, tokens[0], 6, false);
        driver.waker().wake();
        let mut woken = Vec::new();
        while woken.len() < 2 {
            driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
            while let Some(event) = driver.next() {
                woken.push(matches!(event, Event::Woken));
            }
        }
        assert_eq!(woken, [false, true], "the end of the send comes first");
    }

    #[test]
    fn a_receive_whose_cancel_found_nothing_is_cancelled_again() {
        let Some((mut driver, tokens, mut peers)) = connected(1) else { return };
        // As if a cancel had been sent and found nothing.
        driver.conns.slots.open_mut(tokens[0]).expect("the slot is open").flags.set(Flags::CANCELLING);
        driver.close(tokens[0], CloseKind::Normal);
        peers[0].write_all(b"x").expect("the queue has room");
        while driver.connections() > 0 {
            driver.wait(Some(Duration::from_secs(1))).expect("the driver waits");
            while driver.next().is_some() {}
        }
    }
}
