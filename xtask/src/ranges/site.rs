//! The files that are asked for.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::harness::folder::Folder;
use crate::harness::random::Random;
use crate::harness::trouble::{During, Outcome};

/// Length of the file that this server keeps in memory.
pub(super) const SMALL: usize = 1024;
/// Length of the file that it sends from the disk.
pub(super) const LARGE: usize = 1024 * 1024;

/// Writes them below `folder` and gives their root. nginx takes a date for a proof where its second is over, this server takes a date, and
/// the tag of a file that it sends from the disk, two seconds later: this waits for it.
pub(super) fn lay_out(folder: &Folder) -> Outcome<PathBuf> {
    let mut random = Random::stream(1, 0);
    let mut bytes = |len: usize| -> Vec<u8> { (0..len).map(|_| random.next() as u8).collect() };
    for (name, len) in
        [("small", SMALL), ("large", LARGE), ("packed", SMALL), ("packed.gz", SMALL / 2), ("empty", 0)]
    {
        folder.write(&format!("root/{name}"), &bytes(len))?;
    }
    let dated = folder.write("root/dated", &bytes(SMALL))?;
    let file = File::options().write(true).open(&dated).during("opening a file")?;
    file.set_modified(UNIX_EPOCH + Duration::from_secs(784_111_777)).during("setting a file's time")?;
    let written = SystemTime::now();
    while written.elapsed().unwrap_or_default() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(folder.path().join("root"))
}
