//! The block that is printed at start: where, what, how, and what the kernel holds back.

use std::fmt::Write;
use std::io::IsTerminal;
use std::net::{IpAddr, SocketAddr};

use shearwater::StartReport;

use crate::site::Site;

/// The whole block, ending with a blank line.
///
/// `replaced` says what flags have replaced in it.
pub(crate) fn start(site: &Site, start_report: &StartReport, replaced: &[String]) -> String {
    let style = Style::of_stdout();
    let mut block = format!("{}Shearwater {}{}\n", style.bold, env!("CARGO_PKG_VERSION"), style.plain);
    for address in &start_report.addresses {
        line(&mut block, "URL", &format!("{}{}{}", style.link, url(*address), style.plain));
    }
    for path in &start_report.unix_sockets {
        line(&mut block, "socket", &format!("{}{}{}", style.link, path.display(), style.plain));
    }
    line(&mut block, "serves", &site.to_string());
    line(&mut block, "driver", &format!("{} ({})", start_report.driver, start_report.driver_reason));
    line(&mut block, "workers", &start_report.workers.to_string());
    line(&mut block, "accept", &start_report.accept.to_string());
    line(&mut block, "order", &start_report.order.to_string());
    line(&mut block, "descriptors", &descriptors(start_report));
    line(&mut block, "memory", &memory(start_report.buffered_bytes_max));
    for replaced in replaced {
        line(&mut block, "flag", replaced);
    }
    for shortfall in &start_report.shortfalls {
        line(&mut block, "held back", &shortfall.to_string());
    }
    block.push_str("  Ctrl-C ends it when every request is answered; twice: at once.\n\n");
    block
}

/// Adds a line.
pub(crate) fn line(block: &mut String, name: &str, value: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(block, "  {name:<12} {value}");
}

/// A URL that can be clicked: an address that means "all" is shown as this machine's own.
fn url(address: SocketAddr) -> String {
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let everyone = if address.ip().is_unspecified() { "  (on every address of this machine)" } else { "" };
    match address.port() {
        80 => format!("http://{host}/{everyone}"),
        port => format!("http://{host}:{port}/{everyone}"),
    }
}

fn descriptors(start_report: &StartReport) -> String {
    let limit = start_report.descriptors;
    let found = if limit.soft_now > limit.soft_before {
        format!("limit raised from {} to {}", grouped(limit.soft_before), grouped(limit.soft_now))
    } else {
        format!("limit {}", grouped(limit.soft_now))
    };
    format!("{found}: up to {} connections", grouped(start_report.connections_max as u64))
}

/// Formats the memory that each worker may hold for unfinished requests.
pub(crate) fn memory(buffered_bytes_max: usize) -> String {
    let bytes = grouped(buffered_bytes_max as u64);
    format!("up to {bytes} bytes of unfinished requests in each worker")
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Colours, on a terminal that wants them.
struct Style {
    bold: &'static str,
    link: &'static str,
    plain: &'static str,
}

impl Style {
    fn of_stdout() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if wanted && std::io::stdout().is_terminal() {
            Self { bold: "\x1b[1m", link: "\x1b[4;36m", plain: "\x1b[0m" }
        } else {
            Self { bold: "", link: "", plain: "" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{grouped, url};

    #[test]
    fn numbers_and_urls_read_well() {
        assert_eq!(
            [0, 999, 1000, 19_744, 1_234_567].map(grouped),
            ["0", "999", "1,000", "19,744", "1,234,567"]
        );
        assert_eq!(url(([127, 0, 0, 1], 8080).into()), "http://127.0.0.1:8080/");
        assert_eq!(url(([10, 0, 0, 1], 80).into()), "http://10.0.0.1/");
        assert_eq!(
            url("[::]:81".parse().expect("an address")),
            "http://[::1]:81/  (on every address of this machine)"
        );
    }
}
