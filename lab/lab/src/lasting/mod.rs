//! What lasts: events for an hour, an upload of gigabytes, a thousand WebSockets. Nothing may be lost, and memory has to stay where it is.

mod hour;
mod minute;
mod upload;
mod websocket;
mod websockets;

use std::net::SocketAddr;

use crate::binaries::Binaries;
use crate::memory::{self, Resident};
use crate::process::{Launch, Server, free_address};
use crate::site::Site;
use crate::verdicts::Verdicts;

/// So much may the server's memory grow at its peak by what it is sent, in MiB.
const GROWTH_MIB_MAX: f64 = 16.0;

const NOTE: &str = "The first by a handler of our own on a simulated kernel and its clock; the others by an axum app on our engine: \
                    one worker, memory of the whole process.";

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// Events of our own handler, for an hour of the simulated clock.
    Hour,
    /// Events of axum's, for a minute.
    Minute,
    /// An upload that axum reads as it comes.
    Upload,
    /// WebSockets of axum's.
    WebSockets,
}

const TRIALS: [(&str, Trial); 4] = [
    ("sse-hour", Trial::Hour),
    ("sse-minute", Trial::Minute),
    ("upload", Trial::Upload),
    ("websockets", Trial::WebSockets),
];

/// The trials of these names, with commas between; without names all.
///
/// # Errors
/// A name that there is none of.
pub fn select(only: Option<&str>) -> Result<Vec<Trial>, String> {
    let Some(only) = only else { return Ok(TRIALS.map(|(_, trial)| trial).to_vec()) };
    let find = |wanted: &str| {
        let found = TRIALS.iter().find(|(name, _)| *name == wanted).map(|(_, trial)| *trial);
        found.ok_or_else(|| {
            format!("no trial {wanted:?}; there are {}", TRIALS.map(|(name, _)| name).join(", "))
        })
    };
    only.split(',').map(find).collect()
}

/// What a trial of an axum app has shown: in words, and by how much the server's memory grew at its peak.
struct Shown {
    figure: String,
    growth_mib: Option<f64>,
}

/// Runs them one after the other. What goes wrong in one fails it.
///
/// # Errors
/// The app can't be built.
pub fn run(trials: &[Trial], driver: &str, profile: &str, say: &dyn Fn(&str)) -> Result<Verdicts, String> {
    crate::idle::raise_descriptor_limit();
    let needs_app = trials.iter().any(|trial| *trial != Trial::Hour);
    let binaries = needs_app.then(|| Binaries::build_lasting(profile)).transpose()?;
    let mut verdicts = Verdicts::new(NOTE);
    for trial in trials {
        say(trial.about());
        let shown = match (trial, &binaries) {
            (Trial::Hour, _) => hour::run().map(|figure| Shown { figure, growth_mib: None }),
            (_, Some(binaries)) => trial.on_app(binaries, driver),
            (_, None) => Err("the app was not built".to_owned()),
        };
        trial.judge(&mut verdicts, shown);
    }
    Ok(verdicts)
}

impl Trial {
    fn about(self) -> &'static str {
        match self {
            Self::Hour => hour::ABOUT,
            Self::Minute => minute::ABOUT,
            Self::Upload => upload::ABOUT,
            Self::WebSockets => websockets::ABOUT,
        }
    }

    fn judge(self, verdicts: &mut Verdicts, shown: Result<Shown, String>) {
        let bound = "nothing lost";
        match shown {
            Err(why) => verdicts.judged(self.about(), why, bound, false),
            Ok(Shown { figure, growth_mib: None }) => verdicts.judged(self.about(), figure, bound, true),
            Ok(Shown { figure, growth_mib: Some(mib) }) => {
                let bound = format!("{bound}, {GROWTH_MIB_MAX} MiB more");
                verdicts.judged(self.about(), figure, &bound, mib <= GROWTH_MIB_MAX);
            }
        }
    }

    /// On a fresh server; its memory is looked at before and after.
    fn on_app(self, binaries: &Binaries, driver: &str) -> Result<Shown, String> {
        let site = Site::create().map_err(|error| format!("creating the site: {error}"))?;
        let address = free_address(&mut 0)?;
        let environment = vec![
            ("LASTING_LISTEN", address.to_string()),
            ("LASTING_DRIVER", driver.to_owned()),
            ("LASTING_EVERY_MS", minute::EVERY_MS.to_string()),
        ];
        let launch = Launch { program: binaries.lasting(), arguments: Vec::new(), environment };
        let mut server = Server::start(&launch, address, &site.folder().join("server.log"))?;
        server.find_processes();
        let before = memory::of_processes(server.ids());
        let done = self.exchange(address)?;
        let after = memory::of_processes(server.ids());
        let growth_mib = growth_mib(before, after)?;
        let figure = format!(
            "{done}; RSS {:.1} MiB before, {:.1} after, {:.1} at most",
            mib(before.now_kib),
            mib(after.now_kib),
            mib(after.peak_kib)
        );
        // Each upgraded connection has a task of the service's and buffers of its own: what they take is shown.
        Ok(Shown { figure, growth_mib: (self != Self::WebSockets).then_some(growth_mib) })
    }

    fn exchange(self, address: SocketAddr) -> Result<String, String> {
        match self {
            Self::Hour => hour::run(),
            Self::Minute => minute::run(address),
            Self::Upload => upload::run(address),
            Self::WebSockets => websockets::run(address),
        }
    }
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

fn growth_mib(before: Resident, after: Resident) -> Result<f64, String> {
    match after.now_kib {
        0 => Err("the server is gone".to_owned()),
        _ => Ok(mib(after.peak_kib.saturating_sub(before.now_kib))),
    }
}

#[cfg(test)]
mod tests {
    use super::{GROWTH_MIB_MAX, Shown, Trial, select};
    use crate::verdicts::Verdicts;

    fn is_met(shown: Result<Shown, String>) -> bool {
        let mut verdicts = Verdicts::new("");
        Trial::Upload.judge(&mut verdicts, shown);
        verdicts.is_met()
    }

    #[test]
    fn what_is_lost_or_grows_is_not_met() {
        let shown = |growth_mib| Ok(Shown { figure: String::new(), growth_mib });
        assert!(is_met(shown(None)) && is_met(shown(Some(GROWTH_MIB_MAX))));
        assert!(!is_met(shown(Some(GROWTH_MIB_MAX + 0.1))));
        assert!(!is_met(Err("planted".to_owned())));
    }

    #[test]
    fn trials_are_selected_by_name() {
        assert_eq!(select(None).expect("all").len(), 4);
        assert_eq!(select(Some("upload,sse-hour")), Ok(vec![Trial::Upload, Trial::Hour]));
        assert!(select(Some("uploads")).is_err());
    }
}
