//! Results of disk work on another thread, for the worker that responds from them.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use shearwater_io::fs::{Meta, OpenError, Opened, Root};

use crate::disk::{Disk, DiskHook, NamesResult};
use crate::limits::{OPEN_RETRY_MS, OPEN_WAIT_S_MAX};
use crate::listing::names::{FolderNames, ListedFolder};
use crate::listing::rows::{ListOrder, ListPage};
use crate::now::Now;

/// Everything that was opened and read.
#[derive(Default)]
pub(crate) struct Records {
    opened: Vec<(Vec<u8>, Result<Opened, OpenError>)>,
    read: Vec<(Meta, u64, Vec<u8>)>,
    /// The system's code of the last read that has failed.
    pub(crate) read_error: Option<i32>,
    /// Metadata at the open and after reading.
    metas: Vec<(Meta, Meta)>,
    names: Vec<(Vec<u8>, bool, NamesResult)>,
    rows: Vec<(Vec<u8>, u8, Arc<ListPage>)>,
}

impl Records {
    /// Returns the result of opening a name. Without a free descriptor, others can't be opened either.
    pub(crate) fn opened(&self, name: &[u8]) -> Option<Result<Opened, OpenError>> {
        let known = self.opened.iter().find(|(known, _)| known == name);
        let (_, result) =
            known.or_else(|| self.opened.iter().find(|(_, result)| lacks_descriptors(result)))?;
        match result {
            Ok(opened) => opened.again().map(Ok),
            Err(error) => Some(Err(error.clone())),
        }
    }

    /// Copies what was read of a file at this offset.
    pub(crate) fn read_at(&self, meta: &Meta, bytes: &mut [u8], offset: u64) -> Option<usize> {
        let of_file = self.read.iter().filter(|(known, ..)| known == meta);
        let holds = |at: u64, read: &[u8]| {
            let end = at + read.len() as u64;
            at <= offset && (offset < end || offset == end && end == meta.len)
        };
        let there = of_file.filter(|(_, at, read)| holds(*at, read));
        // Parts overlap: the longest counts.
        let (_, at, read) = there.max_by_key(|(_, at, read)| at + read.len() as u64)?;
        let from = &read[(offset - at) as usize..];
        let len = from.len().min(bytes.len());
        bytes[..len].copy_from_slice(&from[..len]);
        Some(len)
    }

    /// Returns the metadata that a file of this metadata had after it was read.
    pub(crate) fn meta(&self, meta: &Meta) -> Option<Meta> {
        self.metas.iter().find(|(known, _)| known == meta).map(|(_, after)| *after)
    }

    pub(crate) fn names(&self, folder: &ListedFolder<'_>, is_descending: bool) -> Option<NamesResult> {
        let is_it =
            |(name, descends, _): &&(Vec<u8>, bool, _)| name == folder.name && *descends == is_descending;
        self.names.iter().find(is_it).map(|(.., names)| names.clone())
    }

    pub(crate) fn rows(
        &self,
        folder: &ListedFolder<'_>,
        order: ListOrder,
        start: usize,
    ) -> Option<Arc<ListPage>> {
        let is_it = |(name, key, page): &&(Vec<u8>, u8, Arc<ListPage>)| {
            name == folder.name && *key == order.key() && page.before == start
        };
        self.rows.iter().find(is_it).map(|(.., page)| Arc::clone(page))
    }
}

fn lacks_descriptors(result: &Result<Opened, OpenError>) -> bool {
    matches!(result, Err(OpenError::Descriptors))
}

/// Waits for the disk, and records the results.
pub(crate) struct Recorder<'a> {
    root: &'a Root,
    hook: Option<DiskHook>,
    /// Names of the folder that the worker has.
    known_names: Option<Arc<FolderNames>>,
    records: RefCell<Records>,
    /// Returns false once no request waits for the results.
    is_wanted: &'a dyn Fn() -> bool,
    /// Number of times that opens may still be repeated.
    repeats_left: Cell<u64>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(
        root: &'a Root,
        hook: Option<DiskHook>,
        known_names: Option<Arc<FolderNames>>,
        is_wanted: &'a dyn Fn() -> bool,
        is_patient: bool,
    ) -> Self {
        let repeats_left = Cell::new(if is_patient { OPEN_WAIT_S_MAX * 1000 / OPEN_RETRY_MS } else { 0 });
        Self { root, hook, known_names, records: RefCell::default(), is_wanted, repeats_left }
    }

    /// Returns the root, to read without recording.
    pub(crate) fn root(&self) -> &'a Root {
        self.root
    }

    pub(crate) fn into_records(self) -> Records {
        self.records.into_inner()
    }
}

/// Repeats an open while another process holds a lease on the file, or no descriptor or memory is free.
///
/// An open that blocks would wait for a lease, but longer than a request does, and on a FIFO forever.
fn open_patiently<T>(
    is_wanted: impl Fn() -> bool,
    repeats_left: &Cell<u64>,
    mut open: impl FnMut() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    loop {
        match open() {
            Err(error) if error.is_passing() && is_wanted() && repeats_left.get() > 0 => {
                repeats_left.set(repeats_left.get() - 1);
                std::thread::sleep(Duration::from_millis(OPEN_RETRY_MS));
            }
            result => return result,
        }
    }
}

impl Disk for Recorder<'_> {
    /// Opens each name once: a file that is replaced meanwhile stays the same one for this request.
    fn open(&self, name: &[u8]) -> Result<Opened, OpenError> {
        if let Some(result) = self.records.borrow().opened(name) {
            return result;
        }
        if let Some(hook) = &self.hook {
            hook(name);
        }
        let (own, recorded) =
            match open_patiently(self.is_wanted, &self.repeats_left, || self.root.open_beneath(name))
                .map(Opened::shared)
            {
                Ok((own, recorded)) => (Ok(own), Ok(recorded)),
                Err(error) => (Err(error.clone()), Err(error)),
            };
        self.records.borrow_mut().opened.push((name.to_vec(), recorded));
        own
    }

    fn read_at(&self, opened: &Opened, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.root.read_at(opened, bytes, offset).inspect_err(|error| {
            self.records.borrow_mut().read_error = error.raw_os_error();
        })?;
        self.records.borrow_mut().read.push((opened.meta, offset, bytes[..read].to_vec()));
        Ok(read)
    }

    fn meta(&self, opened: &Opened) -> io::Result<Meta> {
        let meta = self.root.meta(opened)?;
        self.records.borrow_mut().metas.push((opened.meta, meta));
        Ok(meta)
    }

    fn names(&self, folder: &ListedFolder<'_>, is_descending: bool, now: Now) -> NamesResult {
        let names = match &self.known_names {
            Some(names) => Ok(Arc::clone(names)),
            None => self.root.names(folder, is_descending, now),
        };
        self.records.borrow_mut().names.push((folder.name.to_vec(), is_descending, names.clone()));
        names
    }

    fn rows(
        &self,
        folder: &ListedFolder<'_>,
        order: ListOrder,
        names: &FolderNames,
        start: usize,
    ) -> Result<Arc<ListPage>, OpenError> {
        let page = self.root.rows(folder, order, names, start)?;
        self.records.borrow_mut().rows.push((folder.name.to_vec(), order.key(), Arc::clone(&page)));
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::ErrorKind::{
        ExecutableFileBusy, Interrupted, Other, OutOfMemory, ResourceBusy, StaleNetworkFileHandle, WouldBlock,
    };

    use shearwater_io::fs::OpenError;

    use super::open_patiently;

    #[test]
    fn repeats_an_open_that_a_wait_may_mend() {
        for kind in [None, Some(WouldBlock), Some(Interrupted), Some(OutOfMemory)] {
            let error = || kind.map_or(OpenError::Descriptors, |kind| OpenError::Other(kind.into()));
            let opens = Cell::new(0);
            let open = || {
                opens.set(opens.get() + 1);
                if opens.get() < 4 { Err(error()) } else { Ok(()) }
            };
            assert!(open_patiently(|| true, &Cell::new(3), open).is_ok() && opens.get() == 4, "{kind:?}");
            for (is_wanted, repeats) in [(false, 60), (true, 0), (true, 2)] {
                let failed = open_patiently(|| is_wanted, &Cell::new(repeats), || Err::<(), _>(error()));
                assert!(failed.is_err_and(|error| error.is_passing()), "{kind:?}");
            }
        }
    }

    #[test]
    fn repeats_no_other_open() {
        for kind in [Other, StaleNetworkFileHandle, ResourceBusy, ExecutableFileBusy] {
            let opens = Cell::new(0);
            let open = || {
                opens.set(opens.get() + 1);
                Err::<(), _>(OpenError::Other(kind.into()))
            };
            assert!(open_patiently(|| true, &Cell::new(3), open).is_err() && opens.get() == 1, "{kind:?}");
        }
    }
}
