//! What the servers need on disk during a run: files to serve, configurations, scripts. All of it goes with the run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::scenario::{SCENARIOS, Scenario, Source, VARIED_PATHS, file_bytes};

/// So long after it was written a large file counts as left alone, in seconds: our own server copies one that was changed within ten
/// seconds, in whole seconds of its clock, as part of a deploy that goes on.
pub const SETTLED_S: u64 = 11;

/// A folder of this run; dropped, it is removed.
#[derive(Debug)]
pub struct Site {
    folder: PathBuf,
}

impl Site {
    /// Creates the folder and all files that the scenarios ask for.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn create() -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("shearwater-lab-{}", std::process::id()));
        let site = Self { folder };
        fs::create_dir_all(site.public())?;
        for scenario in SCENARIOS.iter().filter(|scenario| scenario.source == Source::File) {
            site.create_files(scenario)?;
        }
        Ok(site)
    }

    fn create_files(&self, scenario: &Scenario) -> io::Result<()> {
        for path in self.files(scenario) {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, file_bytes(scenario.body_bytes))?;
        }
        Ok(())
    }

    /// The files that a scenario asks for.
    fn files(&self, scenario: &Scenario) -> impl Iterator<Item = PathBuf> {
        let public = self.public();
        let numbers = if scenario.varied { VARIED_PATHS } else { 1 };
        (0..numbers).map(move |number| public.join(scenario.target(number).trim_start_matches('/')))
    }

    /// Waits until the files of a scenario have been left alone long enough, where that matters; progress goes to `say`.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn settle(&self, scenario: &Scenario, say: &dyn Fn(&str)) -> Result<(), String> {
        let left = self.settles_in(scenario, SystemTime::now());
        let left = left.map_err(|error| format!("the site's files: {error}"))?;
        if !left.is_zero() {
            say(&format!(
                "{}: {:.1} s until its files are {SETTLED_S} s old",
                scenario.name,
                left.as_secs_f64()
            ));
            thread::sleep(left);
        }
        Ok(())
    }

    /// How long after `now` a scenario's files will have been left alone long enough: at most `SETTLED_S`.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn settles_in(&self, scenario: &Scenario, now: SystemTime) -> io::Result<Duration> {
        let settled = Duration::from_secs(SETTLED_S);
        let mut left = Duration::ZERO;
        for path in self.files(scenario).filter(|_| scenario.has_to_settle()) {
            // A file from the future is as good as one from now.
            let age = now.duration_since(fs::metadata(path)?.modified()?).unwrap_or(Duration::ZERO);
            left = left.max(settled.saturating_sub(age));
        }
        Ok(left)
    }

    /// What is served.
    pub fn public(&self) -> PathBuf {
        self.folder.join("public")
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file beside what is served.
    ///
    /// # Errors
    /// What the file system refuses.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // What cannot be removed lies in the system's folder for such things.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
