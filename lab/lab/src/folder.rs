//! A run's folder: files to serve, configurations, scripts, logs. It is removed when dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::scenario::{SCENARIOS, Scenario, Source, VARIED_PATHS, file_bytes};

#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates the folder and all files that the scenarios request.
    pub(crate) fn create() -> Result<Self, String> {
        let folder = Self(std::env::temp_dir().join(format!("shearwater-lab-{}", std::process::id())));
        folder.write_files().map_err(|error| format!("{}: {error}", folder.0.display()))?;
        Ok(folder)
    }

    fn write_files(&self) -> io::Result<()> {
        for scenario in SCENARIOS.iter().filter(|scenario| scenario.source == Source::File) {
            for path in self.files(scenario) {
                fs::create_dir_all(path.parent().unwrap_or(&path))?;
                fs::write(path, file_bytes(scenario.body_bytes))?;
            }
        }
        Ok(())
    }

    /// Returns the files that a scenario requests.
    fn files(&self, scenario: &Scenario) -> impl Iterator<Item = PathBuf> {
        let public = self.public();
        let numbers = if scenario.varied { VARIED_PATHS } else { 1 };
        (0..numbers).map(move |number| public.join(scenario.target(number).trim_start_matches('/')))
    }

    /// Waits until the files of a scenario are old enough, where that matters.
    pub(crate) fn settle(&self, scenario: &Scenario) -> Result<(), String> {
        let left = self
            .settles_in(scenario, SystemTime::now())
            .map_err(|error| format!("the served files: {error}"))?;
        if !left.is_zero() {
            crate::progress(&format!("{}: waiting {left:.1?} until its files are old enough", scenario.name));
            thread::sleep(left);
        }
        Ok(())
    }

    fn settles_in(&self, scenario: &Scenario, now: SystemTime) -> io::Result<Duration> {
        let mut left = Duration::ZERO;
        for path in self.files(scenario).filter(|_| scenario.source == Source::File) {
            // A file from the future counts as new.
            let age = now.duration_since(fs::metadata(path)?.modified()?).unwrap_or(Duration::ZERO);
            left = left.max(Duration::from_secs(scenario.settled_s()).saturating_sub(age));
        }
        Ok(left)
    }

    /// Returns the served folder.
    pub(crate) fn public(&self) -> PathBuf {
        self.0.join("public")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file beside the served folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system clears its temporary folder of anything that can't be removed.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_must_settle_large_ones_longer() {
        let folder = Folder::create().expect("a temporary folder");
        let seconds_left = |name: &str, age_s: u64| {
            let scenario = crate::scenario::find(name).expect("a scenario");
            let file = folder.public().join(scenario.target(0).trim_start_matches('/'));
            let written = fs::metadata(file).and_then(|meta| meta.modified()).expect("it was written");
            folder.settles_in(scenario, written + Duration::from_secs(age_s)).expect("it is there").as_secs()
        };
        for name in ["1m", "1m-narrow", "1m-auto", "100k"] {
            assert_eq!(
                [0, 4, 10, 11, 3_600].map(|age_s| seconds_left(name, age_s)),
                [11, 7, 1, 0, 0],
                "{name}"
            );
        }
        assert_eq!(["1k", "6.4k"].map(|name| seconds_left(name, 0)), [4, 4]);
        let large = crate::scenario::find("1m").expect("a scenario");
        let past = folder.settles_in(large, SystemTime::UNIX_EPOCH).expect("it is there");
        assert_eq!(past, Duration::from_secs(11), "a clock that was set back makes no longer wait");
    }
}
