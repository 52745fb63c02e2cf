//! Swaps of the whole folder, by a link that leads to another release each time.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::content::content;
use super::kind::Kind;
use super::run::{AFTERWARDS, Amount, Outcomes, report_file};
use super::site::{self, Changing};
use super::tally::Tally;
use super::visitor::visit;
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::random::Random;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::{During, Outcome};

/// Age at which a release is removed. It is longer than the time for which it may still be served.
const RELEASE_KEPT: Duration = Duration::from_secs(2);

/// Number of files in a release. The largest file is left out, so that writing a release is quick.
const FILES: usize = 3;

/// To a client a swap looks as if each file was replaced by a rename.
const KIND: Kind = Kind::Renamed;

/// Swaps the link of a served folder again and again, beside clients that look at every byte.
pub(super) fn run(common: &Common, amount: &Amount, folder: &Folder, report: &mut Report) -> Outcome<()> {
    let root = folder.make("folder-swapped")?;
    let first = folder.make("folder-swapped/1")?;
    let mut files = site::lay_out(&first).during("the files")?;
    files.truncate(FILES);
    let current = root.join("current");
    symlink(&first, &current).during("the link")?;
    let server = Server::serve_folder(common, &current, folder)?;
    let (swaps, tallies) = swap_beside_clients(server.address(), &files, &root, amount).during("swapping")?;
    for (file, tally) in files.iter().zip(tallies) {
        report_file(report, "folder swapped", KIND, file, &Outcomes { changes: swaps, tally }, amount);
    }
    server.stop(report)
}

/// Returns the number of swaps, and the responses to requests for each file.
fn swap_beside_clients(
    address: SocketAddr,
    files: &[Changing],
    root: &Path,
    amount: &Amount,
) -> io::Result<(u32, Vec<Tally>)> {
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<Vec<_>> = (0..)
            .zip(files)
            .map(|(number, file)| {
                let client = |client| {
                    let random = Random::stream(amount.seed, number * amount.clients + client);
                    scope.spawn(move || visit(address, file, KIND, random, is_over))
                };
                (0..amount.clients).map(client).collect()
            })
            .collect();
        let swaps = swap_all(files, root, amount);
        thread::sleep(AFTERWARDS);
        is_over.store(true, Ordering::Relaxed);
        let joined = |clients: Vec<thread::ScopedJoinHandle<'_, Tally>>| {
            let mut tally = Tally::default();
            clients.into_iter().for_each(|client| tally.add(client.join().expect("no thread panics")));
            tally
        };
        let tallies = clients.into_iter().map(joined).collect();
        Ok((swaps?, tallies))
    })
}

fn swap_all(files: &[Changing], root: &Path, amount: &Amount) -> io::Result<u32> {
    let begun = Instant::now();
    let mut kept: Vec<(Instant, PathBuf)> = Vec::new();
    for done in 0..amount.changes {
        if begun.elapsed() > amount.patience {
            return Ok(done);
        }
        // The first generation is there.
        kept.push((Instant::now(), swap(files, root, done + 2)?));
        while kept.first().is_some_and(|(swapped, _)| swapped.elapsed() > RELEASE_KEPT) {
            fs::remove_dir_all(kept.remove(0).1)?;
        }
        thread::sleep(amount.pace);
    }
    Ok(amount.changes)
}

/// Makes a release and points the link at it.
fn swap(files: &[Changing], root: &Path, generation: u32) -> io::Result<PathBuf> {
    let (release, next) = (root.join(generation.to_string()), root.join("next"));
    fs::create_dir(&release)?;
    let forms = || files.iter().flat_map(|file| &file.forms);
    for form in forms() {
        let target = &form.target;
        let name = target.path.file_name().expect("it has a name");
        fs::write(release.join(name), content(generation, target.form, target.len))?;
    }
    symlink(&release, &next)?;
    forms().for_each(|form| form.history.begin(Some((generation, form.target.len as u64))));
    fs::rename(&next, root.join("current"))?;
    forms().for_each(|form| form.history.done());
    Ok(release)
}
