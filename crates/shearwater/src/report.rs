//! Messages to the operator.

use std::fmt::{self, Display};
use std::io::{self, Write};

use shearwater_engine::{Control, MessageLevel, Notice, Totals};
use tracing::subscriber::NoSubscriber;

use crate::signal_functions::Purpose;

/// Log level of messages to standard error. Each level includes those before it.
///
/// It applies to programs without a subscriber of [`tracing`](https://docs.rs/tracing). With one, every message is an
/// event of the target `shearwater`, and the subscriber chooses. Fields of the events: `kind` (a stable name), and where
/// they apply `server` (the name of a [secondary](crate::Server::secondary) one), `worker`, `status`, `errno`, `path`,
/// `suppressed` (messages of the kind that were left out) and `details` (several lines). Totals requested by `SIGUSR1`
/// have the target `shearwater::totals`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
#[non_exhaustive]
pub enum Verbosity {
    /// No messages.
    Off,
    /// Failures, refused reloads, and totals requested by `SIGUSR1`.
    Error,
    /// Warnings.
    Warn,
    /// Reloads, starting and ending a drain, totals at the end.
    #[default]
    Info,
    /// Everything, including the normal end of each worker.
    Debug,
}

/// Beginning of the message that [keeps](Control::messages) the errors of a refused reload.
pub const NOT_RELOADED: &str = "not reloaded: what was served before is still served";
const NOT_UPGRADED: &str = "not upgraded: nothing has changed";

/// Facts of a message that its event has as fields.
#[derive(Debug, Default, Clone, Copy)]
struct Facts<'a> {
    server: Option<&'static str>,
    worker: Option<u64>,
    status: Option<u64>,
    errno: Option<i64>,
    path: Option<&'a str>,
    suppressed: Option<u64>,
    details: Option<&'a str>,
}

impl Verbosity {
    /// Returns the level of a message that is kept.
    fn kept(self) -> Option<MessageLevel> {
        match self {
            Self::Error => Some(MessageLevel::Error),
            Self::Warn => Some(MessageLevel::Warning),
            Self::Info => Some(MessageLevel::Info),
            Self::Off | Self::Debug => None,
        }
    }
}

/// Reports a server's messages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MessageReporter {
    pub(crate) verbosity: Verbosity,
    /// Name of a secondary server.
    pub(crate) server: Option<&'static str>,
}

impl MessageReporter {
    /// Reports a notice, and keeps it among the last messages unless it is for debugging.
    pub(crate) fn print(self, notice: &Notice, control: &Control) {
        let level = self.of_server(level(notice));
        if let Some(kept) = level.kept() {
            control.keep_message(kept, notice.to_string());
        }
        self.report(level, notice);
    }

    /// Returns the level of a message: a secondary server's normal operation is for debugging.
    fn of_server(self, level: Verbosity) -> Verbosity {
        match level {
            Verbosity::Info if self.server.is_some() => Verbosity::Debug,
            _ => level,
        }
    }

    fn report(self, level: Verbosity, notice: &Notice) {
        let path = match notice {
            Notice::FileFailed { path, .. } => Some(path.to_string_lossy()),
            _ => None,
        };
        self.line(level, kind(notice), Facts { path: path.as_deref(), ..facts(notice) }, notice);
    }

    /// Reports the totals of a running server, at every level but [`Off`](Verbosity::Off): somebody has asked for them.
    pub(crate) fn print_running_totals(self, totals: &Totals) {
        if has_subscriber() {
            tracing::info!(target: "shearwater::totals", kind = "totals", "so far {totals}");
        } else {
            self.print_line(Verbosity::Error, &format_args!("so far {totals}"));
        }
    }

    /// Reports the totals of a server that has ended.
    pub(crate) fn print_totals(self, totals: &Totals) {
        let level = self.of_server(Verbosity::Info);
        self.line(level, "totals", Facts::default(), &format_args!("in all {totals}"));
    }

    /// Reports a warning.
    pub(crate) fn warn(self, kind: &'static str, text: &dyn Display) {
        self.line(Verbosity::Warn, kind, Facts::default(), text);
    }

    /// Reports and keeps that a reload has succeeded. Returns the text. Returns the text.
    pub(crate) fn print_reloaded(self, what: &str, control: &Control) -> String {
        let text = format!("reloaded {what}");
        self.line(Verbosity::Info, "reloaded", Facts::default(), &text);
        control.keep_message(MessageLevel::Info, text.clone());
        text
    }

    /// Reports and keeps that a reload is one of another process.
    pub(crate) fn print_forwarded(self, process: u32, control: &Control) {
        let text = format!("process {process} serves now: forwarded SIGHUP to it");
        self.line(Verbosity::Info, "reload_forwarded", Facts::default(), &text);
        control.keep_message(MessageLevel::Info, text);
    }

    /// Reports and keeps that another process has taken the place of this one. Returns the text. Returns the text.
    pub(crate) fn print_upgraded(self, what: &str, control: &Control) -> String {
        let text = format!("upgraded: {what}");
        self.line(Verbosity::Info, "upgraded", Facts::default(), &text);
        control.keep_message(MessageLevel::Info, text.clone());
        text
    }

    /// Reports the errors of a reload or upgrade as they are, and that nothing has changed; keeps both.
    /// Returns the latter.
    pub(crate) fn print_refused(self, purpose: Purpose, errors: &str, control: &Control) -> &'static str {
        let text = self.report_refused(purpose, errors);
        control.keep_message(MessageLevel::Error, format!("{text}\n{errors}"));
        text
    }

    fn report_refused(self, purpose: Purpose, errors: &str) -> &'static str {
        let (kind, text) = match purpose {
            Purpose::Reload => ("reload_refused", NOT_RELOADED),
            Purpose::Upgrade { .. } => ("upgrade_refused", NOT_UPGRADED),
        };
        let facts = Facts { details: Some(errors), ..Facts::default() };
        self.line(Verbosity::Error, kind, facts, &text);
        text
    }

    /// Emits an event, or prints a line if nobody would see the event.
    fn line(self, level: Verbosity, kind: &'static str, facts: Facts<'_>, text: &dyn Display) {
        let text = &Attributed(self.server, text);
        if has_subscriber() {
            return emit(level, kind, Facts { server: self.server, ..facts }, text);
        }
        if let Some(details) = facts.details.filter(|_| level <= self.verbosity) {
            drop(write!(io::stderr(), "{details}"));
        }
        self.print_line(level, text);
    }

    fn print_line(self, level: Verbosity, text: &dyn Display) {
        if level <= self.verbosity {
            // A closed standard error is no reason to stop serving.
            drop(writeln!(io::stderr(), "shearwater: {text}"));
        }
    }
}

/// A message after its server's name, if it has one.
struct Attributed<'a>(Option<&'static str>, &'a dyn Display);

impl Display for Attributed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|server| write!(f, "{server}: "))?;
        self.1.fmt(f)
    }
}

/// Returns true if this thread's events have a subscriber.
fn has_subscriber() -> bool {
    tracing::dispatcher::get_default(|dispatch| !dispatch.is::<NoSubscriber>())
}

/// Emits an event of `tracing`. Fields that are `None` are left out.
fn emit(level: Verbosity, kind: &'static str, facts: Facts<'_>, text: &dyn Display) {
    let Facts { server, worker, status, errno, path, suppressed, details } = facts;
    macro_rules! event {
        ($level:expr) => {
            tracing::event!(
                target: "shearwater",
                $level,
                kind,
                server,
                worker,
                status,
                errno,
                path,
                suppressed,
                details,
                "{text}"
            )
        };
    }
    match level {
        Verbosity::Off => {}
        Verbosity::Error => event!(tracing::Level::ERROR),
        Verbosity::Warn => event!(tracing::Level::WARN),
        Verbosity::Info => event!(tracing::Level::INFO),
        Verbosity::Debug => event!(tracing::Level::DEBUG),
    }
}

/// Returns the level of a notice.
fn level(notice: &Notice) -> Verbosity {
    match notice {
        Notice::WorkerEnded { error: Some(_), .. }
        | Notice::AcceptorEnded { error: Some(_) }
        | Notice::ListenerFailed { .. }
        | Notice::SuccessorFailed { .. }
        | Notice::HandlerPanicked { .. }
        | Notice::FileFailed { status: 500.., .. }
        | Notice::FileCutShort { .. }
        | Notice::HandlerMisbuilt { .. } => Verbosity::Error,
        Notice::Draining { .. } | Notice::Stopping => Verbosity::Info,
        Notice::WorkerEnded { error: None, .. } | Notice::AcceptorEnded { error: None } => Verbosity::Debug,
        // Accepting is paused or resumed, a worker is blocked, connections were reset, a file must not be sent; and
        // notices added in the future.
        _ => Verbosity::Warn,
    }
}

/// Returns the stable name of a notice's kind.
fn kind(notice: &Notice) -> &'static str {
    match notice {
        Notice::AcceptPaused { .. } | Notice::AcceptorPaused { .. } => "accept_paused",
        Notice::Full { .. } => "connections_full",
        Notice::AcceptResumed { .. } | Notice::AcceptorResumed => "accept_resumed",
        Notice::ListenerFailed { .. } => "listener_failed",
        Notice::HandlerPanicked { .. } => "handler_panicked",
        Notice::HandlerMisbuilt { .. } => "response_invalid",
        Notice::FileFailed { .. } => "file_failed",
        Notice::FileCutShort { .. } => "file_cut_short",
        Notice::ProxyRejected { .. } => "proxy_rejected",
        Notice::OtherProtocol { .. } => "other_protocol",
        Notice::BodyTooLarge { .. } => "body_too_large",
        Notice::BuffersFull { .. } => "buffers_full",
        Notice::WorkerBlocked { .. } => "worker_blocked",
        Notice::BlockedBy { .. } => "worker_blocked_by",
        Notice::ReloadFailed { .. } => "reload_failed",
        Notice::SuccessorFailed { .. } => "successor_failed",
        Notice::SuccessorUnannounced { .. } => "successor_unannounced",
        Notice::Draining { .. } => "draining",
        Notice::Stopping => "stopping",
        Notice::CutOff { .. } => "connections_cut_off",
        Notice::TasksCutOff { .. } => "tasks_cut_off",
        Notice::AcceptorEnded { .. } => "acceptor_ended",
        Notice::WorkerEnded { .. } => "worker_ended",
        // Added in the future.
        _ => "notice",
    }
}

/// Returns the fields of a notice, without the path of its file.
fn facts(notice: &Notice) -> Facts<'static> {
    let worker = |worker: &usize| Some(*worker as u64);
    let repeated = |count: u64| (count > 0).then_some(count);
    let none = Facts::default();
    match notice {
        Notice::AcceptPaused { worker: number, .. }
        | Notice::Full { worker: number, .. }
        | Notice::AcceptResumed { worker: number }
        | Notice::BodyTooLarge { worker: number, .. }
        | Notice::BlockedBy { worker: number, .. }
        | Notice::ReloadFailed { worker: number, .. }
        | Notice::CutOff { worker: number, .. }
        | Notice::TasksCutOff { worker: number, .. }
        | Notice::WorkerEnded { worker: number, .. } => Facts { worker: worker(number), ..none },
        Notice::ListenerFailed { worker: number, errno, .. } => {
            Facts { worker: number.as_ref().and_then(worker), errno: Some((*errno).into()), ..none }
        }
        Notice::HandlerPanicked { worker: number, left_out, .. }
        | Notice::HandlerMisbuilt { worker: number, left_out, .. }
        | Notice::FileCutShort { worker: number, left_out, .. }
        | Notice::ProxyRejected { worker: number, left_out, .. }
        | Notice::BuffersFull { worker: number, left_out, .. } => {
            Facts { worker: worker(number), suppressed: repeated(*left_out), ..none }
        }
        Notice::FileFailed { worker: number, status, left_out, .. } => Facts {
            worker: worker(number),
            status: Some((*status).into()),
            suppressed: repeated(*left_out),
            ..none
        },
        Notice::WorkerBlocked { worker: number, times, .. } => {
            Facts { worker: worker(number), suppressed: repeated(times.saturating_sub(1)), ..none }
        }
        _ => none,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};

    use shearwater_engine::{Control, Notice, Totals};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::{MessageReporter, Purpose, Verbosity, kind, level};

    #[test]
    fn each_level_includes_those_before_it() {
        let notices = [
            Notice::WorkerEnded { worker: 0, error: Some("x".to_owned()) },
            Notice::AcceptResumed { worker: 0 },
            Notice::Stopping,
            Notice::WorkerEnded { worker: 0, error: None },
        ];
        let levels = [Verbosity::Off, Verbosity::Error, Verbosity::Warn, Verbosity::Info, Verbosity::Debug];
        for (printed, verbosity) in levels.into_iter().enumerate() {
            let count = notices.iter().filter(|notice| level(notice) <= verbosity).count();
            assert_eq!(count, printed, "{verbosity:?}");
        }
    }

    /// Collects events, each as its level, target and fields.
    #[derive(Default)]
    struct Collected(Mutex<Vec<String>>);

    struct Fields(String);

    impl Visit for Fields {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.push_str(&format!(" {field}={value:?}"));
        }
    }

    impl Subscriber for Collected {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut fields = Fields(format!("{} {}", event.metadata().level(), event.metadata().target()));
            event.record(&mut fields);
            self.0.lock().expect("no panic before").push(fields.0);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn messages_are_events_where_a_subscriber_listens() {
        let file = Notice::FileFailed {
            worker: 3,
            path: "a\nb".into(),
            error: "it is short".to_owned(),
            status: 500,
            left_out: 7,
        };
        let listener = Notice::ListenerFailed { worker: None, address: "[::1]:80".to_owned(), errno: 22 };
        let collected = Arc::new(Collected::default());
        let reporter = MessageReporter { verbosity: Verbosity::Off, server: None };
        tracing::subscriber::with_default(Arc::clone(&collected), || {
            // The subscriber chooses, not the verbosity.
            reporter.report(level(&file), &file);
            reporter.report(level(&listener), &listener);
            let ended = Notice::WorkerEnded { worker: 1, error: None };
            reporter.report(level(&ended), &ended);
            reporter.report_refused(Purpose::Reload, "error: one\nerror: two\n");
            reporter.print_running_totals(&Totals::default());
        });
        let events = collected.0.lock().expect("no panic before");
        let expected = [
            "ERROR shearwater message=worker 3: can't send \"a\\nb\": it is short; its client got a 500 (7 more like it) \
             kind=\"file_failed\" worker=3 status=500 path=\"a\\nb\" suppressed=7",
            "ERROR shearwater message=no connections are accepted at [::1]:80 any more (Invalid argument (os error 22)) \
             kind=\"listener_failed\" errno=22",
            "DEBUG shearwater message=worker 1 has ended kind=\"worker_ended\" worker=1",
            "ERROR shearwater message=not reloaded: what was served before is still served \
             kind=\"reload_refused\" details=\"error: one\\nerror: two\\n\"",
        ];
        assert_eq!(events[..4], expected);
        assert!(events[4].starts_with("INFO shearwater::totals message=so far 0 requests"), "{}", events[4]);
    }

    #[test]
    fn a_secondary_server_is_named_and_its_end_is_for_debugging() {
        let collected = Arc::new(Collected::default());
        let reporter = MessageReporter { server: Some("admin"), ..MessageReporter::default() };
        let (control, _notices) = Control::new();
        tracing::subscriber::with_default(Arc::clone(&collected), || {
            reporter.print(&Notice::Full { worker: 0, connections_max: 64 }, &control);
            reporter.print(&Notice::Stopping, &control);
            reporter.print_totals(&Totals::default());
        });
        let events = collected.0.lock().expect("no panic before");
        assert!(events[0].starts_with("WARN shearwater message=admin: worker 0 accepts no "), "{events:?}");
        assert!(events[0].ends_with(" kind=\"connections_full\" server=\"admin\" worker=0"), "{events:?}");
        assert!(events[1].starts_with("DEBUG shearwater message=admin: stopping at once "), "{events:?}");
        assert!(events[2].starts_with("DEBUG shearwater message=admin: in all 0 requests"), "{events:?}");
        assert_eq!(control.messages().len(), 1);
    }

    /// Every kind is on the page for operators.
    #[test]
    fn every_kind_is_documented() {
        let page = include_str!("../../../docs/tasks/troubleshooting.md");
        let source = include_str!("report.rs");
        let names =
            source.split("fn kind(").nth(1).and_then(|rest| rest.split("\n}").next()).expect("a function");
        let kinds: Vec<&str> = names.split('"').skip(1).step_by(2).collect();
        assert!(kinds.len() > 10 && kinds.contains(&kind(&Notice::Stopping)), "{kinds:?}");
        let missing: Vec<_> = kinds.iter().filter(|kind| !page.contains(&format!("`{kind}`"))).collect();
        assert!(missing.is_empty(), "not in docs/tasks/troubleshooting.md: {missing:?}");
    }
}
