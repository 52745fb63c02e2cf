//! Allocations of a request, counted by valgrind's memcheck: those of the system's allocator alone.

use std::fs;
use std::path::Path;

use super::{Subject, run_under};

/// How many allocations a request more costs.
///
/// # Errors
/// valgrind is missing, the server doesn't start, or an answer isn't what was asked for.
pub fn allocations_per_request(subject: &Subject<'_>) -> Result<f64, String> {
    super::difference(|requests| total(subject, requests))
}

/// Allocations of a server from its start to its end, with so many requests.
fn total(subject: &Subject<'_>, requests: u32) -> Result<u64, String> {
    let log =
        run_under(subject, &["--tool=memcheck".to_owned(), "--undef-value-errors=no".to_owned()], requests)?;
    read(&log)
}

fn read(log: &Path) -> Result<u64, String> {
    let text = fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))?;
    parse_allocations(&text).ok_or_else(|| format!("{} has no heap usage", log.display()))
}

/// The number of allocations in what memcheck says at its end.
pub fn parse_allocations(text: &str) -> Option<u64> {
    let count = text.lines().rev().find_map(|line| line.split_once("total heap usage: "))?.1;
    count.split_once(" allocs")?.0.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse_allocations;

    #[test]
    fn allocations_are_read_where_they_are_said() {
        let text =
            "==7== HEAP SUMMARY:\n==7==   total heap usage: 12,345 allocs, 12,340 frees, 9 bytes allocated\n";
        assert_eq!(parse_allocations(text), Some(12_345));
        assert_eq!(parse_allocations("==7== HEAP SUMMARY:\n"), None);
        assert_eq!(parse_allocations("total heap usage: many allocs"), None);
    }
}
