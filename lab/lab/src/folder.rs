//! A run's folder: files to serve, configurations, scripts, logs. It is removed when dropped.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::namespace;
use crate::scenario::{self, Scenario, file_bytes};

/// Begin of a folder's name; the lab's process id follows.
const PREFIX: &str = "shearwater-lab-";

#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    /// When the last file was written.
    written: Instant,
}

impl RunFolder {
    /// Creates the folder and the files that the scenarios request, but for sets of files.
    pub(crate) fn create() -> Result<Self, String> {
        remove_abandoned(&std::env::temp_dir());
        let path = std::env::temp_dir().join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut folder = Self { path, written: Instant::now() };
        folder.write_pair()?;
        let has_files = |scenario: &&Scenario| scenario.source.is_file() && scenario.files == 0;
        for scenario in scenario::all().iter().filter(has_files) {
            let bytes = file_bytes(scenario.file_bytes);
            scenario.targets().try_for_each(|target| folder.serve(&target, &bytes))?;
        }
        Ok(folder)
    }

    /// Creates the folder with the sets of files of these scenarios too. Gains the right to create the network namespaces that
    /// they need, as far as the system permits.
    pub(crate) fn create_for<'a>(scenarios: impl Iterator<Item = &'a Scenario>) -> Result<Self, String> {
        let mut folder = Self::create()?;
        for scenario in scenarios {
            folder.serve_set(scenario)?;
            if scenario.congestion_control.is_some()
                && let Err(why) = namespace::gain_rights()
            {
                crate::progress(&why);
            }
        }
        Ok(folder)
    }

    /// Writes a certificate with a P-256 key, which all servers use.
    fn write_pair(&self) -> Result<(), String> {
        let made = rcgen::generate_simple_self_signed(["lab".to_owned()]);
        let made = made.map_err(|error| format!("certificate: {error}"))?;
        let texts =
            [pem("CERTIFICATE", made.cert.der()), pem("PRIVATE KEY", made.signing_key.serialized_der())];
        for (path, text) in self.pair().iter().zip(texts) {
            // Servers warn of a key that others may read.
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
            let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    /// Returns the paths of the certificate and its key.
    pub(crate) fn pair(&self) -> [PathBuf; 2] {
        ["certificate.pem", "key.pem"].map(|name| self.path.join(name))
    }

    /// Writes a served file.
    pub(crate) fn serve(&mut self, target: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.served(target);
        let written =
            fs::create_dir_all(path.parent().unwrap_or(&path)).and_then(|()| fs::write(path, bytes));
        self.written = Instant::now();
        written.map_err(|error| format!("{target}: {error}"))
    }

    /// Writes the set of files of a scenario that has one, unless another scenario had the same.
    fn serve_set(&mut self, scenario: &Scenario) -> Result<(), String> {
        let Some(set) = scenario.file_set() else { return Ok(()) };
        if self.served(&set.target(0)).exists() {
            return Ok(());
        }
        crate::progress(&format!("{}: writing {} files", scenario.name, set.count));
        // The first file last: where it is, all are.
        for number in (0..set.count).rev() {
            self.serve(&set.target(number), &set.content(number).whole())?;
        }
        // Written back in the middle of a window they would disturb it.
        let folder = fs::File::open(&self.path).map_err(|error| error.to_string())?;
        rustix::fs::syncfs(folder).map_err(|error| format!("syncfs: {error}"))
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

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line) + "\n");
    format!("-----BEGIN {label}-----\n{}-----END {label}-----\n", lines.collect::<String>())
}

/// Removes the folders of labs that were killed.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if id.is_some_and(|id| !Path::new(&format!("/proc/{id}")).exists()) {
            // Another user's can't be removed.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // The system clears its temporary folder of anything that can't be removed.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_labs_that_have_ended_are_removed() {
        let parent = std::env::temp_dir().join(format!("lab-abandoned-{}", std::process::id()));
        let own = format!("{PREFIX}{}", std::process::id());
        // Larger than any process id.
        let ended = format!("{PREFIX}4294967295");
        for name in [&own, &ended, "shearwater-lab-x", "other-4294967295"] {
            fs::create_dir_all(parent.join(name).join("public")).expect("a folder");
        }
        remove_abandoned(&parent);
        let left = fs::read_dir(&parent).expect("a folder").count();
        assert!(left == 3 && !parent.join(&ended).exists());
        fs::remove_dir_all(&parent).expect("it was there");
    }
}
