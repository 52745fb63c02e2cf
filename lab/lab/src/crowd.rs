//! Thousands of connections on a page, all servers asked at the same rate: is anything lost, and how slow is the slowest answer?

use std::time::Duration;

use crate::binaries::Binaries;
use crate::block::{self, Order};
use crate::client::crowd::Crowd;
use crate::memory;
use crate::process::{Launch, free_address};
use crate::report::align;
use crate::scenario;
use crate::schedstat;
use crate::server::{Kind, Place, ServerKind};
use crate::site::Site;

/// The page.
const SCENARIO: &str = "6.4k";

/// What to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// One after the other.
    pub servers: Vec<&'static ServerKind>,
    /// Connections held at once.
    pub connections: u32,
    /// Requests a second, over all of them.
    pub rate: u32,
    /// For how long.
    pub seconds: u32,
}

impl Plan {
    /// Requests that fall due: a client that sends fewer has not asked what it was to ask.
    fn requests(&self) -> u64 {
        u64::from(self.rate) * u64::from(self.seconds)
    }
}

/// What a server has shown.
#[derive(Debug, Clone)]
pub struct Row {
    server: &'static ServerKind,
    /// Requests that fell due.
    due: u64,
    seen: Result<Seen, String>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    crowd: Crowd,
    /// CPU time per answer; none where a thread has ended and taken its time with it.
    cpu_us: Option<f64>,
    rss_mib: f64,
}

impl Seen {
    /// Whether a request was not asked or not answered, or an answer was late or wrong.
    fn has_lost(&self, due: u64) -> bool {
        let crowd = &self.crowd;
        crowd.errors + crowd.timeouts > 0 || crowd.answers != crowd.requests || crowd.requests < due
    }
}

impl Row {
    /// Whether it was measured, and nothing was lost: that is asked of our own server, of peers it is shown.
    pub fn is_met(&self) -> bool {
        let is_ours =
            matches!(self.server.kind, Kind::Shearwater | Kind::ShearwaterPlain | Kind::ShearwaterSite);
        self.seen.as_ref().is_ok_and(|seen| !is_ours || !seen.has_lost(self.due))
    }
}

/// Runs each server for its time.
///
/// # Errors
/// The site cannot be made, or a null server is among them: it has no page.
pub fn run(plan: &Plan, binaries: &Binaries, say: &dyn Fn(&str)) -> Result<Vec<Row>, String> {
    if let Some(server) = plan.servers.iter().find(|server| server.kind == Kind::Null) {
        return Err(format!("{} has no page of {SCENARIO}", server.name));
    }
    crate::idle::raise_descriptor_limit();
    let site = Site::create().map_err(|error| format!("creating the site: {error}"))?;
    let mut rows = Vec::new();
    for server in &plan.servers {
        say(&format!("{}: {} s", server.name, plan.seconds));
        rows.push(Row { server, due: plan.requests(), seen: measure(plan, server, binaries, &site) });
    }
    Ok(rows)
}

fn measure(plan: &Plan, server: &ServerKind, binaries: &Binaries, site: &Site) -> Result<Seen, String> {
    let scenario = scenario::find(SCENARIO)?;
    let place = Place { binaries, site, address: free_address(&mut 0)?, null_bytes: 0, workers: 1 };
    let order = Order { server, scenario, place, seconds: plan.seconds, wait_percent_max: 100.0 };
    let (_, running) = block::start(&order)?;
    let bytes = block::checked_probe(&order)?.bytes;
    let before = schedstat::of_processes(running.ids())?;
    let crowd = client(plan, &order, bytes)?.counts(Crowd::parse)?;
    let spent = schedstat::of_processes(running.ids())?.since(&before);
    let cpu_us = spent.ok().map(|spent| spent.cpu_ns as f64 / 1e3 / crowd.answers.max(1) as f64);
    let rss_mib = memory::of_processes(running.ids()).now_kib as f64 / 1024.0;
    Ok(Seen { crowd, cpu_us, rss_mib })
}

fn client(plan: &Plan, order: &Order<'_>, bytes: u64) -> Result<Launch, String> {
    let (address, target) = (order.place.address, order.scenario.target(0));
    let Plan { connections, rate, seconds, .. } = plan;
    Launch::of_client(&format!(
        "crowd-client --address {address} --target {target} --bytes {bytes} --connections {connections} --rate {rate} \
         --seconds {seconds}"
    ))
}

/// The table.
pub fn render(plan: &Plan, rows: &[Row]) -> String {
    let titles = [
        "server",
        "requests",
        "answers",
        "timeouts",
        "errors",
        "p50 ms",
        "p99 ms",
        "slowest ms",
        "client's own ms",
        "µs CPU/answer",
        "RSS MiB",
    ];
    let mut table = vec![titles.map(str::to_owned)];
    let ms = |us: u64| format!("{:.2}", us as f64 / 1e3);
    for row in rows {
        table.push(match &row.seen {
            Ok(Seen { crowd, cpu_us, rss_mib }) => [
                row.server.name.to_owned(),
                crowd.requests.to_string(),
                crowd.answers.to_string(),
                crowd.timeouts.to_string(),
                crowd.errors.to_string(),
                ms(crowd.p50_us),
                ms(crowd.p99_us),
                ms(crowd.max_us),
                ms(crowd.longest_turn_us),
                cpu_us.map_or_else(|| "-".to_owned(), |us| format!("{us:.2}")),
                format!("{rss_mib:.1}"),
            ],
            Err(reason) => std::array::from_fn(|column| match column {
                0 => row.server.name.to_owned(),
                1 => format!("NOT MEASURED: {reason}"),
                _ => String::new(),
            }),
        });
    }
    let took = Duration::from_secs(plan.seconds.into());
    format!(
        "a page of 6.4 KB, {} connections, {} requests a second for {took:?}; a timeout is an answer after 2 s; times count from when a \
         request was due\n\n{}",
        plan.connections,
        plan.rate,
        align(&table)
    )
}

#[cfg(test)]
mod tests {
    use super::{Crowd, Row, Seen};
    use crate::server;

    fn is_met(server: &str, crowd: Option<Crowd>) -> bool {
        let server = server::find(server).expect("it is in the table");
        let seen = crowd.map(|crowd| Seen { crowd, cpu_us: None, rss_mib: 1.0 });
        Row { server, due: 100, seen: seen.ok_or_else(|| "planted".to_owned()) }.is_met()
    }

    #[test]
    fn whatever_is_lost_or_not_asked_is_not_met() {
        let all = Crowd { requests: 100, answers: 100, ..Crowd::default() };
        let lost = [
            Crowd { errors: 1, ..all },
            Crowd { timeouts: 1, ..all },
            Crowd { answers: 99, ..all },
            Crowd { requests: 99, answers: 99, ..all },
        ];
        for ours in ["shearwater-epoll", "shearwater-uring", "shearwater-site"] {
            assert!(is_met(ours, Some(all)));
            assert!(lost.iter().all(|crowd| !is_met(ours, Some(*crowd))), "{ours}");
        }
        assert!(lost.iter().all(|crowd| is_met("nginx", Some(*crowd))), "peers are shown");
        assert!(!is_met("nginx", None), "what is not measured is not met");
    }
}
