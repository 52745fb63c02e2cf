//! Versions of other people's programs, and how old they are.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use toml::value::{Date, Datetime};

use crate::programs::root;

/// Lock file of the peers from crates.
const LOCK: &str = "lab/peers/rust/Cargo.lock";
const SECONDS_PER_YEAR: f64 = 365.2425 * 86_400.0;

/// A version and when it was released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    /// The program's own words.
    text: String,
    /// Date and age, or why they are unknown.
    age: String,
}

impl Version {
    /// Finds the release of the first version in a text among those that a file of servers lists.
    pub(crate) fn new(text: String, released: &BTreeMap<String, Datetime>, file: &str) -> Self {
        let age = match first_version(&text) {
            None => "no version number".to_owned(),
            Some(number) => released.get(number).and_then(|released| released.date).map_or_else(
                || format!("age unknown: no {number} in `released` of {file}"),
                |date| format!("{date}, {}", describe_years(years_since(date))),
            ),
        };
        Self { text, age }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn age(&self) -> &str {
        &self.age
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.age)
    }
}

/// Returns the first number with a dot, such as 1.22.1 in `nginx/1.22.1`.
fn first_version(text: &str) -> Option<&str> {
    let is_other = |character: char| !character.is_ascii_digit() && character != '.';
    let numbers = text.split(is_other).map(|number| number.trim_matches('.'));
    numbers.into_iter().find(|number| number.contains('.'))
}

/// Returns the years since a date, to about a day.
fn years_since(date: Date) -> f64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let days = f64::from(date.month - 1) * 30.44 + f64::from(date.day - 1);
    1970.0 + now.as_secs_f64() / SECONDS_PER_YEAR - f64::from(date.year) - days / 365.25
}

fn describe_years(years: f64) -> String {
    if years >= 1.0 { format!("{years:.1} years old") } else { format!("{:.0} months old", years * 12.0) }
}

/// Returns the versions of crates, as the peers' lock file has them.
pub(crate) fn locked(crates: &[String]) -> String {
    let lock = fs::read_to_string(root().join(LOCK)).unwrap_or_default();
    let one =
        |package: &String| format!("{package} {}", locked_version(&lock, package).unwrap_or("(not locked)"));
    crates.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let entry = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?.1;
    entry.split('"').next()
}

/// Returns the first line that a program prints about its version.
pub(crate) fn printed(program: &Path, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split_whitespace()).output();
    let Ok(output) = output else { return "not found".to_owned() };
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let line = printed.iter().flat_map(|text| text.lines()).find(|line| !line.trim().is_empty());
    line.map_or_else(|| "prints nothing".to_owned(), |line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_version_in_a_programs_own_words() {
        for (printed, version) in [
            ("nginx version: nginx/1.22.1", Some("1.22.1")),
            ("HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/", Some("2.6.12")),
            ("v20.20.2", Some("20.20.2")),
            ("v2.11.9 h1:3.4=", Some("2.11.9")),
            ("peer 7 of go1.26.8.", Some("1.26.8")),
            ("not found", None),
        ] {
            assert_eq!(first_version(printed), version, "{printed}");
        }
    }

    #[test]
    fn shows_the_age_of_a_listed_version_and_asks_for_the_date_of_another() {
        let table: BTreeMap<String, Datetime> =
            [("1.22.1".to_owned(), "2022-10-19".parse().expect("a date"))].into();
        let shown = |text: &str| Version::new(text.to_owned(), &table, "lab/peers/nginx.toml").to_string();
        let listed = shown("nginx/1.22.1");
        assert!(
            listed.starts_with("nginx/1.22.1 (2022-10-19, ") && listed.ends_with("years old)"),
            "{listed}"
        );
        assert_eq!(shown("2.0.0"), "2.0.0 (age unknown: no 2.0.0 in `released` of lab/peers/nginx.toml)");
        let year = |year| Date { year, month: 3, day: 1 };
        assert!((years_since(year(2020)) - years_since(year(2024)) - 4.0).abs() < 1e-6);
        assert_eq!([0.5, 4.12].map(describe_years), ["6 months old", "4.1 years old"]);
    }

    #[test]
    fn finds_versions_in_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"hyper-util\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"hyper\"\nversion = \"1.12.0\"\n";
        assert_eq!(locked_version(lock, "hyper"), Some("1.12.0"));
        assert_eq!(locked_version(lock, "axum"), None);
    }
}
