//! Settings of the system as data (`tune.toml`): which of them limit a measurement, and how to change them.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use serde::Deserialize;

use crate::format::align;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    setting: Vec<Setting>,
}

/// One setting; `tune.toml` describes the fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    name: String,
    #[serde(default)]
    path: String,
    wanted: String,
    rule: String,
    scenarios: String,
    why: String,
}

impl Setting {
    /// Returns its files; `*` is any folder.
    fn files(&self, root: &Path) -> Vec<PathBuf> {
        let Some((folder, rest)) = self.path.split_once("/*/") else { return vec![root.join(&self.path)] };
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().join(rest)).filter(|file| file.is_file()).collect()
    }

    /// Returns its values, none where the system doesn't have it.
    fn values(&self, root: &Path) -> Vec<String> {
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let read = |file: &PathBuf| fs::read_to_string(file).ok().map(words);
        let mut values: Vec<String> = match self.path.is_empty() {
            true => getrlimit(Resource::Nofile).current.iter().map(u64::to_string).collect(),
            false => self.files(root).iter().filter_map(read).collect(),
        };
        values.dedup();
        values
    }

    fn is_met_by(&self, value: &str) -> bool {
        let numbers = |text: &str| -> Vec<i64> { text.split(' ').filter_map(|it| it.parse().ok()).collect() };
        match (&*self.rule, &*numbers(value), &*numbers(&self.wanted)) {
            ("at_least", [value], [least]) => value >= least,
            ("spans", [start, end], [first, last]) => start <= first && end >= last,
            _ => value == self.wanted,
        }
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

/// Compares the settings of the system below `root`, and changes them if asked to. Returns their table with the commands for
/// those that are wrong, and true if none is.
pub(crate) fn run(root: &Path, apply: bool) -> (String, bool) {
    let settings: Settings = toml::from_str(include_str!("../tune.toml")).expect("a test parses it");
    let mut rows = vec![["setting", "current", "wanted", "needed for", "state"].map(str::to_owned)];
    let mut commands = String::new();
    for setting in settings.setting {
        let is_right = || setting.values(root).iter().all(|value| setting.is_met_by(value));
        let mut state = if is_right() { "as wanted" } else { &*setting.why };
        if apply && !is_right() {
            // What can't be written, or is cut by the kernel, stays as it was.
            let written = setting.files(root).iter().all(|file| fs::write(file, &setting.wanted).is_ok());
            state = if written && is_right() { "set" } else { "NOT SET" };
        }
        let current = setting.values(root).join(", ");
        if !current.is_empty() {
            commands.extend((!is_right()).then(|| setting.command()));
            rows.push(
                [&*setting.name, &current, &setting.wanted, &setting.scenarios, state].map(str::to_owned),
            );
        }
    }
    let hint = if commands.is_empty() { "" } else { "\nto change by hand, or with --apply as root:\n" };
    (align(&rows) + hint + &commands, commands.is_empty())
}

#[cfg(test)]
mod tests {
    use testkit::TestFolder;

    use super::*;

    #[test]
    fn names_and_changes_settings_that_are_too_small_in_every_file() {
        let folder = TestFolder::new();
        let governors =
            ["cpu0", "cpu1"].map(|cpu| format!("sys/devices/system/cpu/{cpu}/cpufreq/scaling_governor"));
        folder.file(&governors[0], "powersave\n").file(&governors[1], "powersave\n");
        folder.file("proc/sys/net/core/rmem_max", "4194304\n");
        folder.file("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
        let (text, _) = run(folder.path(), false);
        let state = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).expect(name);
            line.rsplit("  ").next().unwrap_or_default().to_owned()
        };
        assert_eq!(state(&text, "net.core.rmem_max"), "as wanted");
        assert_eq!(state(&text, "net.ipv4.ip_local_port_range"), "ports of clients run out");
        assert!(text.contains("sysctl -w net.ipv4.ip_local_port_range='1024 65535'"), "{text}");
        assert!(!text.contains("tcp_max_syn_backlog"), "the system doesn't have it: {text}");
        let (text, _) = run(folder.path(), true);
        assert_eq!(
            ["net.ipv4.ip_local_port_range", "scaling_governor"].map(|it| state(&text, it)),
            ["set", "set"]
        );
        for governor in governors {
            assert_eq!(fs::read_to_string(folder.at(governor)).expect("a file"), "performance");
        }
    }
}
