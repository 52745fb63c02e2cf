//! Reports to the operator that clients can provoke: each kind at most once a second, with the number of
//! suppressed ones.

use std::mem::{Discriminant, discriminant};

use shearwater_http1::Head;

use crate::limits::{REPORT_BYTES_MAX, REPORT_EVERY_MS, REPORT_KINDS_MAX};
use crate::response::fault::Fault;
use crate::server::notice::Notice;

/// Kinds of faults that a worker has reported within the last second.
#[derive(Debug)]
pub(crate) struct Reports {
    open: Vec<Open>,
    /// Time at which the first of them is closed.
    due_ms: u64,
}

/// A kind that was reported.
#[derive(Debug)]
struct Open {
    kind: (Discriminant<Fault>, String),
    until_ms: u64,
    /// First fault since the last report.
    waiting: Option<Fault>,
    /// Number of faults after that one.
    left_out: u64,
}

/// A decision on a fault.
#[derive(Debug)]
pub(crate) enum Admitted {
    /// Report it now.
    Now(Fault),
    /// Report or count it when its kind is closed.
    Later,
    /// Only count it: too many kinds are open.
    Never,
}

impl Default for Reports {
    fn default() -> Self {
        Self { open: Vec::new(), due_ms: u64::MAX }
    }
}

impl Reports {
    /// Returns the time at which [`close`](Self::close) must be called.
    #[inline]
    pub(crate) fn due_ms(&self) -> u64 {
        self.due_ms
    }

    pub(crate) fn admit(&mut self, fault: Fault, now_ms: u64) -> Admitted {
        let kind = (discriminant(&fault), fault.kind().to_owned());
        if let Some(open) = self.open.iter_mut().find(|open| open.kind == kind) {
            match open.waiting {
                None => open.waiting = Some(fault),
                Some(_) => open.left_out += 1,
            }
            return Admitted::Later;
        }
        if self.open.len() >= REPORT_KINDS_MAX {
            return Admitted::Never;
        }
        let until_ms = now_ms.saturating_add(REPORT_EVERY_MS);
        self.due_ms = self.due_ms.min(until_ms);
        self.open.push(Open { kind, until_ms, waiting: None, left_out: 0 });
        Admitted::Now(fault)
    }

    /// Closes the kinds whose second is over. Reports a kind's waiting fault and keeps it open for another
    /// second.
    pub(crate) fn close(&mut self, now_ms: u64, mut report: impl FnMut(Fault, u64)) {
        self.open.retain_mut(|open| {
            if open.until_ms > now_ms {
                return true;
            }
            let Some(fault) = open.waiting.take() else { return false };
            report(fault, std::mem::take(&mut open.left_out));
            open.until_ms = now_ms.saturating_add(REPORT_EVERY_MS);
            true
        });
        self.due_ms = self.open.iter().map(|open| open.until_ms).min().unwrap_or(u64::MAX);
    }
}

impl Fault {
    /// Returns the text that distinguishes kinds within a variant.
    fn kind(&self) -> &str {
        match self {
            Self::Settled(fault) => fault.kind(),
            Self::Panic(panic) => panic.place.as_deref().unwrap_or_default(),
            Self::Built(_) | Self::BuffersFull { .. } => "",
            Self::File { error, .. } | Self::CutShort(error) => error,
            Self::Proxy { fault, .. } => fault.help(),
            Self::OtherProtocol(protocol) => protocol.name(),
        }
    }

    pub(crate) fn into_notice(self, worker: usize, left_out: u64) -> Notice {
        match self {
            Self::Settled(fault) => fault.into_notice(worker, left_out),
            Self::Panic(panic) => {
                let request = panic.request.map(cut);
                let (message, place) = (cut(panic.message), panic.place);
                Notice::HandlerPanicked { worker, request, message, place, left_out }
            }
            Self::Built(message) => Notice::HandlerMisbuilt { worker, message: cut(message), left_out },
            Self::File { path, error, status } => {
                Notice::FileFailed { worker, path, error, status, left_out }
            }
            Self::CutShort(error) => Notice::FileCutShort { worker, error, left_out },
            Self::Proxy { peer, fault } => {
                let (why, help) = (fault.to_string(), fault.help());
                Notice::ProxyRejected { worker, peer, why, help, left_out }
            }
            Self::OtherProtocol(protocol) => {
                Notice::OtherProtocol { worker, protocol: protocol.name(), left_out }
            }
            Self::BuffersFull { bytes_max } => Notice::BuffersFull { worker, bytes_max, left_out },
        }
    }
}

/// Returns a request's name for reports.
pub(crate) fn named(head: &Head<'_>) -> String {
    format!("{} {}", head.method_name(), head.path())
}

/// Truncates a text that a client may have made long.
pub(crate) fn cut(mut text: String) -> String {
    if text.len() > REPORT_BYTES_MAX {
        let end = (0..=REPORT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('\u{2026}');
    }
    text
}
