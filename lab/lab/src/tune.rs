//! Settings of the system as data (`tune.toml`): which of them limit a measurement, and how to change them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use serde::Deserialize;

use crate::format::align;

/// One setting; `tune.toml` describes the fields of the file, the others are this machine's.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Setting {
    name: String,
    path: String,
    wanted: String,
    rule: String,
    scenarios: String,
    why: String,
    current: String,
    is_right: bool,
    /// Outcome of a change.
    applied: Option<String>,
}

/// Returns the settings that a system has, its files below `root`.
fn find(root: &Path) -> Vec<Setting> {
    let settings: BTreeMap<String, Vec<Setting>> =
        toml::from_str(include_str!("../tune.toml")).expect("a test parses it");
    let mut settings: Vec<Setting> = settings.into_values().flatten().collect();
    settings.iter_mut().for_each(|setting| setting.read(root));
    settings.retain(|setting| !setting.current.is_empty());
    settings
}

impl Setting {
    /// Returns its files; `*` is any folder.
    fn files(&self, root: &Path) -> Vec<PathBuf> {
        let (folder, rest) = self.path.split_once("/*/").unwrap_or((".", &self.path));
        let folders = match folder {
            "." => vec![root.to_owned()],
            _ => {
                fs::read_dir(root.join(folder)).into_iter().flatten().flatten().map(|it| it.path()).collect()
            }
        };
        folders.into_iter().map(|folder| folder.join(rest)).filter(|file| file.is_file()).collect()
    }

    fn read(&mut self, root: &Path) {
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let read = |file: &PathBuf| fs::read_to_string(file).ok().map(words);
        let mut values: Vec<String> = match self.path.is_empty() {
            true => getrlimit(Resource::Nofile).current.iter().map(u64::to_string).collect(),
            false => self.files(root).iter().filter_map(read).collect(),
        };
        values.dedup();
        self.is_right = values.iter().all(|value| self.is_met_by(value));
        self.current = values.join(", ");
    }

    fn is_met_by(&self, value: &str) -> bool {
        let numbers = |text: &str| -> Vec<i64> { text.split(' ').filter_map(|it| it.parse().ok()).collect() };
        match (&*self.rule, &*numbers(value), &*numbers(&self.wanted)) {
            ("at_least", [value], [least]) => value >= least,
            ("spans", [start, end], [first, last]) => start <= first && end >= last,
            _ => value == self.wanted,
        }
    }

    /// Sets it, and reads it again: the kernel may have cut it.
    fn apply(&mut self, root: &Path) {
        let write =
            |file: &PathBuf| fs::write(file, &self.wanted).map_err(|error| format!("NOT SET: {error}"));
        let written = match self.path.is_empty() {
            true => Err("NOT SET: only the shell that starts the lab can".to_owned()),
            false => self.files(root).iter().try_for_each(write),
        };
        self.read(root);
        let kept = if self.is_right { "set" } else { "NOT SET: the kernel keeps another value" };
        self.applied = Some(written.err().unwrap_or_else(|| kept.to_owned()));
    }

    /// Returns the command that changes it by hand.
    fn command(&self) -> String {
        let Self { name, path, wanted, .. } = self;
        match path.split('/').next() {
            Some("proc") => format!("  sysctl -w {name}='{wanted}'\n"),
            Some("sys") => format!("  echo {wanted} | tee /{path}\n"),
            _ => format!("  ulimit -n {wanted}\n"),
        }
    }
}

/// Compares the settings of the system below `root`, and changes them if asked to. Returns false if one could not be set.
pub(crate) fn run(root: &Path, apply: bool) -> bool {
    let mut settings = find(root);
    settings.iter_mut().filter(|it| apply && !it.is_right).for_each(|it| it.apply(root));
    print!("{}", render(&settings));
    !apply || settings.iter().all(|it| it.is_right)
}

fn render(settings: &[Setting]) -> String {
    let mut rows = vec![["setting", "current", "wanted", "needed for", "state"].map(str::to_owned)];
    for it in settings {
        let reason = if it.is_right { "as wanted" } else { &it.why };
        let state = it.applied.as_deref().unwrap_or(reason);
        rows.push([&*it.name, &it.current, &it.wanted, &it.scenarios, state].map(str::to_owned));
    }
    let commands: String = settings.iter().filter(|it| !it.is_right).map(Setting::command).collect();
    let hint = if commands.is_empty() { "" } else { "\nto change by hand, or with --apply as root:\n" };
    align(&rows) + hint + &commands
}

#[cfg(test)]
mod tests {
    use testkit::TestFolder;

    use super::*;

    #[test]
    fn names_and_changes_settings_that_are_too_small_in_every_file() {
        let folder = TestFolder::new();
        let root = folder.path();
        let governors =
            ["cpu0", "cpu1"].map(|cpu| format!("sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor"));
        folder.file(&governors[0], "powersave\n").file(&governors[1], "powersave\n");
        folder.file("proc/sys/net/core/somaxconn", "4096\n").file("proc/sys/net/core/rmem_max", "4194304\n");
        folder.file("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
        let mut settings = find(root);
        settings.retain(|it| !it.path.is_empty());
        let found: Vec<(&str, bool)> = settings.iter().map(|it| (&*it.name, it.is_right)).collect();
        let expected = [
            ("net.core.somaxconn", false),
            ("net.ipv4.ip_local_port_range", false),
            ("net.core.rmem_max", true),
            ("scaling_governor", false),
        ];
        assert_eq!(found, expected);
        let text = render(&settings);
        for part in ["overflows the accept queue", "sysctl -w net.ipv4.ip_local_port_range='1024 65535'"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        settings.iter_mut().for_each(|it| it.apply(root));
        assert!(
            settings.iter().all(|it| it.is_right && it.applied.as_deref() == Some("set")),
            "{settings:?}"
        );
        for governor in governors {
            assert_eq!(fs::read_to_string(folder.at(governor)).expect("a file"), "performance");
        }
    }
}
