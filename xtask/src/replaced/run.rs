//! One driver: every kind of change, each of all files at once, beside clients that look at every byte.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::kind::Kind;
use super::site::{self, Changing};
use super::swapped;
use super::tally::Tally;
use super::visitor::visit;
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::random::Random;
use crate::harness::report::Report;
use crate::harness::server::Server;
use crate::harness::trouble::{During, Outcome};

/// How long the clients go on after the last change: no old answer may begin after a second.
pub(super) const AFTERWARDS: Duration = Duration::from_millis(1500);

/// A file that is longer is on its way for so long that some change meets it there.
const LARGE_BYTES: usize = 1024 * 1024;

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amount {
    /// Changes of each file in each way.
    pub(super) changes: u32,
    /// Between two changes.
    pub(super) pace: Duration,
    /// Clients of each file.
    pub(super) clients: u64,
    /// Changing ends then, done or not.
    pub(super) patience: Duration,
    pub(super) seed: u64,
}

/// What came of one file.
pub(super) struct Outcomes {
    pub(super) changes: u32,
    pub(super) tally: Tally,
}

/// Changes everything in every way.
pub(super) fn run(common: &Common, amount: &Amount) -> Outcome<Report> {
    let begun = Instant::now();
    let folder = Folder::new(common.keep)?;
    let mut report = Report::new();
    for kind in Kind::ALL {
        let kind_begun = Instant::now();
        // A folder and a server of its own: no tag is of two runs.
        let root = folder.make(&kind.name().replace(' ', "-"))?;
        let files = site::lay_out(&root).during("the files")?;
        let server = Server::serve_folder(common, &root, &folder)?;
        let outcomes = thread::scope(|scope| {
            let (address, files) = (server.address(), files.iter().enumerate());
            let all: Vec<_> = files
                .map(|(number, file)| {
                    scope.spawn(move || change_beside_clients(address, file, number as u64, kind, amount))
                })
                .collect();
            all.into_iter().map(|one| one.join().expect("no thread panics")).collect::<io::Result<Vec<_>>>()
        });
        for (file, outcomes) in files.iter().zip(outcomes.during("changing a file")?) {
            report_file(&mut report, kind.name(), kind, file, &outcomes, amount);
        }
        server.stop(&mut report)?;
        report
            .note(&format!("{}: took", kind.name()), format!("{:.1} s", kind_begun.elapsed().as_secs_f64()));
    }
    swapped::run(common, amount, &folder, &mut report)?;
    report.note("took", format!("{:.1} s", begun.elapsed().as_secs_f64()));
    Ok(report)
}

fn change_beside_clients(
    address: SocketAddr,
    file: &Changing,
    number: u64,
    kind: Kind,
    amount: &Amount,
) -> io::Result<Outcomes> {
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..amount.clients)
            .map(|client| {
                let random = Random::stream(amount.seed, number * amount.clients + client);
                scope.spawn(move || visit(address, file, kind, random, is_over))
            })
            .collect();
        let changes = change(file, kind, amount);
        thread::sleep(AFTERWARDS);
        is_over.store(true, Ordering::Relaxed);
        let mut tally = Tally::default();
        for client in clients {
            tally.add(client.join().expect("no thread panics"));
        }
        Ok(Outcomes { changes: changes?, tally })
    })
}

/// Changes a file again and again; how often.
fn change(file: &Changing, kind: Kind, amount: &Amount) -> io::Result<u32> {
    let begun = Instant::now();
    for done in 0..amount.changes {
        if begun.elapsed() > amount.patience {
            return Ok(done);
        }
        // The first generation is there.
        kind.change(&file.forms, done + 2, amount.pace / 2)?;
        // Never less: of changes within one tick of the file system's clock nobody can tell how many they were.
        thread::sleep(amount.pace);
    }
    Ok(amount.changes)
}

pub(super) fn report_file(
    report: &mut Report,
    what: &str,
    kind: Kind,
    file: &Changing,
    outcomes: &Outcomes,
    amount: &Amount,
) {
    let Outcomes { changes, tally } = outcomes;
    let name = format!("{what}, {}", file.what);
    report.note(&format!("{name}: answers"), tally.line());
    let tags: u64 = file.forms.iter().map(super::site::Form::tags).sum();
    report.note(&format!("{name}: versions seen"), tags);
    report.equal(&format!("{name}: changes"), u64::from(*changes), u64::from(amount.changes));
    report.equal(&format!("{name}: answers that were not promised"), tally.wrong, 0);
    report.examples("wrong", &tally.examples);
    // Otherwise nothing was shown.
    report.check(&format!("{name}: versions seen whole"), tags, "> 1", tags > 1 && tally.whole > 0);
    if kind.is_in_place() && file.forms[0].target.len > LARGE_BYTES {
        report.check(&format!("{name}: closed short of the length"), tally.short, "> 0", tally.short > 0);
    }
    if kind == Kind::Deleted {
        report.check(&format!("{name}: seen as gone"), tally.missing, "> 0", tally.missing > 0);
    }
}
