//! What an attack is: who comes, where to, what each does, and the bounds that have to hold.

use std::sync::Arc;
use std::time::Duration;

use super::script::Script;
use crate::harness::random::Random;

/// Which server is attacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Host {
    /// The program on a folder with a small file and one of 2 GiB.
    Folder,
    /// The same with few descriptors.
    FewDescriptors,
    /// The example server, which takes bodies.
    Routes,
}

/// An attack. One wave of it is `count` connections opened over [`SPREAD`].
#[derive(Debug)]
pub(super) struct Attack {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// What the attackers do.
    pub(super) about: &'static str,
    /// Who is attacked.
    pub(super) host: Host,
    /// Connections in a wave.
    pub(super) count: u64,
    /// What the connection with this number does.
    pub(super) script: fn(&mut Random, u64) -> Arc<Script>,
    /// What has to hold.
    pub(super) bounds: Bounds,
}

/// The bounds of one attack; the ones that all have in common stand in `verdict.rs`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The server's CPU beyond what it spends on the normal clients alone, per cent of a core.
    pub(super) cpu_percent: f64,
    /// Growth of the server's memory at its peak, MiB.
    pub(super) peak_mib: f64,
    /// Growth of its memory a minute later, MiB.
    pub(super) left_mib: f64,
    /// How connections may end, and after how many seconds at the latest.
    pub(super) ends: &'static [(&'static str, f64)],
}

/// Waves of an attack; the last is watched until all attackers are gone.
pub(super) const WAVES: usize = 3;
/// The time over which the connections of a wave are opened.
pub(super) const SPREAD: Duration = Duration::from_millis(2_500);
/// How long each wave but the last goes on.
pub(super) const WAVE: Duration = Duration::from_millis(3_000);
/// The quiet before each wave, in which the normal clients are alone.
pub(super) const QUIET: Duration = Duration::from_millis(2_000);
/// The pause before each quiet stretch: what the last wave left is over then.
pub(super) const SETTLE: Duration = Duration::from_millis(500);
