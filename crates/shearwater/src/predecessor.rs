//! Taking over from the process that has started this one: its listening sockets, and the moment when it drains.
//!
//! The other side is [`Successor`](crate::Successor). Messages of the channel, in their order:
//!
//! | from | text | socket |
//! |---|---|---|
//! | old process | `tcp ADDRESS`, `unix MODE DEVICE INODE PATH` or `given`: a listener | its socket |
//! | old process | `also`: another worker's socket of the same listener | the socket |
//! | old process | `state DIGITS`: a part of the program's own bytes | |
//! | old process | `end` | |
//! | new process | `ready`: its workers run, and accept only at addresses that are new | |
//! | old process | `serve`: the new process may accept, and owns the files of Unix-domain sockets | |
//! | new process | `serving`: it accepts | |
//! | old process | the end: the service manager knows the new process, and the old one drains | |
//!
//! The channel of a process that has ended has an end, too. If the new process reads it in place of `end`, it exits. If
//! it reads it in place of `serve`, the old process is gone, and the new one accepts, because nobody else would: an old
//! process that gives up kills it first. If the old process reads it in place of a message, it serves on.

use std::ffi::OsStr;
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use shearwater_engine::{Control, ListenAddress, ListeningSocket, PassedListener};
use shearwater_io::FileIdentity;
use shearwater_io::limits::PASSED_SOCKETS_MAX;
use shearwater_io::socket_channel::{SocketChannel, has_channel_of, take_standard_input};

use crate::handed_state::HandedState;
use crate::report::MessageReporter;
use crate::server::Server;

/// Variable with the number of the process that passes its listeners. It counts only for a child of that process.
pub(crate) const PREDECESSOR: &str = "SHEARWATER_PREDECESSOR";

/// Texts of messages.
pub(crate) const ALSO: &[u8] = b"also";
pub(crate) const END_OF_LISTENERS: &[u8] = b"end";
pub(crate) const READY: &[u8] = b"ready";
pub(crate) const SERVE: &[u8] = b"serve";
pub(crate) const SERVING: &[u8] = b"serving";

/// Longest wait for the description of the next listener.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Interval of looking for a signal meanwhile.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Longest wait for the service manager to know this process: its reports are ignored before.
const CLOSE_WAIT_MAX: Duration = Duration::from_secs(5);

/// How a server takes over listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TakeOver {
    #[default]
    Nothing,
    Listeners,
    /// Also reports that this process serves.
    ListenersAndReport,
}

impl Server {
    /// Takes over from the process that has started this one as its [`Successor`](crate::Successor), if there is one.
    ///
    /// The server accepts on the sockets of that process instead of binding their addresses; others are bound as usual.
    /// Once it accepts, the old process drains, and removes no file of a Unix-domain socket any more. A program that
    /// reads its standard input calls [`claim_inherited_sockets`](crate::engine::claim_inherited_sockets) first.
    #[must_use]
    pub fn take_over(mut self) -> Self {
        self.take_over = TakeOver::ListenersAndReport;
        self
    }

    /// Takes listeners as [`take_over`](Self::take_over), and leaves it to another server of this process, which starts
    /// later, to have the old process drain.
    #[must_use]
    pub fn take_over_listeners(mut self) -> Self {
        self.take_over = TakeOver::Listeners;
        self
    }
}

/// An error of taking over from another process. Displays as one sentence.
#[derive(Debug, Clone)]
pub struct TakeOverError(String);

impl fmt::Display for TakeOverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can't take over from the process that started this one: {}", self.0)
    }
}

impl std::error::Error for TakeOverError {}

/// The old process, and what it has passed.
struct Predecessor {
    channel: SocketChannel,
    /// Listeners that no server has taken yet.
    listeners: Vec<PassedListener>,
    /// Servers that have taken listeners.
    servers: Vec<Arc<Control>>,
}

/// Everything that was passed.
struct Received {
    /// Number of the old process.
    process: Option<u32>,
    /// Sockets that the old process was given itself. They stay open as long as this process lives, as with a service
    /// manager, if a server accepts from such sockets.
    given: Mutex<Vec<PassedListener>>,
    /// Bytes of the program's own, until it takes them.
    state: Mutex<HandedState>,
    is_given_used: AtomicBool,
    /// `None` once this process serves alone.
    predecessor: Mutex<Option<Predecessor>>,
}

impl Received {
    fn predecessor(&self) -> MutexGuard<'_, Option<Predecessor>> {
        self.predecessor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Receives the listeners, at the first call.
fn received() -> Result<Option<&'static Received>, TakeOverError> {
    static RECEIVED: OnceLock<Result<Option<Received>, String>> = OnceLock::new();
    match RECEIVED.get_or_init(receive) {
        Ok(received) => Ok(received.as_ref()),
        Err(why) => Err(TakeOverError(why.clone())),
    }
}

/// Receives the listeners of a process that this one succeeds, at the first call. Errors are those of later calls.
pub(crate) fn claim() {
    drop(received());
}

fn receive() -> Result<Option<Received>, String> {
    let number = std::env::var(PREDECESSOR).unwrap_or_default();
    if !has_channel_of(&number) {
        return Ok(None);
    }
    let input = take_standard_input().map_err(|error| error.to_string())?;
    let received = receive_from(SocketChannel::from(input))?;
    Ok(Some(Received { process: number.parse().ok(), ..received }))
}

/// Returns the process that has passed listeners to this one.
pub(crate) fn process() -> Option<u32> {
    received().ok().flatten()?.process
}

/// Takes the bytes that the process before this one has handed over: see [`Successor::hand`](crate::Successor::hand).
///
/// Returns none if there are none, or no such process, and at further calls.
///
/// # Errors
/// See [`TakeOverError`].
pub fn handed_state() -> Result<Option<Vec<u8>>, TakeOverError> {
    let Some(received) = received()? else { return Ok(None) };
    let state = std::mem::take(&mut *received.state.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Some(state.0).filter(|state| !state.is_empty()))
}

fn receive_from(mut channel: SocketChannel) -> Result<Received, String> {
    channel.set_patience(Some(WAIT_MAX)).map_err(|error| error.to_string())?;
    let mut listeners: Vec<PassedListener> = Vec::new();
    let mut state = HandedState::default();
    for count in 0.. {
        let message = channel.receive().map_err(|error| error.to_string())?.ok_or("it has ended")?;
        match (message.socket, listeners.last_mut()) {
            (None, _) if message.text == END_OF_LISTENERS => break,
            (Some(_), _) if count == PASSED_SOCKETS_MAX => {
                return Err(format!("it has more than {PASSED_SOCKETS_MAX} sockets"));
            }
            (Some(socket), Some(listener)) if message.text == ALSO => listener.sockets.push(socket.into()),
            (Some(socket), _) => {
                let described = parse(&message.text)?;
                listeners.push(PassedListener { sockets: vec![socket.into()], ..described });
            }
            (None, _) if state.take(&message.text) => {}
            // Without the text, which may be a part of a secret.
            (None, _) => return Err("a message of it without a socket is unknown".to_owned()),
        }
    }
    let is_given = |listener: &mut PassedListener| listener.address.is_none();
    let given = Mutex::new(listeners.extract_if(.., is_given).collect());
    let predecessor = Mutex::new(Some(Predecessor { channel, listeners, servers: Vec::new() }));
    let state = Mutex::new(state);
    Ok(Received { process: None, given, state, is_given_used: AtomicBool::new(false), predecessor })
}

fn unknown(text: &[u8]) -> String {
    format!("its message is unknown: {:?}", String::from_utf8_lossy(text))
}

/// Parses the description of a listener. Its sockets are left out.
pub(crate) fn parse(text: &[u8]) -> Result<PassedListener, String> {
    let of = |address, file| PassedListener { address, file, sockets: Vec::new() };
    let as_text = std::str::from_utf8(text).unwrap_or_default();
    if text == b"given" {
        return Ok(of(None, None));
    }
    if let Some(Ok(address)) = as_text.strip_prefix("tcp ").map(str::parse) {
        return Ok(of(Some(ListenAddress::Tcp(address)), None));
    }
    if let Some(Ok(address)) = as_text.strip_prefix("tls ").map(str::parse) {
        return Ok(of(Some(ListenAddress::Tls(address)), None));
    }
    let mut words = text.splitn(5, |byte| *byte == b' ');
    let number = |word: Option<&[u8]>, radix| {
        u64::from_str_radix(std::str::from_utf8(word.unwrap_or_default()).unwrap_or_default(), radix).ok()
    };
    if words.next() == Some(b"unix")
        && let Some(mode) = number(words.next(), 8).and_then(|mode| u32::try_from(mode).ok())
        && let (Some(device), Some(inode)) = (number(words.next(), 10), number(words.next(), 10))
        && let Some(path) = words.next()
    {
        let file = Some(FileIdentity { device, inode }).filter(|file| file.inode > 0);
        return Ok(of(Some(ListenAddress::Unix { path: OsStr::from_bytes(path).into(), mode }), file));
    }
    Err(unknown(text))
}

/// Returns the sockets that the old process was given itself. They are accepted from once this process serves.
///
/// # Errors
/// See [`TakeOverError`].
pub(crate) fn given() -> Result<Vec<PassedListener>, TakeOverError> {
    let Some(received) = received()? else { return Ok(Vec::new()) };
    received.is_given_used.store(true, Relaxed);
    Ok(received.given.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// Takes the listeners of these addresses, of those that no server has taken.
///
/// # Errors
/// See [`TakeOverError`].
pub(crate) fn take(listen: &[ListenAddress]) -> Result<Vec<PassedListener>, TakeOverError> {
    let Some(received) = received()? else { return Ok(Vec::new()) };
    let mut predecessor = received.predecessor();
    let Some(Predecessor { listeners, .. }) = predecessor.as_mut() else { return Ok(Vec::new()) };
    Ok(listen.iter().filter_map(|address| PassedListener::take(listeners, address)).collect())
}

/// Has a server that has started take the place of that of the old process, if there is one.
///
/// The server that reports waits here until the old process lets it accept, however long that takes, and then for the end
/// of the handover, up to [`CLOSE_WAIT_MAX`]. It has all servers of this process accept.
///
/// # Errors
/// `is_ending` returns true before the old process permits to accept.
pub(crate) fn take_place(
    control: Arc<Control>,
    how: TakeOver,
    reporter: MessageReporter,
    is_ending: impl Fn() -> bool,
) -> Result<(), TakeOverError> {
    if how == TakeOver::Nothing {
        return Ok(());
    }
    let Ok(Some(received)) = received() else { return Ok(()) };
    let mut present = received.predecessor();
    let Some(predecessor) = present.as_mut() else {
        // A further server of a process that serves already.
        accept_passed(&control, reporter);
        return Ok(());
    };
    predecessor.servers.push(control);
    if how != TakeOver::ListenersAndReport {
        return Ok(());
    }
    let Some(Predecessor { mut channel, servers, mut listeners }) = present.take() else { return Ok(()) };
    // No server has taken these. Those with a file stay open for its removal; the old process accepts what is queued.
    listeners.retain(|listener| listener.file.is_some());
    await_permission(&mut channel, is_ending)?;
    servers.iter().for_each(|server| accept_passed(server, reporter));
    if !received.is_given_used.load(Relaxed) {
        received.given.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
    // An old process that is gone needs no report, and the wait ends at once.
    drop(channel.send(SERVING, None::<&ListeningSocket>));
    drop(channel.set_patience(Some(CLOSE_WAIT_MAX)).and_then(|()| channel.receive()));
    // Not before: an old process that serves on owns its files again.
    listeners.into_iter().for_each(PassedListener::discard);
    Ok(())
}

/// Reports that this process is ready, and waits until it may accept. However long it takes: until then the old process
/// accepts.
fn await_permission(channel: &mut SocketChannel, is_ending: impl Fn() -> bool) -> Result<(), TakeOverError> {
    let ready = channel.set_patience(Some(LOOK_INTERVAL));
    if ready.and_then(|()| channel.send(READY, None::<&ListeningSocket>)).is_err() {
        return Ok(());
    }
    // The end of the channel is a permission, too: the old process is gone.
    while channel.receive().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
        if is_ending() {
            return Err(TakeOverError("a signal asks this one to end".to_owned()));
        }
    }
    Ok(())
}

fn accept_passed(server: &Control, reporter: MessageReporter) {
    if let Err(error) = server.accept_passed() {
        let text = format!("can't set an option of a listener of the previous process: {error}");
        reporter.warn("listener_option_failed", &text);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::thread;

    use shearwater_engine::{ListenAddress, PassedListener};
    use shearwater_io::FileIdentity;
    use shearwater_io::limits::PASSED_SOCKETS_MAX;
    use shearwater_io::socket_channel::SocketChannel;

    use super::{ALSO, END_OF_LISTENERS, parse, receive_from};
    use crate::successor::description;

    #[test]
    fn reads_every_description() {
        let file = Some(FileIdentity { device: 2049, inode: u64::MAX });
        let listeners = [
            (Some(ListenAddress::Tcp("127.0.0.1:0".parse().expect("an address"))), None),
            (Some(ListenAddress::Tcp("[fe80::1%3]:8080".parse().expect("an address"))), None),
            (Some(ListenAddress::unix("/run/a path\nwith lines.sock")), file),
            (Some(ListenAddress::Unix { path: "relative".into(), mode: 0o7 }), None),
            (None, None),
        ];
        for (address, file) in listeners {
            let passed = PassedListener { address: address.clone(), file, sockets: Vec::new() };
            let parsed = parse(&description(&passed)).expect("well-formed");
            assert_eq!((parsed.address, parsed.file), (address, file));
        }
        for text in [
            "",
            "also",
            "tcp",
            "tcp nowhere",
            "unix",
            "unix 660",
            "unix 9 1 1 /run/x",
            "unix 660 1 x /run/x",
            "unix 660 1 1",
            "sctp 127.0.0.1:80",
        ] {
            assert!(parse(text.as_bytes()).is_err_and(|why| why.contains("unknown")), "{text}");
        }
    }

    /// Returns the number of sockets that are received, of so many.
    fn received(count: usize) -> Result<usize, String> {
        let (mut here, there) = SocketChannel::pair().expect("descriptors");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        thread::scope(|scope| {
            // The other end may stop reading.
            scope.spawn(move || {
                let mut texts =
                    std::iter::once(&b"tcp 127.0.0.1:0"[..]).chain(std::iter::repeat(ALSO)).take(count);
                let sent = texts.try_for_each(|text| here.send(text, Some(&listener)));
                drop(sent.and_then(|()| here.send(END_OF_LISTENERS, None::<&OwnedFd>)));
            });
            let received = receive_from(SocketChannel::from(there))?;
            let predecessor = received.predecessor().take().expect("just received");
            Ok(predecessor.listeners.iter().map(|listener| listener.sockets.len()).sum())
        })
    }

    #[test]
    fn bounds_the_number_of_sockets() {
        shearwater_engine::raise_descriptor_limit().expect("a limit");
        assert_eq!(received(3), Ok(3));
        let refused = received(PASSED_SOCKETS_MAX + 1);
        assert_eq!(refused, Err(format!("it has more than {PASSED_SOCKETS_MAX} sockets")));
    }
}
