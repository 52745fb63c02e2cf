//! Reads the files of outputs, without waiting for a disk.

use std::array;
use std::io::{self, IoSliceMut};
use std::mem;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;

use super::connection::Sending;
use super::{Provider, Secure};
use crate::read_ahead::Fetched;
use crate::{Driver, FileSlice, Output, Piece, SendError, Token};

/// Ranges that are read by one call: more than a round has full frames of HTTP/2.
const RANGES_MAX: usize = 8;

/// Reasons to read nothing.
enum NotRead {
    /// The range is being fetched while this handle is kept.
    Fetching(Arc<Fetched>),
    Failed(SendError),
}

/// Ranges of a file that follow each other, with memory before all but the first, as parts of a buffer.
struct Ranges<'b> {
    parts: [IoSliceMut<'b>; RANGES_MAX],
    /// Bytes of memory before each.
    before: [usize; RANGES_MAX],
    count: usize,
    /// The last one has room for its end.
    has_end: bool,
}

impl<'b> Ranges<'b> {
    /// Copies the memory between ranges of an output into `buffer`. At `from` is one.
    fn split(output: &Output, from: u64, mut buffer: &'b mut [u8]) -> Self {
        let parts = array::from_fn(|_| IoSliceMut::new(&mut []));
        let mut ranges = Self { parts, before: [0; RANGES_MAX], count: 0, has_end: false };
        let mut last: Option<FileSlice> = None;
        for piece in output.pieces(from) {
            if ranges.count == RANGES_MAX || buffer.is_empty() {
                break;
            }
            match piece {
                Piece::Bytes(bytes) => {
                    let len = bytes.len().min(buffer.len());
                    take_front(&mut buffer, len).copy_from_slice(&bytes[..len]);
                    ranges.before[ranges.count] += len;
                }
                Piece::File(slice) => {
                    let continues = |last: &FileSlice| {
                        Rc::ptr_eq(&last.file, &slice.file) && last.offset + last.len == slice.offset
                    };
                    if !last.as_ref().is_none_or(continues) {
                        break;
                    }
                    let len = buffer.len().min(usize::try_from(slice.len).unwrap_or(usize::MAX));
                    ranges.parts[ranges.count] = IoSliceMut::new(take_front(&mut buffer, len));
                    ranges.count += 1;
                    ranges.has_end = len as u64 == slice.len;
                    last = Some(slice);
                }
            }
        }
        ranges
    }

    fn parts(&mut self) -> &mut [IoSliceMut<'b>] {
        &mut self.parts[..self.count]
    }

    /// Returns the bytes of the buffer that are filled once so many bytes of the file are read.
    fn filled(&self, read: usize) -> usize {
        let (mut filled, mut left) = (0, read);
        for (part, before) in self.parts[..self.count].iter().zip(self.before) {
            if left == 0 {
                break;
            }
            let len = part.len().min(left);
            filled += before + len;
            left -= len;
        }
        filled
    }

    /// Returns true if the last range's end is among so many bytes of the file.
    fn is_end(&self, read: usize) -> bool {
        self.has_end && read == self.parts[..self.count].iter().map(|part| part.len()).sum()
    }
}

fn take_front<'b>(buffer: &mut &'b mut [u8], len: usize) -> &'b mut [u8] {
    let (front, rest) = mem::take(buffer).split_at_mut(len);
    *buffer = rest;
    front
}

impl<D: Driver, P: Provider> Secure<D, P> {
    /// Copies what follows in an output into `buffer`. Returns the bytes copied: fewer if a file isn't cached or is no
    /// longer as promised.
    pub(super) fn copy(&mut self, token: Token, sending: &mut Sending, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            let into = &mut buffer[filled..];
            let from = sending.sealed + filled as u64;
            let slice = match sending.output.piece_at(from) {
                None => break,
                Some(Piece::Bytes(bytes)) => {
                    let len = bytes.len().min(into.len());
                    into[..len].copy_from_slice(&bytes[..len]);
                    filled += len;
                    continue;
                }
                Some(Piece::File(slice)) => slice,
            };
            match self.read(token, sending, &slice, Ranges::split(&sending.output, from, into)) {
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

    /// Reads the beginning of a range, at least one byte, and of those that continue it. The last bytes count only if the
    /// file is as promised (S10). Returns the bytes of the buffer that are filled.
    fn read(
        &mut self,
        token: Token,
        sending: &mut Sending,
        slice: &FileSlice,
        mut ranges: Ranges<'_>,
    ) -> Result<usize, NotRead> {
        let count = match self.read_some(token, sending, slice, ranges.parts())? {
            Ok(count) => count,
            Err(error) => return Err(NotRead::Failed(SendError::FileUnreadable(error))),
        };
        if count == 0 {
            return Err(NotRead::Failed(SendError::FileShort));
        }
        if ranges.is_end(count) && !slice.file.is_as_promised() {
            return Err(NotRead::Failed(SendError::FileChanged));
        }
        Ok(ranges.filled(count))
    }

    fn read_some(
        &mut self,
        token: Token,
        sending: &mut Sending,
        slice: &FileSlice,
        parts: &mut [IoSliceMut<'_>],
    ) -> Result<io::Result<usize>, NotRead> {
        if slice.file.is_remote() {
            match sending.wants.as_ref().and_then(|wants| wants.start_of(slice)) {
                Some(Ok(bytes)) => {
                    let len = bytes.len().min(parts[0].len());
                    parts[0][..len].copy_from_slice(&bytes[..len]);
                    return Ok(Ok(len));
                }
                Some(Err(errno)) => return Ok(Err(errno.into())),
                None => {}
            }
        } else if !mem::take(&mut sending.is_fetched) {
            match (self.read_cached)(&slice.file, parts, slice.offset) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(slice.file.read_at(&mut parts[0], slice.offset));
                }
                read => return Ok(read),
            }
        } else {
            return Ok(slice.file.read_at(&mut parts[0], slice.offset));
        }
        match self.ahead.fetch_unchecked(token, slice) {
            Some(wants) => Err(NotRead::Fetching(wants)),
            None => Ok(slice.file.read_at(&mut parts[0], slice.offset)),
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
    use std::cell::Cell;
    use std::fs::File;
    use std::io::{self, IoSlice, IoSliceMut};
    use std::os::unix::fs::FileExt;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::time::Duration;

    use crate::limits::SEAL_ROUND_BYTES;
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

    thread_local! {
        /// Calls of `read_in_parts`, and the bytes that each may read.
        static READS: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    }

    fn read_in_parts(file: &File, parts: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let (count, bytes_max) = READS.get();
        READS.set((count + 1, bytes_max));
        let mut read = 0;
        for part in parts {
            let len = part.len().min(bytes_max - read);
            read += file.read_at(&mut part[..len], offset + read as u64)?;
        }
        Ok(read)
    }

    /// An output as HTTP/2 has it: frames, each a header and a range.
    #[test]
    fn ranges_that_follow_each_other_are_read_by_one_call() {
        const HEADER: &[u8] = b"DATA frame";
        const FRAMES: usize = 20;
        let range_len = SEAL_ROUND_BYTES as usize / 4 - HEADER.len();
        let content: Vec<u8> = (0..FRAMES * range_len).map(|at| (at * 31 % 251) as u8).collect();
        let file = crate::test_file(0);
        file.write_all_at(&content, 0).expect("written");
        let file = Rc::new(SharedFile::new(file));
        let expected: Vec<u8> = content
            .chunks(range_len)
            .flat_map(|range| [HEADER, range].concat())
            .chain(content[..9].to_vec())
            .collect();
        for (bytes_max, reads) in [(usize::MAX, FRAMES / 4 + 1), (range_len + 7, FRAMES + 1)] {
            let (mut driver, peer, token) = secured();
            driver.read_cached = read_in_parts;
            READS.set((0, bytes_max));
            let mut output = Output::new();
            for number in 0..FRAMES {
                output.bytes_mut().extend_from_slice(HEADER);
                let offset = (number * range_len) as u64;
                let file = Rc::clone(&file);
                output.push(Item::File(FileSlice { file, offset, len: range_len as u64 }));
            }
            // It doesn't follow the others.
            output.push(Item::File(FileSlice { file: Rc::clone(&file), offset: 0, len: 9 }));
            driver.send(token, output);
            assert!(!sent(&mut driver, token));
            assert!(peer.read() == expected, "{bytes_max} bytes a call");
            assert_eq!(READS.get().0, reads, "{bytes_max} bytes a call");
        }
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
