//! Queues of slots: each slot is in at most one of them, and can leave it from any position.

/// A queue in the order of arrival.
#[derive(Default)]
pub(crate) struct Fifo {
    newest: Option<u32>,
    oldest: Option<u32>,
    pub(crate) entries: usize,
    /// Bytes of all entries.
    pub(crate) bytes: u64,
}

/// The neighbours of each slot in its queue.
#[derive(Default)]
pub(crate) struct Links {
    neighbours: Vec<Neighbours>,
}

#[derive(Clone, Copy, Default)]
struct Neighbours {
    newer: Option<u32>,
    older: Option<u32>,
}

impl Fifo {
    pub(crate) fn oldest(&self) -> Option<usize> {
        self.oldest.map(|at| at as usize)
    }

    /// Adds a slot that is in no queue.
    ///
    /// # Panics
    /// For slot numbers of more than 32 bits: a cache has fewer entries.
    pub(crate) fn push(&mut self, links: &mut Links, at: usize, bytes: u64) {
        let slot = u32::try_from(at).expect("a cache has less than 2^32 entries");
        if links.neighbours.len() <= at {
            links.neighbours.resize(at + 1, Neighbours::default());
        }
        links.neighbours[at] = Neighbours { newer: None, older: self.newest };
        match self.newest.replace(slot) {
            Some(older) => links.neighbours[older as usize].newer = Some(slot),
            None => self.oldest = Some(slot),
        }
        self.entries += 1;
        self.bytes += bytes;
    }

    /// Removes a slot of this queue, which was added with so many bytes.
    pub(crate) fn unlink(&mut self, links: &mut Links, at: usize, bytes: u64) {
        let Neighbours { newer, older } = links.neighbours[at];
        match newer {
            Some(newer) => links.neighbours[newer as usize].older = older,
            None => self.newest = older,
        }
        match older {
            Some(older) => links.neighbours[older as usize].newer = newer,
            None => self.oldest = newer,
        }
        self.entries -= 1;
        self.bytes -= bytes;
    }
}
