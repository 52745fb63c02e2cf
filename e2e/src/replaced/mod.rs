//! Group `replaced`: files that change while they are served. No response is a mixture, and none is old.
//!
//! A file that is renamed over or deleted is sent whole, as it was or as it is. A file that is truncated or rewritten in place is sent
//! whole, or the connection ends short of `Content-Length`, or, while its writer isn't done, it is sent as it is at that moment. Where a
//! link leads to another folder, each response is from one of the two. An entity tag belongs to one version. No response that begins a
//! second after a change is older than the change.

mod history;
mod judge;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use testkit::versions::{VersionedFile, content};

use self::history::FileForm;
use self::judge::Judgement;
use crate::context::{CaseContext, in_threads};
use crate::report::CaseReport;

/// Clients of each file.
const CLIENTS: usize = 2;
/// Time between two changes. Changes within one tick of the file system's clock can't be distinguished.
const INTERVAL: Duration = Duration::from_millis(6);
/// Time that clients continue after the last change: an old response must not begin after a second.
const AFTERWARDS: Duration = Duration::from_millis(1500);
/// A file that is longer is sent for so long that some change meets it.
const LARGE_BYTES: usize = 1024 * 1024;
/// Age at which an old release of a swapped folder is removed, longer than it may be served.
const RELEASE_KEPT: Duration = Duration::from_secs(2);

/// A way to change a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileChange {
    Renamed,
    Truncated,
    Rewritten,
    Deleted,
}

/// A served file with its forms: itself, and perhaps a compressed sibling.
struct Changing {
    what: &'static str,
    target: &'static str,
    forms: Vec<FileForm>,
    tally: Mutex<FileTally>,
}

/// Promised responses by their kind, and the broken promises.
#[derive(Default)]
struct FileTally {
    counts: BTreeMap<Judgement, u64>,
    errors: Vec<String>,
}

impl Changing {
    fn record(&self, judgement: Result<Judgement, String>) {
        let mut tally = self.tally();
        match judgement {
            Ok(judgement) => *tally.counts.entry(judgement).or_default() += 1,
            Err(error) => tally.errors.push(error),
        }
    }

    fn count(&self, judgement: Judgement) -> u64 {
        self.tally().counts.get(&judgement).copied().unwrap_or(0)
    }

    fn tally(&self) -> MutexGuard<'_, FileTally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Name in the report, target, length, and true for a file with a sibling.
const FILES: [(&str, &str, usize, bool); 4] = [
    ("1 KiB", "/small.bin", 1024, false),
    ("100 KiB", "/middle.bin", 100 * 1024, false),
    ("100 KiB and sibling", "/packed.bin", 100 * 1024, true),
    ("3 MiB", "/large.bin", 3 * 1024 * 1024, false),
];

/// Writes the first version of every file.
fn lay_out(root: &Path) -> io::Result<Vec<Changing>> {
    fs::create_dir_all(root)?;
    let lay_out = |(what, target, len, has_sibling): (_, &'static str, _, _)| {
        let path = |extension| root.join(format!("{}{extension}", &target[1..]));
        let mut forms = vec![FileForm::new(VersionedFile { path: path(""), len, form: 0 })];
        if has_sibling {
            forms.push(FileForm::new(VersionedFile { path: path(".zst"), len: len / 2, form: 1 }));
        }
        forms.iter().try_for_each(|form| form.replace(1))?;
        Ok(Changing { what, target, forms, tally: Mutex::default() })
    };
    FILES.into_iter().map(lay_out).collect()
}

/// Swaps the link that leads to the served folder. To clients each swap looks like a rename of every file.
pub(crate) fn swap_folders(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let first = context.folder.join("1");
    let mut files = lay_out(&first)?;
    // Writing a release takes too long with the largest file.
    files.pop();
    let current = context.folder.join("current");
    symlink(&first, &current).context("making the link")?;
    let mut server = context.serve(&current)?;
    let swaps = beside_clients(context, server.address(), &files, FileChange::Renamed, || {
        let mut releases: Vec<(Instant, PathBuf)> = Vec::new();
        until_done(context, |version| {
            releases.push((Instant::now(), swap(&files, context.folder, version)?));
            while releases.first().is_some_and(|(swapped, _)| swapped.elapsed() > RELEASE_KEPT) {
                fs::remove_dir_all(releases.remove(0).1)?;
            }
            Ok(())
        })
    });
    let swaps = swaps?;
    files.iter().for_each(|file| file.report(report, FileChange::Renamed, swaps));
    report.stop(&mut server);
    Ok(())
}

/// Writes a release and points the link to it.
fn swap(files: &[Changing], root: &Path, version: u32) -> io::Result<PathBuf> {
    let (release, next) = (root.join(version.to_string()), root.join("next"));
    fs::create_dir(&release)?;
    let forms = || files.iter().flat_map(|file| &file.forms);
    for VersionedFile { path, len, form } in forms().map(|form| &form.file) {
        fs::write(release.join(path.file_name().unwrap_or_default()), content(version, *form, *len))?;
    }
    symlink(&release, &next)?;
    forms().for_each(|form| form.history.begin(Some((version, form.file.len as u64))));
    fs::rename(&next, root.join("current"))?;
    forms().for_each(|form| form.history.done());
    Ok(release)
}

/// Makes change after change, for a number of times or for the time on the command line. Returns the number of changes.
fn until_done(context: &CaseContext<'_>, mut change: impl FnMut(u32) -> io::Result<()>) -> io::Result<u32> {
    let begun = Instant::now();
    let most = context.count(150, 1000) as u32;
    let mut done = 0;
    while context.args.seconds.map_or(done < most, |seconds| begun.elapsed().as_secs() < seconds) {
        // The first version exists.
        change(done + 2)?;
        done += 1;
        thread::sleep(INTERVAL);
    }
    Ok(done)
}

/// Does `work` while clients request every file and judge every response.
fn beside_clients<T>(
    context: &CaseContext<'_>,
    address: SocketAddr,
    files: &[Changing],
    change: FileChange,
    work: impl FnOnce() -> T,
) -> T {
    let over = &AtomicBool::new(false);
    thread::scope(|scope| {
        for (part, file) in (0..).zip(files.iter().flat_map(|file| [file; CLIENTS])) {
            let random = context.random(part);
            scope.spawn(move || judge::request_until(over, address, file, change, random));
        }
        let done = work();
        thread::sleep(AFTERWARDS);
        over.store(true, Ordering::Relaxed);
        done
    })
}

impl Changing {
    fn report(&self, report: &mut CaseReport, change: FileChange, changes: u32) {
        let what = |text: &str| format!("{}: {text}", self.what);
        report.note(what("changes"), changes);
        report.note(what("responses"), format!("{:?}", self.tally().counts));
        report.none(what("responses that break a promise"), &self.tally().errors);
        // Otherwise nothing was shown.
        report.within(what("whole responses"), self.count(Judgement::Whole), 1..=u64::MAX);
        let versions: usize = self.forms.iter().map(FileForm::versions).sum();
        report.within(what("versions seen"), versions as u64, 2..=u64::MAX);
        if change.is_in_place() && self.forms[0].file.len > LARGE_BYTES {
            let short = self.count(Judgement::Short);
            report.within(what("connections closed short of the length"), short, 1..=u64::MAX);
        }
    }
}

impl FileChange {
    /// Changes every file in this way beside clients.
    pub(crate) fn run(self, context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
        let root = context.folder.join("public");
        let files = lay_out(&root)?;
        let mut server = context.serve(&root)?;
        let done = beside_clients(context, server.address(), &files, self, || {
            let change_all = |number: u64| {
                until_done(context, |version| self.apply(&files[number as usize].forms, version))
            };
            in_threads(files.len() as u64, change_all).into_iter().collect::<io::Result<Vec<u32>>>()
        });
        for (file, changes) in files.iter().zip(done?) {
            file.report(report, self, changes);
        }
        if self == Self::Deleted {
            let missing = files.iter().map(|file| file.count(Judgement::Missing)).sum();
            report.within("responses that show a file as missing", missing, 1..=u64::MAX);
        }
        report.stop(&mut server);
        Ok(())
    }

    /// Returns true if the file that is being sent changes itself.
    fn is_in_place(self) -> bool {
        matches!(self, Self::Truncated | Self::Rewritten)
    }

    /// Brings all forms of a file to a version.
    fn apply(self, forms: &[FileForm], version: u32) -> io::Result<()> {
        match self {
            Self::Renamed => forms.iter().try_for_each(|form| form.replace(version)),
            Self::Rewritten => forms.iter().try_for_each(|form| form.rewrite(version)),
            Self::Truncated => {
                forms.iter().try_for_each(|form| form.replace(version))?;
                thread::sleep(INTERVAL / 2);
                forms.iter().try_for_each(|form| form.truncate(version))
            }
            Self::Deleted => {
                forms.iter().try_for_each(FileForm::remove)?;
                thread::sleep(INTERVAL / 2);
                forms.iter().try_for_each(|form| form.replace(version))
            }
        }
    }
}
