//! Reads the files of outputs, without waiting for a disk.

use std::io;
use std::mem;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::connection::Sending;
use super::{Provider, Secure};
use crate::read_ahead::Fetched;
use crate::{Driver, FileSlice, Piece, SendError, Token};

/// Reasons to read nothing.
enum NotRead {
    /// The range is being fetched while this handle is kept.
    Fetching(Arc<Fetched>),
    Failed(SendError),
}

impl<D: Driver, P: Provider> Secure<D, P> {
    /// Copies what follows in an output into `buffer`. Returns the bytes copied: fewer if a file isn't cached or is no
    /// longer as promised.
    pub(super) fn copy(&mut self, token: Token, sending: &mut Sending, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            let into = &mut buffer[filled..];
            let slice = match sending.output.piece_at(sending.sealed + filled as u64) {
                None => break,
                Some(Piece::Bytes(bytes)) => {
                    let len = bytes.len().min(into.len());
                    into[..len].copy_from_slice(&bytes[..len]);
                    filled += len;
                    continue;
                }
                Some(Piece::File(slice)) => slice,
            };
            match self.read(token, sending, &slice, into) {
                Ok(count) => filled += count,
                Err(NotRead::Failed(error)) => {
                    sending.failure = Some(error);
                    break;
                }
                // The next round, which follows at once, waits for it.
                Err(NotRead::Fetching(_)) if filled > 0 => break,
                Err(NotRead::Fetching(wants)) => {
                    (sending.wants, sending.is_fetching) = (Some(wants), true);
                    break;
                }
            }
        }
        filled
    }

    /// Reads the beginning of a range, at least one byte. The last bytes count only if the file is as promised (S10).
    fn read(
        &mut self,
        token: Token,
        sending: &mut Sending,
        slice: &FileSlice,
        into: &mut [u8],
    ) -> Result<usize, NotRead> {
        let len = into.len().min(usize::try_from(slice.len).unwrap_or(usize::MAX));
        let count = match self.read_some(token, sending, slice, &mut into[..len])? {
            Ok(count) => count,
            Err(error) => return Err(NotRead::Failed(SendError::FileUnreadable(error))),
        };
        if count == 0 {
            return Err(NotRead::Failed(SendError::FileShort));
        }
        if count as u64 == slice.len && !slice.file.is_as_promised() {
            return Err(NotRead::Failed(SendError::FileChanged));
        }
        Ok(count)
    }

    fn read_some(
        &mut self,
        token: Token,
        sending: &mut Sending,
        slice: &FileSlice,
        into: &mut [u8],
    ) -> Result<io::Result<usize>, NotRead> {
        if slice.file.is_remote() {
            match sending.wants.as_ref().and_then(|wants| wants.start_of(slice)) {
                Some(Ok(bytes)) => {
                    let len = bytes.len().min(into.len());
                    into[..len].copy_from_slice(&bytes[..len]);
                    return Ok(Ok(len));
                }
                Some(Err(errno)) => return Ok(Err(errno.into())),
                None => {}
            }
        } else if !mem::take(&mut sending.is_fetched) {
            match (self.read_cached)(&slice.file, into, slice.offset) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(slice.file.read_at(into, slice.offset));
                }
                read => return Ok(read),
            }
        } else {
            return Ok(slice.file.read_at(into, slice.offset));
        }
        match self.ahead.fetch_unchecked(token, slice) {
            Some(wants) => Err(NotRead::Fetching(wants)),
            None => Ok(slice.file.read_at(into, slice.offset)),
        }
    }

    /// Resumes sends whose fetch is complete.
    pub(super) fn note_fetched(&mut self) {
        while let Some(token) = self.ahead.next_fetched() {
            let Some(mut conn) = self.take(token) else { continue };
            if let Some(sending) = conn.sending.as_mut().filter(|sending| sending.is_fetching) {
                (sending.is_fetching, sending.is_fetched) = (false, true);
                self.enqueue(&mut conn);
            }
            self.put(conn);
        }
    }

    /// Watches the files of sends that outlast the turn in which they began (S10).
    pub(super) fn guard_files(&mut self) {
        for token in mem::take(&mut self.unguarded) {
            let conn = self.conns.get(token.slot()).and_then(Option::as_deref);
            let sending = conn.filter(|conn| conn.token == token).and_then(|conn| conn.sending.as_deref());
            if let Some(sending) = sending {
                sending.guard_files(&mut self.watches);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, IoSlice};
    use std::rc::Rc;
    use std::sync::Arc;
    use std::time::Duration;

    use crate::secure::{Failure, Opened, Provider, Secure, Session, SessionFacts, Step};
    use crate::sim::{Sim, SimOptions, SimPeer};
    use crate::{Driver, Event, FileSlice, Item, ListenerId, Output, SendError, SharedFile, Token};

    struct Copies;

    /// A session whose first byte is its handshake, and which copies.
    #[derive(Default)]
    struct Copying {
        is_secured: bool,
    }

    impl Provider for Copies {
        type Session = Copying;

        fn begin_turn(&mut self, _: u64) {}

        fn accept(&mut self, _: ListenerId) -> Copying {
            Copying::default()
        }
    }

    impl Session for Copying {
        fn open(&mut self, wire: &mut [u8], _: &mut Vec<u8>) -> Opened {
            let is_first = !wire.is_empty() && !std::mem::replace(&mut self.is_secured, true);
            let step = if is_first { Step::Secured } else { Step::NeedMore };
            Opened { consumed: usize::from(is_first), step }
        }

        fn seal(&mut self, plain: &[IoSlice<'_>], wire: &mut Vec<u8>) -> Result<(), Failure> {
            plain.iter().for_each(|slice| wire.extend_from_slice(slice));
            Ok(())
        }

        fn close_notify(&mut self, _: &mut Vec<u8>) {}

        fn facts(&self) -> Option<&Arc<SessionFacts>> {
            None
        }

        fn held_bytes(&self) -> usize {
            0
        }
    }

    fn secured() -> (Secure<Sim, Copies>, SimPeer, Token) {
        let sim = Sim::new(SimOptions::default());
        let peer = sim.net().connect();
        peer.write(b"!");
        let mut driver = Secure::new(sim, Copies);
        loop {
            driver.wait(Some(Duration::ZERO)).expect("the simulation never fails");
            while let Some(event) = driver.next() {
                match event {
                    Event::Accepted { token, listener } => driver.secure(token, listener, &[]),
                    Event::Secured { token, .. } => return (driver, peer, token),
                    _ => {}
                }
            }
        }
    }

    /// Takes turns until a send has ended, and returns whether it waited for the disk.
    fn sent(driver: &mut Secure<Sim, Copies>, token: Token) -> bool {
        let mut has_waited = false;
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            driver.wait(Some(Duration::ZERO)).expect("the simulation never fails");
            while let Some(event) = driver.next() {
                if let Event::Sent { result, .. } = event {
                    result.expect("the file is there");
                    return has_waited;
                }
            }
            has_waited |= driver.waits_for_disk(token);
            // The simulated clock doesn't wait for the thread that reads.
            std::thread::yield_now();
        }
        panic!("it is never sent");
    }

    #[test]
    fn a_range_that_is_not_cached_is_fetched_before_it_is_read() {
        for is_remote in [false, true] {
            let (mut driver, peer, token) = secured();
            driver.read_cached = |_, _, _| Err(io::ErrorKind::WouldBlock.into());
            let file = SharedFile::new(crate::test_file(300_000));
            let file = Rc::new(if is_remote { file.remote() } else { file });
            let mut output = Output::new();
            output.bytes_mut().extend_from_slice(b"head");
            output.push(Item::File(FileSlice { file, offset: 0, len: 300_000 }));
            driver.send(token, output);
            assert!(sent(&mut driver, token), "S9");
            let got = peer.read();
            assert!(got.len() == 300_004 && got.starts_with(b"head\0"));
        }
    }

    /// A client that has the head of a long file may change it before the turn ends.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_long_file_is_watched_before_its_first_record_is_sent() {
        use std::fs::FileTimes;
        use std::os::unix::fs::FileExt;

        let (mut driver, peer, token) = secured();
        let file = Arc::new(crate::test_file(2_000_000));
        let meta = crate::fs::Meta::of(&file).expect("its metadata");
        let mut output = Output::new();
        let promised = Rc::new(SharedFile::new(Arc::clone(&file)).in_version(meta));
        output.push(Item::File(FileSlice { file: promised, offset: 0, len: 2_000_000 }));
        driver.send(token, output);
        driver.wait(Some(Duration::ZERO)).expect("the simulation never fails");
        assert!(driver.next().is_none() && !peer.read().is_empty(), "the turn's share is sent");
        let modified = file.metadata().and_then(|meta| meta.modified()).expect("its date");
        file.write_all_at(b"b", 1_999_999).expect("written");
        file.set_times(FileTimes::new().set_modified(modified)).expect("its date is restored");
        let result = loop {
            drop(peer.read());
            driver.wait(Some(Duration::ZERO)).expect("the simulation never fails");
            if let Some(Event::Sent { result, .. }) = driver.next() {
                break result;
            }
        };
        assert!(matches!(result, Err(SendError::FileChanged)), "{result:?}");
    }

    #[test]
    fn a_file_system_that_reports_nothing_is_read_directly() {
        let (mut driver, peer, token) = secured();
        driver.read_cached = |_, _, _| Err(io::ErrorKind::Unsupported.into());
        let file = Rc::new(SharedFile::new(crate::test_file(100_000)));
        let mut output = Output::new();
        output.push(Item::File(FileSlice { file, offset: 0, len: 100_000 }));
        driver.send(token, output);
        assert!(!sent(&mut driver, token));
        assert_eq!(peer.read().len(), 100_000);
    }
}
