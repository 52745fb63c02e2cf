//! Leases: one instance at a time works on a certificate.
//!
//! A lease is the file `NAME.GENERATION` with the highest generation. A free one is taken by creating the next generation, which succeeds
//! for one instance; only the holder of a later generation removes earlier ones. So no lease is removed or replaced that another instance
//! has just taken.

use std::fs;

use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::limits::LEASE_SECONDS;
use crate::storage::Folder;

/// Identifies an instance: its machine, its namespace of processes, its process, and a random number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    machine: String,
    process: i32,
    random: u64,
}

impl Owner {
    /// Returns this process.
    pub(crate) fn current() -> Self {
        // Elsewhere than on Linux the machine is unknown, and leases of ended processes expire by time alone.
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let machine = match boot.trim() {
            "" => String::new(),
            boot => format!("{boot} {}", namespace.display()),
        };
        Self { machine, process: rustix::process::getpid().as_raw_pid(), random: fastrand::u64(..) }
    }

    /// Returns whether it is a process of this machine that has ended.
    fn has_ended(&self, observer: &Self) -> bool {
        let is_near = !self.machine.is_empty() && self.machine == observer.machine;
        let ended = |process| test_kill_process(process) == Err(rustix::io::Errno::SRCH);
        is_near && Pid::from_raw(self.process).is_some_and(ended)
    }
}

/// The content of a lease's file.
#[derive(Debug, Serialize, Deserialize)]
struct Terms {
    owner: Owner,
    /// Unix time; 0 if it was released.
    expires: u64,
}

/// A lease of this instance. Released when dropped.
#[derive(Debug)]
pub(crate) struct Lease<'a> {
    folder: &'a Folder,
    name: String,
    generation: u64,
    owner: Owner,
}

impl<'a> Lease<'a> {
    /// Takes the lease of a name; `None` if another instance holds it.
    pub(crate) fn take(
        folder: &'a Folder,
        name: &str,
        owner: &Owner,
        now: u64,
    ) -> Result<Option<Self>, Failure> {
        let highest = generations(folder, name)?.into_iter().max().unwrap_or(0);
        if highest > 0 && !is_free(folder, &file_name(name, highest), owner, now)? {
            return Ok(None);
        }
        let generation = highest + 1;
        if !folder.create(&file_name(name, generation), &terms(owner, now + LEASE_SECONDS))? {
            return Ok(None);
        }
        let lease = Self { folder, name: name.to_owned(), generation, owner: owner.clone() };
        if !lease.is_latest()? {
            // This instance was slow: the files that it has seen are gone, and a later generation exists.
            drop(folder.remove(&file_name(name, generation)));
            return Ok(None);
        }
        for earlier in generations(folder, name)?.into_iter().filter(|number| *number < generation) {
            drop(folder.remove(&file_name(name, earlier)));
        }
        Ok(Some(lease))
    }

    /// Extends it. Returns `false` if another instance has taken it because it had expired.
    pub(crate) fn renew(&self, now: u64) -> Result<bool, Failure> {
        let is_held = self.is_latest()?;
        if is_held {
            self.write(now + LEASE_SECONDS)?;
        }
        Ok(is_held)
    }

    fn is_latest(&self) -> Result<bool, Failure> {
        Ok(generations(self.folder, &self.name)?.into_iter().max() == Some(self.generation))
    }

    fn write(&self, expires: u64) -> Result<(), Failure> {
        self.folder.write(&file_name(&self.name, self.generation), &terms(&self.owner, expires))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // The file stays, so that its generation isn't used again.
        if self.is_latest().unwrap_or(false) {
            drop(self.write(0));
        }
    }
}

fn file_name(name: &str, generation: u64) -> String {
    format!("{name}.{generation}")
}

fn terms(owner: &Owner, expires: u64) -> Vec<u8> {
    serde_json::to_vec(&Terms { owner: owner.clone(), expires }).unwrap_or_default()
}

fn generations(folder: &Folder, name: &str) -> Result<Vec<u64>, Failure> {
    let generation = |file: &String| file.rsplit_once('.').filter(|(of, _)| *of == name)?.1.parse().ok();
    Ok(folder.names()?.iter().filter_map(generation).collect())
}

/// Returns whether a lease was released, has expired, or belongs to a process that has ended.
fn is_free(folder: &Folder, file: &str, observer: &Owner, now: u64) -> Result<bool, Failure> {
    let content = folder.read(file)?.unwrap_or_default();
    Ok(match serde_json::from_slice::<Terms>(&content) {
        // A far expiry is a wrong clock: it must not block the name for good.
        Ok(terms) => {
            terms.expires <= now || terms.expires > now + 2 * LEASE_SECONDS || terms.owner.has_ended(observer)
        }
        // Its owner is still writing it, or was killed before it had.
        Err(_) => folder.version(file)?.is_none_or(|version| version.seconds + LEASE_SECONDS <= now),
    })
}

#[cfg(test)]
mod tests;
