//! Slow destinations: workers never wait, and lines beyond the buffers are dropped and counted.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::Command;
use std::time::{Duration, Instant};

use shearwater_log::limits::{LOG_BUFFER_BYTES_MAX, LOG_END_WAIT_MAX};
use testkit::TestFolder;

use crate::support::{TestLog, until, write};

/// Longest acceptable time of one call: far below that of a wait for a reader.
const LONGEST: Duration = Duration::from_millis(500);

fn pipe_in(folder: &TestFolder) -> String {
    let path = folder.path().join("pipe").display().to_string();
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    path
}

#[test]
fn is_failing_until_a_pipe_has_a_reader() {
    let folder = TestFolder::new();
    let path = pipe_in(&folder);
    let test = TestLog::new(&path);
    assert!(test.log.counts().is_failing, "at once");
    test.expect_notice("help: start the program that reads it");
    let reader = File::open(&path).expect("it is opened again without a line");
    test.expect_notice("is written again");
    until(|| !test.log.counts().is_failing);
    drop(reader);
    test.write("/lost");
    test.expect_notice("help: restart the program that reads it");
    assert!(test.log.counts().is_failing);
}

#[test]
fn drops_lines_that_a_pipe_does_not_take_and_reports_it_once() {
    let folder = TestFolder::new();
    let path = pipe_in(&folder);
    let test = TestLog::new(&path);
    test.expect_notice("help: start the program that reads it");
    test.write("/first");
    let mut reader = BufReader::new(File::open(&path).expect("the writer opens it"));
    test.expect_notice("is written again");
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "/first\n");

    // Nothing is read for a while.
    let text = "/".repeat(1000);
    let count = 3 * LOG_BUFFER_BYTES_MAX / text.len();
    let mut writer = test.log.line_writer();
    let mut longest = Duration::ZERO;
    for _ in 0..count {
        let start = Instant::now();
        write(&mut writer, &text);
        longest = longest.max(start.elapsed());
    }
    assert!(longest < LONGEST, "{longest:?}");
    test.expect_notice("lines are being dropped");
    let dropped = test.log.counts().dropped;
    assert!(dropped as usize > count / 3, "{dropped} of {count}");

    // The reader catches up: each line is whole, and all are accounted for.
    let kept = 1 + count as u64 - dropped;
    for _ in 1..kept {
        line.clear();
        reader.read_line(&mut line).expect("a line");
        assert_eq!(line.len(), text.len() + 1);
    }
    test.expect_notice(&format!("{dropped} lines of the access log"));
    until(|| test.log.counts().written == kept);
    write(&mut writer, "/last");
    drop(writer);
    test.log.end();
    line.clear();
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "/last\n");
}

/// A reader that hangs is open, so that no write fails.
#[test]
fn is_failing_while_the_reader_of_a_pipe_takes_nothing() {
    let folder = TestFolder::new();
    let path = pipe_in(&folder);
    let test = TestLog::new(&path);
    let mut reader = File::open(&path).expect("it is opened for writing");
    until(|| !test.log.counts().is_failing);
    let mut writer = test.log.line_writer();
    let line = "/".repeat(1000);
    (0..1000).for_each(|_| write(&mut writer, &line));
    until(|| test.log.counts().is_failing);
    let stuck = test.log.counts();
    assert!(stuck.written < 1000 && stuck.dropped == 0, "{stuck:?}");
    let mut bytes = vec![0; 1001 * 1000];
    reader.read_exact(&mut bytes).expect("all lines");
    until(|| test.log.counts().written == 1000);
    assert!(!test.log.counts().is_failing);
}

#[test]
fn the_end_waits_a_bounded_time_for_a_reader() {
    let folder = TestFolder::new();
    let path = pipe_in(&folder);
    let test = TestLog::new(&path);
    test.write("/first");
    let start = Instant::now();
    let counts = test.log.end();
    assert!(start.elapsed() < 2 * LOG_END_WAIT_MAX, "{:?}", start.elapsed());
    assert_eq!((counts.written, counts.dropped), (0, 1));
}
