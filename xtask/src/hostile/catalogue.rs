//! The attacks, with their figures and bounds. A time is the server's documented limit and what its timers may be late. What may be left
//! of memory is what a worker keeps for the next requests (`SPARE_…`: 1 MiB each of blocks, outputs and pages) and what the allocator makes of it.

use super::attack::{Attack, Bounds, Host};
use super::parts;

/// Every attack, those first that are watched longest.
pub(super) const ATTACKS: [Attack; 12] = [
    Attack {
        name: "slow-readers",
        about: "ask for a file of 2 GiB and read one byte a second",
        host: Host::Folder,
        count: 1_000,
        script: parts::slow_reader,
        bounds: Bounds { cpu_percent: 10.0, peak_mib: 16.0, left_mib: 4.0, ends: &[("200 reset", 68.0)] },
    },
    Attack {
        name: "slow-bodies",
        about: "send one byte of a body a second",
        host: Host::Routes,
        count: 1_000,
        script: parts::slow_body,
        bounds: Bounds { cpu_percent: 10.0, peak_mib: 16.0, left_mib: 4.0, ends: &[("408 closed", 14.0)] },
    },
    Attack {
        name: "unread-pipelines",
        about: "send 10,000 requests at once; five of six never read the answers",
        host: Host::Folder,
        count: 120,
        script: parts::pipeline,
        bounds: Bounds {
            cpu_percent: 60.0,
            peak_mib: 32.0,
            left_mib: 6.0,
            ends: &[("200 served", 10.0), ("200 reset", 68.0)],
        },
    },
    Attack {
        name: "few-descriptors",
        about: "connect and never send, more than the server has descriptors",
        host: Host::FewDescriptors,
        count: 1_200,
        script: parts::silence,
        bounds: Bounds { cpu_percent: 5.0, peak_mib: 8.0, left_mib: 4.0, ends: &[("closed", 36.0)] },
    },
    Attack {
        name: "slow-heads",
        about: "send one byte of a head a second",
        host: Host::Folder,
        count: 1_000,
        script: parts::slow_head,
        bounds: Bounds { cpu_percent: 10.0, peak_mib: 16.0, left_mib: 4.0, ends: &[("408 closed", 13.0)] },
    },
    Attack {
        name: "large-heads",
        about: "send 60 KB of a head and never its end",
        host: Host::Folder,
        count: 6_000,
        script: parts::large_head,
        bounds: Bounds {
            cpu_percent: 60.0,
            peak_mib: 300.0,
            left_mib: 32.0,
            ends: &[("408 closed", 13.0), ("503 closed", 13.0), ("503 reset", 13.0)],
        },
    },
    Attack {
        name: "silence",
        about: "connect and never send",
        host: Host::Folder,
        count: 5_000,
        script: parts::silence,
        bounds: Bounds { cpu_percent: 20.0, peak_mib: 4.0, left_mib: 4.0, ends: &[("closed", 13.0)] },
    },
    Attack {
        name: "sending-on",
        about: "are refused (400, 413, 414, 431), never read and send on",
        host: Host::Routes,
        count: 200,
        script: parts::refused_and_sending_on,
        bounds: Bounds {
            cpu_percent: 40.0,
            peak_mib: 16.0,
            left_mib: 4.0,
            ends: &[("400 reset", 14.0), ("413 reset", 14.0), ("414 reset", 14.0), ("431 reset", 14.0)],
        },
    },
    Attack {
        name: "large-bodies",
        about: "send 9.4 MB each; half of the bodies are kept, half thrown away",
        host: Host::Routes,
        count: 100,
        script: parts::large_body,
        bounds: Bounds {
            cpu_percent: 60.0,
            peak_mib: 320.0,
            left_mib: 32.0,
            ends: &[("200 served", 15.0), ("503 closed", 15.0), ("503 reset", 15.0)],
        },
    },
    Attack {
        name: "half-closed",
        about: "say that they send no more: before, within and after a request",
        host: Host::Routes,
        count: 2_000,
        script: parts::half_closed,
        bounds: Bounds {
            cpu_percent: 20.0,
            peak_mib: 8.0,
            left_mib: 4.0,
            ends: &[("200 closed", 2.0), ("400 closed", 2.0), ("closed", 2.0)],
        },
    },
    Attack {
        name: "resets",
        about: "reset at random moments: before, within and after requests and answers",
        host: Host::Folder,
        count: 3_000,
        script: parts::reset_at_random,
        bounds: Bounds {
            cpu_percent: 60.0,
            peak_mib: 16.0,
            left_mib: 4.0,
            ends: &[("left", 2.0), ("200 left", 2.0), ("405 left", 2.0), ("405 closed", 2.0)],
        },
    },
    Attack {
        name: "many-ranges",
        about: "ask for thousands of ranges of a file of 2 GiB: apart, overlapping, each the whole file",
        host: Host::Folder,
        count: 300,
        script: parts::many_ranges,
        bounds: Bounds {
            cpu_percent: 40.0,
            peak_mib: 16.0,
            left_mib: 4.0,
            ends: &[("200 left", 4.0), ("206 left", 4.0), ("206 served", 4.0), ("416 left", 4.0)],
        },
    },
];
