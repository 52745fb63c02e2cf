//! Standard output: results of commands, reports at the start and at the end.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use shearwater::{StartReport, Summary};
use shearwater_metrics::Admin;
pub(crate) use shearwater_metrics::format::{self, grouped};

use crate::access_log::PlannedLog;
use crate::failure::Failure;
use crate::site::Site;
use crate::style::Style;

/// Maximum number of sites in the start report.
const SITES_SHOWN_MAX: usize = 10;

/// Lines of the start report that the server doesn't know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines<'a> {
    /// The certificates.
    pub(crate) certificates: &'a [String],
    /// The access log.
    pub(crate) log: Option<&'a str>,
    /// The admin listener.
    pub(crate) admin: Option<&'a str>,
    /// Keys of the file that flags override.
    pub(crate) overridden: &'a [String],
    /// The report says how the server works, too.
    pub(crate) is_verbose: bool,
}

/// Formats the start report, ending with a blank line.
pub(crate) fn start(site: &Site, start_report: &StartReport, lines: &Lines<'_>) -> String {
    let Lines { certificates, log, admin, overridden, is_verbose } = *lines;
    let style = Style::of_stdout();
    let (driver, workers) = (start_report.driver, counted(start_report.workers as u64, "worker"));
    let version = env!("CARGO_PKG_VERSION");
    let mut block = format!("{}Shearwater {version}{}, {driver}, {workers}\n", style.bold, style.plain);
    let link = |url: &str| format!("{}{url}{}", style.link, style.plain);
    for address in &start_report.addresses {
        let scheme = if start_report.secure_addresses.contains(address) { HTTPS } else { HTTP };
        line(&mut block, "URL", &format!("{}{}", link(&url(scheme, *address, "/")), scope(*address)));
        if let Some(own) = own_address(*address) {
            line(&mut block, "network", &link(&url(scheme, own, "/")));
        }
    }
    for path in &start_report.unix_sockets {
        line(&mut block, "socket", &link(&path.display().to_string()));
    }
    serves(&mut block, site, SITES_SHOWN_MAX);
    if is_verbose {
        line(&mut block, "driver", &format!("{driver} ({})", start_report.driver_reason));
        line(&mut block, "workers", &start_report.workers.to_string());
        line(&mut block, "accept", &start_report.accept.to_string());
        line(&mut block, "scheduling", &start_report.order.to_string());
        line(&mut block, "descriptors", &descriptors(start_report));
        line(&mut block, "memory", &memory(start_report.buffered_bytes_max));
    }
    certificates.iter().for_each(|certificate| line(&mut block, "certificate", certificate));
    if let Some(log) = log {
        line(&mut block, "log", log);
    }
    if let Some(admin) = admin {
        line(&mut block, "admin", admin);
    }
    for overridden in overridden {
        line(&mut block, "flag", overridden);
    }
    for warning in &start_report.limit_warnings {
        line(&mut block, "limited", &warning.to_string());
    }
    block.push_str("  Press Ctrl-C to stop gracefully, twice to stop at once.\n\n");
    block
}

/// Appends the folder, or at most `shown_max` sites with their folders.
pub(crate) fn serves(block: &mut String, site: &Site, shown_max: usize) {
    let shown = site.lines.len().min(shown_max);
    for (index, described) in site.lines[..shown].iter().enumerate() {
        line(block, if index == 0 { "serves" } else { "" }, described);
    }
    if site.lines.len() > shown {
        let others = counted((site.lines.len() - shown) as u64, "other site");
        line(block, "", &format!("and {others}: `shearwater check FILE` lists all"));
    }
}

/// Formats the address of the admin listener's page.
pub(crate) fn admin(admin: &Admin) -> String {
    match (admin.address(), admin.path()) {
        (Some(address), _) => format!("{}{}", url(HTTP, address, "/status"), scope(address)),
        (None, Some(path)) => format!("unix:{}", path.display()),
        (None, None) => String::new(),
    }
}

/// Formats the totals.
pub(crate) fn end(summary: &Summary) -> String {
    let totals = &summary.totals;
    let (requests, rejected) = (counted(totals.requests, "request"), grouped(totals.requests_refused));
    let connections = counted(totals.connections_accepted, "connection");
    format!("Stopped: {requests} handled, {rejected} rejected, {connections}.\n")
}

/// Prints a result to standard output. A closed pipe is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Returns the error of printing, unless the pipe is closed.
pub(crate) fn printed(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::output(&error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns the function that prints reports while serving: to standard output, unless that is the log or reports are unwanted.
pub(crate) fn printer(is_quiet: bool, log: Option<&PlannedLog>) -> fn(&str) {
    match log {
        _ if is_quiet => |_: &str| {},
        // A closed standard error is no reason to stop serving.
        Some(log) if log.takes_stdout() => |text: &str| drop(io::stderr().write_all(text.as_bytes())),
        _ => print_if_open,
    }
}

/// Prints to standard output while serving, and ignores errors.
fn print_if_open(text: &str) {
    let mut out = io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Appends a line with a label.
pub(crate) fn line(block: &mut String, name: &str, value: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(block, "  {name:<12} {value}");
}

/// Schemes and their default ports.
const HTTP: (&str, u16) = ("http", 80);
const HTTPS: (&str, u16) = ("https", 443);

/// Returns the first URL to open in a browser; `None` if the server listens on no address of IP.
pub(crate) fn first_url(start_report: &StartReport) -> Option<String> {
    let secure = start_report.secure_addresses.first().map(|address| url(HTTPS, *address, "/"));
    secure.or_else(|| start_report.addresses.first().map(|address| url(HTTP, *address, "/")))
}

/// Formats a URL to click. An unspecified address is shown as the loopback address.
fn url((scheme, default_port): (&str, u16), address: SocketAddr, path: &str) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    match SocketAddr::new(ip, address.port()) {
        address if address.port() != default_port => format!("{scheme}://{address}{path}"),
        SocketAddr::V4(address) => format!("{scheme}://{}{path}", address.ip()),
        SocketAddr::V6(address) => format!("{scheme}://[{}]{path}", address.ip()),
    }
}

/// Returns the note on an unspecified address.
fn scope(address: SocketAddr) -> &'static str {
    if address.ip().is_unspecified() { "  (all addresses of this machine)" } else { "" }
}

/// Returns the address at which other machines most likely reach a server that listens on all: the source of packets to
/// an address for documentation (RFC 5737, RFC 3849), to which none is sent.
fn own_address(address: SocketAddr) -> Option<SocketAddr> {
    let remote: IpAddr = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        _ => return None,
    };
    let socket = UdpSocket::bind((address.ip(), 0)).ok()?;
    socket.connect((remote, 9)).ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback() && !own.is_unspecified()).then(|| SocketAddr::new(own, address.port()))
}

fn descriptors(start_report: &StartReport) -> String {
    let limit = start_report.descriptors;
    let limit = if !limit.is_known {
        format!("limit hidden by the system, {} assumed", grouped(limit.soft_now))
    } else if limit.soft_now > limit.soft_before {
        format!("limit raised from {} to {}", grouped(limit.soft_before), grouped(limit.soft_now))
    } else {
        format!("limit {}", grouped(limit.soft_now))
    };
    let connections_max = start_report.connections_max as u64;
    let exceeds = if connections_max > start_report.descriptors.soft_now {
        ", idle ones without a descriptor"
    } else {
        ""
    };
    format!("{limit}: up to {} connections{exceeds}", grouped(connections_max))
}

/// Formats the memory per worker for unfinished requests.
pub(crate) fn memory(buffered_bytes_max: usize) -> String {
    format!("up to {} per worker for unfinished requests", size(buffered_bytes_max as u64))
}

/// Formats bytes in the unit of which there are fewer than 1,024.
pub(crate) fn size(bytes: u64) -> String {
    format::bytes(Some(bytes as f64))
}

/// Formats a number of things: `1 request`, `2,000 requests`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::{HTTP, grouped, url};

    #[test]
    fn formats_numbers_and_urls() {
        assert_eq!(
            [0, 999, 1000, 19_744, 1_234_567].map(grouped),
            ["0", "999", "1,000", "19,744", "1,234,567"]
        );
        assert_eq!(url(HTTP, ([127, 0, 0, 1], 8080).into(), "/"), "http://127.0.0.1:8080/");
        assert_eq!(url(HTTP, ([10, 0, 0, 1], 80).into(), "/"), "http://10.0.0.1/");
        for (address, shown) in [
            ("[::]:81", "[::1]:81"),
            ("0.0.0.0:81", "127.0.0.1:81"),
            ("[::1]:80", "[::1]"),
            ("[2001:db8::1]:81", "[2001:db8::1]:81"),
        ] {
            let expected = format!("http://{shown}/");
            assert_eq!(url(HTTP, address.parse().expect("an address"), "/"), expected);
        }
    }
}
