//! Threads, descriptors and sockets of a process, from Linux's `/proc`.

use std::fs;
use std::path::Path;

use rustix::process::Pid;

/// Returns whether `/proc` exists.
pub(crate) fn tells() -> bool {
    let tells = Path::new("/proc/self/task").exists();
    if !tells {
        println!("skipped: this system has no /proc to look into");
    }
    tells
}

/// One thread of a process.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) name: String,
    /// Numbers of the cores that it may run on.
    pub(crate) cores: Vec<u32>,
}

/// Returns the threads of a process.
pub(crate) fn threads(pid: Pid) -> Vec<Thread> {
    let tasks = fs::read_dir(of(pid, "task")).expect("its threads");
    let thread = |folder: &Path| {
        let status = fs::read_to_string(folder.join("status")).ok()?;
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let name = line("Name:").expect("a name").to_owned();
        Some(Thread { name, cores: cores(line("Cpus_allowed_list:").expect("cores")) })
    };
    // A thread may end between being listed and being asked.
    tasks.filter_map(|task| thread(&task.expect("a thread").path())).collect()
}

/// Parses `0-3,8`.
fn cores(list: &str) -> Vec<u32> {
    let number = |text: &str| text.parse::<u32>().expect("a number");
    let range = |range: &str| match range.split_once('-') {
        Some((first, last)) => (number(first)..=number(last)).collect(),
        None => vec![number(range)],
    };
    list.split(',').flat_map(range).collect()
}

/// Returns the targets of a process's descriptors, such as `anon_inode:[io_uring]`.
pub(crate) fn descriptors(pid: Pid) -> Vec<String> {
    let links = fs::read_dir(of(pid, "fd")).expect("its descriptors");
    let target = |link: &Path| Some(fs::read_link(link).ok()?.to_string_lossy().into_owned());
    links.filter_map(|link| target(&link.expect("a descriptor").path())).collect()
}

fn of(pid: Pid, what: &str) -> String {
    format!("/proc/{}/{what}", pid.as_raw_nonzero())
}

/// An IPv4 TCP socket of this machine.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) port: u16,
    pub(crate) remote_port: u16,
    pub(crate) state: State,
    /// Unread bytes; of a listener, connections to accept.
    pub(crate) waiting: u32,
    /// The kernel's keepalive timer is active.
    pub(crate) has_keepalive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Established,
    /// A client that waits for a SYN-ACK.
    SynSent,
    Listen,
    Other,
}

/// Returns all sockets.
pub(crate) fn sockets() -> Vec<Socket> {
    let text = fs::read_to_string("/proc/net/tcp").expect("sockets");
    text.lines().skip(1).map(socket).collect()
}

fn socket(line: &str) -> Socket {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let hex = |text: &str| u32::from_str_radix(text, 16).expect("a hexadecimal number");
    let after_colon = |text: &str| hex(text.split_once(':').expect("a colon").1);
    let port = |address: &str| u16::try_from(after_colon(address)).expect("a port");
    Socket {
        port: port(columns[1]),
        remote_port: port(columns[2]),
        state: match columns[3] {
            "01" => State::Established,
            "02" => State::SynSent,
            "0A" => State::Listen,
            _ => State::Other,
        },
        waiting: after_colon(columns[4]),
        has_keepalive: columns[5].starts_with("02:"),
    }
}
