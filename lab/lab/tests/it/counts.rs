//! What other programs and the kernel print, read.

use lab::memory::{self, Resident};
use lab::probe;
use lab::process;
use lab::scenario;
use lab::schedstat::{self, SchedTime, Threads};
use lab::syscalls;
use lab::tally::Tally;
use lab::wrk;

const TALLY: Tally = Tally {
    responses: 351_337,
    bytes: 52_700_550,
    duration_us: 2_000_123,
    connect_errors: 1,
    read_errors: 2,
    write_errors: 3,
    timeouts: 4,
    status_errors: 5,
    receive_buffer_bytes: 65_536,
};

#[test]
fn the_tally_is_found_in_wrks_output() {
    let output = format!(
        "Running 2s test @ http://127.0.0.1:20100/plaintext\n  1 threads and 64 connections\n  Thread Stats   Avg\n\
         Requests/sec: 175668.50\nTransfer/sec:     25.13MB\n{TALLY}\n"
    );
    assert_eq!(Tally::parse(&output), Some(TALLY));
    assert_eq!(TALLY.socket_errors(), 10);
}

#[test]
fn what_is_no_whole_tally_is_none() {
    let line = TALLY.to_string();
    assert_eq!(Tally::parse(""), None);
    assert_eq!(Tally::parse("Requests/sec: 175668.50\n"), None);
    assert_eq!(Tally::parse(&line.replace(" timeouts=4", "")), None, "a count is missing");
    assert_eq!(Tally::parse(&line.replace("responses=351337", "responses=-nan")), None);
    assert_eq!(Tally::parse(&line.replace("bytes=52700550", "bytes=-1")), None);
}

#[test]
fn wrks_script_prints_every_count_of_the_tally() {
    for name in ["plaintext", "1k-x16"] {
        let scenario = scenario::find(name).expect("it is in the table");
        let script = wrk::script(scenario);
        for pair in TALLY.to_string().split_ascii_whitespace().skip(1) {
            let (field, _) = pair.split_once('=').expect("a count");
            assert!(script.contains(&format!("{field}=%.0f")), "{field} in {script}");
        }
        assert_eq!(script.contains("string.rep(one, 16)"), scenario.depth == 16);
    }
}

#[test]
fn schedstat_has_three_counts() {
    let time = SchedTime { cpu_ns: 677_520_419, wait_ns: 20_232_140 };
    assert_eq!(schedstat::parse("677520419 20232140 5447\n"), Some(time));
    for wrong in ["", "1", "1 2", "a b c", "1 2 x", "-1 2 3"] {
        assert_eq!(schedstat::parse(wrong), None, "{wrong:?}");
    }
}

#[test]
fn a_later_reading_less_an_earlier_one_never_wraps() {
    let earlier = SchedTime { cpu_ns: 10, wait_ns: 5 };
    let later = SchedTime { cpu_ns: 25, wait_ns: 3 };
    assert_eq!(later - earlier, SchedTime { cpu_ns: 15, wait_ns: 0 });
}

#[test]
fn a_thread_that_ended_leaves_no_figure_and_a_new_one_counts_whole() {
    let threads = |times: &[(&str, u64)]| {
        let time = |cpu_ns| SchedTime { cpu_ns, wait_ns: 1 };
        Threads(times.iter().map(|(file, cpu_ns)| (file.into(), time(*cpu_ns))).collect())
    };
    let earlier = threads(&[("1", 10), ("2", 20)]);
    let later = threads(&[("1", 15), ("2", 20), ("3", 7)]);
    assert_eq!(later.since(&earlier), Ok(SchedTime { cpu_ns: 12, wait_ns: 1 }));
    assert!(threads(&[("1", 90)]).since(&earlier).is_err_and(|why| why.contains("2: the thread has ended")));
}

#[test]
fn this_process_has_been_on_a_cpu() {
    // A thread of another test that ends between the look at the list and at its figures makes no figure.
    let own = (0..1000).find_map(|_| schedstat::of_processes(&[std::process::id()]).ok()).expect("it runs");
    assert!(own.sum().cpu_ns > 0);
    assert!(memory::of_processes(&[std::process::id()]).now_kib > 0);
    assert!(schedstat::of_processes(&[u32::MAX]).is_err(), "there is no such process");
}

#[test]
fn memory_is_read_from_the_status_file() {
    let status =
        "Name:\tnginx\nVmPeak:\t   12000 kB\nVmHWM:\t    9100 kB\nVmRSS:\t    9000 kB\nThreads:\t1\n";
    assert_eq!(memory::parse(status), Some(Resident { now_kib: 9_000, peak_kib: 9_100 }));
    assert_eq!(memory::parse("Name:\tkthreadd\n"), None);
}

#[test]
fn the_parent_is_read_behind_any_name() {
    assert_eq!(process::parent("42 (nginx) S 17 42 42 0"), Some(17));
    assert_eq!(process::parent("42 (a) R 1 (x) S 17 42"), Some(17));
    assert_eq!(process::parent("42 nginx"), None);
}

#[test]
fn perfs_count_is_read_or_there_is_none() {
    let counted = "# started on Sat\n\n421337,,raw_syscalls:sys_enter,5000000,100.00,,\n";
    assert_eq!(syscalls::parse(counted), Some(421_337));
    assert_eq!(syscalls::parse("<not counted>,,raw_syscalls:sys_enter,0,0.00,,\n"), None);
    assert_eq!(syscalls::parse(""), None);
}

#[test]
fn a_probed_answer_ends_where_it_says() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    for cut in 0..answer.len() {
        assert_eq!(probe::parse(&answer[..cut]), Ok(None), "cut at {cut}");
    }
    let whole = probe::parse(answer).expect("an answer").expect("whole");
    assert_eq!((whole.status, whole.bytes, whole.body.as_slice()), (200, answer.len() as u64, &b"hello"[..]));
    assert!(probe::parse(&[answer, &b"x"[..]].concat()).is_err(), "one byte too many");
    assert!(probe::parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err(), "no length");
    assert!(probe::parse(b"SSH-2.0-x\r\n\r\n").is_err());
}
