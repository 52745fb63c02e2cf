//! Files of connections that may have no descriptor: tables of small rings.
//!
//! A ring's table of files doesn't count towards the descriptor limit, which bounds only its length. The files of a
//! range of slots share a table, which exists while one of them is stored. Every call here is done when it returns.

#![expect(unsafe_code, reason = "entries are unchecked, and the kernel returns a descriptor as a number")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use io_uring::types::Fixed;
use io_uring::{IoUring, opcode, squeue};

use crate::limits::STORED_FILES_PER_RING;
use crate::os::{UNKNOWN_DESCRIPTORS, descriptor_limits};

/// Entries of a table's ring: one, and those that earlier calls failed to submit.
const ENTRIES: u32 = 4;

/// Name of a shutdown. An entry that opens a descriptor is named by its index.
const SHUTDOWN: u64 = 1 << 32;

/// Index that removes a file from a table.
const NO_FILE: i32 = -1;

/// The files of a driver's connections, by slot. Those left in a dropped one are closed by the kernel, a little later.
#[derive(Debug)]
pub(super) struct Store {
    /// Tables of consecutive ranges of slots.
    tables: Vec<Option<Table>>,
    files_per_table: usize,
}

/// A ring that only keeps files.
struct Table {
    ring: IoUring,
    /// Number of files in it.
    files: usize,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Store {
    /// Creates an empty store with tables as long as the descriptor limit permits.
    pub(super) fn new() -> Self {
        let limit = descriptor_limits().map_or(UNKNOWN_DESCRIPTORS, |(soft, _)| soft);
        Self::with_tables_of(usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, STORED_FILES_PER_RING))
    }

    fn with_tables_of(files_per_table: usize) -> Self {
        Self { tables: Vec::new(), files_per_table }
    }

    /// Stores the file of a slot that has none.
    ///
    /// # Errors
    /// Fails without memory, or without a descriptor for a new table's ring.
    pub(super) fn put(&mut self, slot: usize, file: BorrowedFd<'_>) -> io::Result<()> {
        let (table, index) = self.place(slot);
        if self.tables.len() <= table {
            self.tables.resize_with(table + 1, || None);
        }
        let place = &mut self.tables[table];
        let table = match place {
            Some(table) => table,
            None => place.insert(Table::new(self.files_per_table as u32)?),
        };
        table.ring.submitter().register_files_update(index, &[file.as_raw_fd()])?;
        table.files += 1;
        Ok(())
    }

    /// Opens a descriptor of a stored file.
    ///
    /// # Errors
    /// Fails without a free descriptor, or if the slot has no file.
    pub(super) fn open(&mut self, slot: usize) -> io::Result<OwnedFd> {
        let (table, index) = self.place(slot);
        let table = self.tables.get_mut(table).and_then(Option::as_mut);
        table.ok_or(io::ErrorKind::NotFound)?.open(index)
    }

    /// Shuts down the sending side of a stored connection.
    pub(super) fn end_writing(&mut self, slot: usize) {
        let (table, index) = self.place(slot);
        if let Some(table) = self.tables.get_mut(table).and_then(Option::as_mut) {
            table.end_writing(index);
        }
    }

    /// Removes the file of a slot that has one. It is closed with its last descriptor and entry.
    pub(super) fn remove(&mut self, slot: usize) {
        let (table, index) = self.place(slot);
        let Some(table) = self.tables.get_mut(table).and_then(Option::as_mut) else { return };
        let removed = table.ring.submitter().register_files_update(index, &[NO_FILE]);
        debug_assert!(removed.is_ok(), "{removed:?}");
        table.files -= 1;
    }

    /// Frees tables without a file.
    pub(super) fn trim(&mut self) {
        for table in &mut self.tables {
            drop(table.take_if(|table| table.files == 0));
        }
        let used = self.tables.iter().rposition(Option::is_some);
        self.tables.truncate(used.map_or(0, |last| last + 1));
        self.tables.shrink_to_fit();
    }

    /// Returns a slot's table and index in it.
    fn place(&self, slot: usize) -> (usize, u32) {
        (slot / self.files_per_table, (slot % self.files_per_table) as u32)
    }
}

impl Table {
    fn new(files: u32) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_submit_all().setup_clamp().dontfork();
        let ring = builder.build(ENTRIES)?;
        ring.submitter().register_files_sparse(files)?;
        Ok(Self { ring, files: 0 })
    }

    fn open(&mut self, index: u32) -> io::Result<OwnedFd> {
        let entry = opcode::FixedFdInstall::new(Fixed(index), 0).build();
        // SAFETY: it points to no memory.
        let opened = unsafe { self.run(entry, u64::from(index)) }?;
        opened.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    /// Shuts down the sending side of a socket. The kernel does that on another thread.
    fn end_writing(&mut self, index: u32) {
        let entry = opcode::Shutdown::new(Fixed(index), libc::SHUT_WR).build();
        // SAFETY: it points to no memory.
        let ended = unsafe { self.run(entry, SHUTDOWN) };
        // It fails only on a broken connection, which the receiving side reports. An interrupted one continues.
        drop(ended);
    }

    /// Runs one entry; returns the descriptor that it has opened.
    ///
    /// # Safety
    /// It points to no memory.
    unsafe fn run(&mut self, entry: squeue::Entry, name: u64) -> io::Result<Option<OwnedFd>> {
        // SAFETY: the caller guarantees it. Without room an earlier one is submitted, and this call fails.
        let queued = unsafe { self.ring.submission().push(&entry.user_data(name)) };
        self.ring.submit_and_wait(1)?;
        let mut outcome = Err(io::ErrorKind::WouldBlock.into());
        // Entries of calls that failed complete now, too: their descriptors are closed.
        for done in self.ring.completion() {
            let result = done.result();
            let found = if result < 0 {
                Err(io::Error::from_raw_os_error(-result))
            } else if done.user_data() == SHUTDOWN {
                Ok(None)
            } else {
                // SAFETY: the kernel has opened this descriptor for this entry, whose completion comes once.
                Ok(Some(unsafe { OwnedFd::from_raw_fd(result) }))
            };
            if done.user_data() == name && queued.is_ok() {
                outcome = found;
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::uring::probe;

    #[test]
    fn stores_files_by_slot_in_tables_of_a_bounded_length() {
        if !probe().is_ok_and(|report| report.stored_files) {
            println!("skipped: this kernel can't store files");
            return;
        }
        let mut store = Store::with_tables_of(2);
        let mut peers = Vec::new();
        for slot in 0..5 {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            store.put(slot, ours.as_fd()).expect("it is stored");
            peers.push(theirs);
        }
        assert_eq!(store.tables.len(), 3);
        for (slot, peer) in peers.iter_mut().enumerate() {
            let mut opened = UnixStream::from(store.open(slot).expect("a descriptor"));
            opened.write_all(&[slot as u8]).expect("it is open");
            let mut got = [0];
            peer.read_exact(&mut got).expect("it was written");
            assert_eq!(usize::from(got[0]), slot);
        }
        for (slot, peer) in peers.iter_mut().enumerate() {
            store.remove(slot);
            assert_eq!(peer.read(&mut [0]).expect("it ends"), 0, "the file was closed");
            assert!(store.open(slot).is_err());
        }
        store.trim();
        assert_eq!(store.tables.capacity(), 0);
    }
}
