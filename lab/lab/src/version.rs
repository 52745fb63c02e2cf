//! Versions of other people's programs, and how old they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::SystemTime;

use toml::value::{Date, Datetime};

use crate::programs::root;

const DAYS_PER_YEAR: f64 = 365.2425;

/// Returns release date and age of the first version in a text, or why they are unknown.
pub(crate) fn age(text: &str, released: &BTreeMap<String, Datetime>, file: &str) -> String {
    let Some(number) = first_version(text) else { return "no version number".to_owned() };
    let Some(date) = released.get(number).and_then(|released| released.date) else {
        return format!("age unknown: no {number} in `released` of {file}");
    };
    format!("{date}, {:.1} years old", years_since(date))
}

/// Returns the first number with a dot, such as 1.22.1 in `nginx/1.22.1`.
fn first_version(text: &str) -> Option<&str> {
    let numbers = text.split(|character: char| !character.is_ascii_digit() && character != '.');
    numbers.map(|number| number.trim_matches('.')).find(|number| number.contains('.'))
}

/// Returns the years since a date, to about a day.
fn years_since(date: Date) -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let days = f64::from(date.month - 1) * 30.44 + f64::from(date.day - 1);
    1970.0 + (now.as_secs_f64() / 86_400.0 - days) / DAYS_PER_YEAR - f64::from(date.year)
}

/// Returns the versions of crates, as the peers' lock file has them.
pub(crate) fn locked(crates: &[String]) -> String {
    let lock = fs::read_to_string(root().join("lab/peers/rust/Cargo.lock")).unwrap_or_default();
    let one = |package: &String| {
        let entry = lock.split_once(&format!("name = \"{package}\"\nversion = \""));
        format!("{package} {}", entry.and_then(|entry| entry.1.split('"').next()).unwrap_or("(not locked)"))
    };
    crates.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns the first line that a program prints about its version.
pub(crate) fn printed(program: &Path, argument: &str) -> String {
    let Some(text) = output(program, argument) else { return "not found".to_owned() };
    let line = text.lines().find(|line| !line.trim().is_empty());
    line.map_or_else(|| "prints nothing".to_owned(), |line| line.trim().to_owned())
}

/// Returns the first line that a program prints about its OpenSSL, after a comma; nothing if there is none.
pub(crate) fn library(program: &Path, argument: &str) -> String {
    let text = output(program, argument).unwrap_or_default();
    let line = text.lines().find(|line| line.contains("OpenSSL"));
    line.map_or_else(String::new, |line| format!(", {}", line.trim()))
}

/// Returns what a program prints.
fn output(program: &Path, argument: &str) -> Option<String> {
    let Output { stdout, stderr, .. } = Command::new(program).arg(argument).output().ok()?;
    Some([stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_age_of_the_version_in_a_programs_own_words() {
        let released = |version: &str, year| {
            let date = Date { year, month: 1, day: 1 };
            [(version.to_owned(), Datetime { date: Some(date), time: None, offset: None })].into()
        };
        for (printed, version) in [
            ("nginx version: nginx/1.22.1", "1.22.1"),
            ("HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/", "2.6.12"),
            ("v2.11.9 h1:3.4=", "2.11.9"),
            ("peer 7 of go1.26.8.", "1.26.8"),
        ] {
            let old = age(printed, &released(version, 2010), "x.toml");
            assert!(old.starts_with("2010-01-01, ") && old.ends_with(" years old"), "{old}");
            let unknown = format!("age unknown: no {version} in `released` of x.toml");
            assert_eq!(age(printed, &released("9.9", 2010), "x.toml"), unknown);
        }
        let day = |year, month, day| years_since(Date { year, month, day });
        assert!((day(2020, 3, 1) - day(2024, 3, 1) - 4.0).abs() < 1e-6);
        assert!((day(2020, 12, 31) - day(2021, 1, 1)).abs() < 0.01);
    }
}
