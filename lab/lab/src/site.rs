//! What the servers need on disk during a run: files to serve, configurations, scripts. All of it goes with the run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::scenario::{SCENARIOS, Scenario, Source, file_bytes};

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
        let numbers = if scenario.varied { crate::scenario::VARIED_PATHS } else { 1 };
        for number in 0..numbers {
            let path = self.public().join(scenario.target(number).trim_start_matches('/'));
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, file_bytes(scenario.body_bytes))?;
        }
        Ok(())
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
