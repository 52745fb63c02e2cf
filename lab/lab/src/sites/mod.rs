//! What configured sites cost beside a bare folder: user instructions of a request, how soon many sites answer, and their memory.
//!
//! The folder is the same for all, and so are the requests: what differs is only what stands between the two.

mod asks;
mod configurations;
mod start;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use configurations::{Sites, text};

use crate::binaries::Binaries;
use crate::instructions::{self, Subject};
use crate::process::Launch;
use crate::scenario::file_bytes;
use crate::site::Site;
use crate::verdicts::Verdicts;
use asks::Ask;

/// A realistic site may cost so many instructions more than the folder.
const SITE_COST_MAX: f64 = 400.0;
/// A request to one of 1,000 sites of 100 routes each may cost so many times one to the only site.
const MANY_FACTOR_MAX: f64 = 1.1;
/// So soon they answer.
const START_S_MAX: f64 = 1.0;
/// A file of 1 KiB, and the lengths of its siblings by their codings.
const FILE: &str = "page-of-1k.html";
const FILE_BYTES: usize = 1024;
const BROTLI_BYTES: usize = 512;
const GZIP_BYTES: usize = 600;

const NOTE: &str = "User instructions of one request by callgrind (epoll, one worker, 32 connections): the difference of two runs over their \
                    difference in requests.\nThe start is counted from the process's beginning to its first answer.";

const ONE: Sites = Sites::Many { sites: 1, routes: 1 };
const MANY_SMALL: Sites = Sites::Many { sites: 1_000, routes: 1 };
const MANY: Sites = Sites::Many { sites: 1_000, routes: 100 };

/// What servers are started from.
struct Stage<'a> {
    binaries: &'a Binaries,
    site: Site,
}

impl Stage<'_> {
    fn launch(&self, sites: Sites, address: SocketAddr) -> Result<Launch, String> {
        launch(sites, self.binaries.program(), address, &self.site)
    }

    fn write_files(&self) -> Result<(), String> {
        let files = [
            (FILE.to_owned(), FILE_BYTES),
            (format!("{FILE}.br"), BROTLI_BYTES),
            (format!("{FILE}.gz"), GZIP_BYTES),
            // Shown with a 404.
            ("404.html".to_owned(), 300),
        ];
        for (name, length) in files {
            let path = self.site.public().join(name);
            fs::write(&path, file_bytes(length)).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }
}

/// How our program is started on the site's folder, with one worker on epoll.
///
/// # Errors
/// The configuration cannot be written.
pub fn launch(sites: Sites, program: PathBuf, address: SocketAddr, site: &Site) -> Result<Launch, String> {
    let public = site.public();
    let arguments = match sites {
        Sites::Bare => {
            let (public, address) = (public.display().to_string(), address.to_string());
            [&public, "--listen", &address, "--workers", "1", "--driver", "epoll"].map(str::to_owned).to_vec()
        }
        _ => {
            let file = site.write("sites.toml", &text(sites, address, &public))?;
            vec!["--config".to_owned(), file.display().to_string()]
        }
    };
    Ok(Launch { program, arguments, environment: Vec::new() })
}

/// Measures all of it: some minutes, for an instruction that is counted takes as long as fifty.
///
/// # Errors
/// valgrind is missing, a server doesn't start, or an answer isn't what was asked for.
pub fn run(binaries: &Binaries, say: &dyn Fn(&str)) -> Result<Verdicts, String> {
    let site = Site::create().map_err(|error| format!("creating the site: {error}"))?;
    let stage = Stage { binaries, site };
    stage.write_files()?;
    let count = |sites: Sites, ask: Ask| {
        say(&format!("instructions: {sites}, {ask}"));
        instructions::per_request(&Subject {
            launch: &|address| stage.launch(sites, address),
            send: &|address, requests| asks::send(address, sites, ask, requests),
            site: &stage.site,
        })
    };
    let mut outcome = Verdicts::new(NOTE);
    of_a_site(&mut outcome, &count)?;
    of_many(&mut outcome, &count)?;
    for sites in [Sites::Bare, Sites::Real, MANY_SMALL, MANY] {
        say(&format!("start: {sites}"));
        let started = start::measure(&stage, sites)?;
        let (seconds, now, peak) = (started.seconds, started.now_mib, started.peak_mib);
        let figure = format!("{seconds:.3} s; {now:.1} MiB, at most {peak:.1}");
        outcome.judged(&format!("start, {sites}"), figure, "1 s", seconds <= START_S_MAX);
    }
    Ok(outcome)
}

type Count<'a> = dyn Fn(Sites, Ask) -> Result<f64, String> + 'a;

/// The folder against a site as people have them, for requests that say little and much.
fn of_a_site(outcome: &mut Verdicts, count: &Count<'_>) -> Result<(), String> {
    for ask in [Ask::Plain, Ask::Full, Ask::FullCoded] {
        let (bare, real) = (count(Sites::Bare, ask)?, count(Sites::Real, ask)?);
        outcome.shown(&format!("{}, {ask}", Sites::Bare), format!("{bare:.1}"));
        let more = real - bare;
        let figure = format!("{real:.1} (+ {more:.1})");
        outcome.judged(
            &format!("{}, {ask}", Sites::Real),
            figure,
            "the folder's + 400",
            more <= SITE_COST_MAX,
        );
    }
    Ok(())
}

/// One site against a thousand, by ways that are remembered and by more than are.
fn of_many(outcome: &mut Verdicts, count: &Count<'_>) -> Result<(), String> {
    for ask in [Ask::FewWays, Ask::ManyWays] {
        let (of_one, of_many) = (count(ONE, ask)?, count(MANY, ask)?);
        outcome.shown(&format!("{ONE}, {ask}"), format!("{of_one:.1}"));
        let factor = of_many / of_one;
        let figure = format!("{of_many:.1} (x {factor:.3})");
        outcome.judged(&format!("{MANY}, {ask}"), figure, "one site's x 1.1", factor <= MANY_FACTOR_MAX);
    }
    Ok(())
}
