//! A run's folder: files to serve, configurations, scripts, logs. It is removed when dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::scenario::{self, ResponseSource, Scenario, file_bytes};

#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    /// When the last file was written.
    written: Instant,
}

impl RunFolder {
    /// Creates the folder and all files that the scenarios request.
    pub(crate) fn create() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("shearwater-lab-{}", std::process::id()));
        let mut folder = Self { path, written: Instant::now() };
        for scenario in scenario::all().iter().filter(|scenario| scenario.source == ResponseSource::File) {
            for target in scenario.targets() {
                folder
                    .serve(&target, &file_bytes(scenario.file_bytes))
                    .map_err(|error| format!("{target}: {error}"))?;
            }
        }
        Ok(folder)
    }

    /// Writes a served file.
    pub(crate) fn serve(&mut self, target: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.served(target);
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(path, bytes)?;
        self.written = Instant::now();
        Ok(())
    }

    /// Waits until the files of a scenario are old enough, where that matters.
    pub(crate) fn settle(&self, scenario: &Scenario) {
        let left = Duration::from_secs(scenario.settled_s()).saturating_sub(self.written.elapsed());
        if !left.is_zero() {
            crate::progress(&format!("{}: waiting {left:.1?} until its files are old enough", scenario.name));
            thread::sleep(left);
        }
    }

    /// Returns the path of a served file.
    pub(crate) fn served(&self, target: &str) -> PathBuf {
        self.public().join(target.trim_start_matches('/'))
    }

    /// Returns the served folder.
    pub(crate) fn public(&self) -> PathBuf {
        self.path.join("public")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file beside the served folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // The system clears its temporary folder of anything that can't be removed.
        let _ = fs::remove_dir_all(&self.path);
    }
}
