//! What `wrk` says of a run, read strictly: a line that is missing, or said twice, or differently in two places, is a failure.

use super::phase::Phase;

/// The figures of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// How long it took, microseconds.
    pub(super) duration_us: u64,
    /// Answers that were read whole.
    pub(super) requests: u64,
    /// Bytes read.
    pub(super) bytes: u64,
    /// Connections that could not be made.
    pub(super) connect_errors: u64,
    /// Reads that failed, or met an end where an answer should be.
    pub(super) read_errors: u64,
    /// Writes that failed.
    pub(super) write_errors: u64,
    /// Answers with a status above 399.
    pub(super) status_errors: u64,
    /// Answers that took longer than the timeout.
    pub(super) timeouts: u64,
    /// Half of the answers took at most so long, microseconds.
    pub(super) p50_us: u64,
    /// 99 in 100 answers took at most so long, microseconds.
    pub(super) p99_us: u64,
    /// The slowest answer, microseconds.
    pub(super) max_us: u64,
    /// Requests that the script built: those answered, and at most one more per connection.
    pub(super) built: u64,
    /// Those of them that had a further large header.
    pub(super) marked: u64,
    /// What they carried, bytes.
    pub(super) built_bytes: u64,
}

/// How the script's own line begins.
const TALLY: &str = "tally: ";
/// What `wrk` prints only where something went wrong.
const COMPLAINTS: [&str; 2] = ["Socket errors:", "Non-2xx or 3xx responses:"];

impl Figures {
    /// Reads what `wrk` has printed for `phase`.
    pub(super) fn parse(output: &str, phase: &Phase) -> Result<Self, String> {
        let lines: Vec<&str> = output.lines().map(str::trim).collect();
        let announced = format!("{} threads and {} connections", phase.threads, phase.connections);
        only(&lines, "the line of threads and connections", |line| line == announced)?;
        let cells = only(&lines, "the script's tally", |line| line.starts_with(TALLY))?;
        let figures = Self::of_tally(&cells[TALLY.len()..], phase.threads)?;
        figures.agree_with(&lines)?;
        Ok(figures)
    }

    fn of_tally(cells: &str, threads: u64) -> Result<Self, String> {
        let mut rest = cells.split(' ');
        let mut next = |name: &str| -> Result<u64, String> {
            let cell = rest.next().ok_or_else(|| format!("the tally ends before {name}"))?;
            let value = cell.strip_prefix(name).and_then(|tail| tail.strip_prefix('='));
            let value = value.and_then(|digits| digits.parse().ok());
            value.ok_or_else(|| format!("the tally has {cell:?} where {name} should be"))
        };
        if next("threads")? != threads {
            return Err("the tally is of another number of threads".to_owned());
        }
        let figures = Self {
            duration_us: next("duration_us")?,
            requests: next("requests")?,
            bytes: next("bytes")?,
            connect_errors: next("connect")?,
            read_errors: next("read")?,
            write_errors: next("write")?,
            status_errors: next("status")?,
            timeouts: next("timeout")?,
            p50_us: next("p50_us")?,
            p99_us: next("p99_us")?,
            max_us: next("max_us")?,
            built: next("built")?,
            marked: next("marked")?,
            built_bytes: next("built_bytes")?,
        };
        match rest.next() {
            Some(cell) => Err(format!("the tally goes on with {cell:?}")),
            None => Ok(figures),
        }
    }

    /// What `wrk` itself prints has to say the same.
    fn agree_with(&self, lines: &[&str]) -> Result<(), String> {
        let total = only(lines, "the line of requests", |line| line.contains(" requests in "))?;
        let counted = total.split(' ').next().and_then(|digits| digits.parse::<u64>().ok());
        if counted != Some(self.requests) {
            return Err(format!("{} requests in the tally, but {total:?}", self.requests));
        }
        let complained =
            lines.iter().any(|line| COMPLAINTS.iter().any(|complaint| line.starts_with(complaint)));
        if complained != (self.socket_errors() + self.status_errors > 0) {
            return Err("wrk and its script's tally do not agree whether there were errors".to_owned());
        }
        Ok(())
    }

    /// Errors of all kinds but of the status.
    pub(super) fn socket_errors(&self) -> u64 {
        self.connect_errors + self.read_errors + self.write_errors + self.timeouts
    }

    /// Answers per second.
    pub(super) fn per_second(&self) -> f64 {
        self.requests as f64 * 1e6 / self.duration_us.max(1) as f64
    }
}

/// The only line for which `wanted` holds.
fn only<'a>(lines: &[&'a str], what: &str, wanted: impl Fn(&str) -> bool) -> Result<&'a str, String> {
    let mut found = lines.iter().filter(|line| wanted(line));
    match (found.next(), found.next()) {
        (Some(line), None) => Ok(line),
        (None, _) => Err(format!("wrk did not print {what}")),
        (Some(_), Some(_)) => Err(format!("wrk printed {what} twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::Figures;
    use crate::stress::phase::PHASES;

    const GOOD: &str = "\
Running 5s test @ http://127.0.0.1:18080/
  8 threads and 1000 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     6.96ms    3.64ms  67.08ms   80.48%
    Req/Sec    18.03k     3.86k   60.91k    94.97%
  287129 requests in 2.10s, 41.07MB read
Requests/sec: 136774.34
Transfer/sec:     19.57MB
tally: threads=8 duration_us=2099290 requests=287129 bytes=43069350 connect=0 read=0 write=0 status=0 timeout=0 \
p50_us=6708 p99_us=20308 max_us=67082 built=1 marked=2 built_bytes=3
";

    #[test]
    fn every_figure_is_read() {
        let figures = Figures::parse(GOOD, &PHASES[0]).expect("a good run");
        assert_eq!((figures.requests, figures.bytes, figures.max_us), (287_129, 43_069_350, 67_082));
        assert_eq!((figures.built, figures.marked, figures.built_bytes), (1, 2, 3));
        assert_eq!((figures.socket_errors(), figures.per_second() as u64), (0, 136_774));
    }

    #[test]
    fn what_is_missing_doubled_or_contradicted_is_a_failure() {
        let without =
            |part: &str| GOOD.lines().filter(|line| !line.contains(part)).collect::<Vec<_>>().join("\n");
        let bad = [
            without("tally:"),
            without("requests in"),
            without("connections"),
            format!("{GOOD}{GOOD}"),
            GOOD.replace("p99_us=20308 ", ""),
            GOOD.replace("built_bytes=3", "built_bytes=3 more=4"),
            GOOD.replace("bytes=43069350", "bytes=-1"),
            GOOD.replace("287129 requests in", "287130 requests in"),
            GOOD.replace("threads=8", "threads=7"),
            GOOD.replace("read=0", "read=1"),
            GOOD.replace("Requests/sec", "Non-2xx or 3xx responses: 5\nRequests/sec"),
            String::new(),
        ];
        for output in bad {
            assert!(Figures::parse(&output, &PHASES[0]).is_err(), "{output}");
        }
        assert!(Figures::parse(GOOD, &PHASES[1]).is_err(), "another phase");
    }

    #[test]
    fn errors_are_counted() {
        let output = GOOD.replace("read=0", "read=3").replace("timeout=0", "timeout=2");
        let output = output
            .replace("Requests/sec", "Socket errors: connect 0, read 3, write 0, timeout 2\nRequests/sec");
        let figures = Figures::parse(&output, &PHASES[0]).expect("a whole output");
        assert_eq!((figures.socket_errors(), figures.read_errors, figures.timeouts), (5, 3, 2));
    }
}
