//! Starting the process that takes this one's place: an upgrade without a lost connection.
//!
//! The new process is started with one end of a channel as its standard input. It gets the sockets of all listeners,
//! starts, and reports that it is ready. Then this process permits it to accept, and drains once the new one does. The
//! steps of the new process, and the messages of both, are in [`predecessor`](crate::predecessor).

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::ptr;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SendError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use shearwater_engine::{
    Control, ListenAddress, ListeningSocket, Notice, PassedListener, PassingListeners, StartError,
    SuccessorEnd,
};
use shearwater_io::relay::StartedProgram;
use shearwater_io::service_manager::{notify, takes_notifications};
use shearwater_io::socket_channel::SocketChannel;

use crate::hand_over_error::HandOverError;
use crate::handed_state::HandedState;
use crate::predecessor::{ALSO, END_OF_LISTENERS, PREDECESSOR, READY, SERVE, SERVING};
use crate::server::Server;
use crate::signal_functions::SignalFunction;
use crate::signal_watch::{WITHOUT_HANGUP, ignores_hangup};

/// Default of [`Successor::timeout`].
const TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for a process to accept that is ready.
const SERVE_WAIT: Duration = Duration::from_secs(5);

/// Longest wait of one call, and the wait in place of a timeout that no clock can hold.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// Interval of looking for a drain.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Longest wait for the exit of a process that has closed the channel, and the interval of looking for it.
const EXIT_WAIT: Duration = Duration::from_secs(1);
const EXIT_POLL: Duration = Duration::from_millis(5);

/// Time for repeating a notification of the service manager that fails, and the interval.
const ANNOUNCE_WAIT: Duration = Duration::from_secs(1);
const ANNOUNCE_RETRY: Duration = Duration::from_millis(50);

/// Variables for one process alone.
const OF_ONE_PROCESS: [&str; 4] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"];

/// A process that takes the place of this one: another version of the program, for example.
///
/// It gets the listening sockets of the servers, so that no address is bound again and no connection is lost, and
/// reports to this process when it serves. The program must [take over](crate::Server::take_over) what it gets.
///
/// ```no_run
/// use shearwater::{App, Server, Successor};
///
/// let server = Server::bind("127.0.0.1:8080").take_over().on_upgrade(|control| {
///     let successor = Successor::of_this_program().map_err(|error| format!("error: {error}\n"))?;
///     let process = successor.start(control).map_err(|error| format!("error: {error}\n"))?;
///     Ok(format!("process {process} serves now"))
/// });
/// server.run(App::new())?;
/// # Ok::<(), shearwater::Error>(())
/// ```
#[derive(Debug)]
pub struct Successor {
    command: Command,
    timeout: Duration,
    others: Vec<Arc<Control>>,
    state: HandedState,
}

impl Successor {
    /// Creates one from a command. Its standard input is replaced.
    #[must_use]
    pub fn new(command: Command) -> Self {
        Self { command, timeout: TIMEOUT, others: Vec::new(), state: HandedState::default() }
    }

    /// Creates one with the program and the arguments of this process. A program file that was replaced since is the
    /// new version; `argv[0]` names it, if that exists.
    ///
    /// # Errors
    /// If neither `argv[0]` nor the system names the program.
    pub fn of_this_program() -> io::Result<Self> {
        let mut arguments = env::args_os();
        let mut command = Command::new(program(arguments.next())?);
        command.args(arguments);
        Ok(Self::new(command))
    }

    /// Sets the time in which the process must be ready. Default: 10 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Adds the listeners of another server of this process, which the program drains after [`start`](Self::start).
    ///
    /// In the new process it must start before the one that [takes over](crate::Server::take_over), and
    /// [take its listeners](crate::Server::take_over_listeners). Of several servers only one should have
    /// [`on_upgrade`](crate::Server::on_upgrade). Their addresses must differ: with port 0 they could be confused.
    #[must_use]
    pub fn with_listeners_of(mut self, server: Arc<Control>) -> Self {
        self.others.push(server);
        self
    }

    /// Hands bytes to the process, which takes them by [`handed_state`](crate::engine::handed_state): keys of session tickets,
    /// for example. They go through a socket that only the two processes have.
    #[must_use]
    pub fn hand(mut self, state: Vec<u8>) -> Self {
        self.state = HandedState(state);
        self
    }

    /// Starts the process, passes it all listeners, and waits until it accepts. Returns its process ID.
    ///
    /// All servers whose listeners it got must be drained then. [`Server::on_upgrade`](crate::Server::on_upgrade) and
    /// [`Running::hand_over`](crate::Running::hand_over) drain the one of `control`, the program those of
    /// [`with_listeners_of`](Self::with_listeners_of). Until its queues are empty, this process accepts, too. A service
    /// manager (`NOTIFY_SOCKET`) gets the new process ID (`MAINPID`). No address changes meanwhile, and a drain ends
    /// the attempt until the process is ready.
    ///
    /// # Errors
    /// See [`HandOverError`]. Nothing has changed then, and the process has ended.
    pub fn start(self, control: &Control) -> Result<u32, HandOverError> {
        if process::id() == 1 {
            return Err(HandOverError::FirstProcess);
        }
        let Self { mut command, timeout, others, state } = self;
        if state.is_too_long() {
            return Err(HandOverError::State { bytes: state.0.len() });
        }
        let servers: Vec<&Control> = others.iter().map(Arc::as_ref).chain([control]).collect();
        let passing = lock(&servers).map_err(HandOverError::Listeners)?;
        let now = Instant::now();
        let end = now.checked_add(timeout).unwrap_or(now + WAIT_MAX);
        let waiting = wait_for_end(control.successor_end()).map_err(HandOverError::System)?;
        let (channel, their_end) = SocketChannel::pair().map_err(HandOverError::System)?;
        command.stdin(their_end).env(PREDECESSOR, process::id().to_string());
        if ignores_hangup() {
            command.env(WITHOUT_HANGUP, process::id().to_string());
        }
        for name in OF_ONE_PROCESS {
            command.env_remove(name);
        }
        let program = PathBuf::from(command.get_program());
        // Its copy of the other end, dropped with it, would hide that the process has ended.
        let start = move || StartedProgram::start(&mut command, takes_notifications());
        let child = match start_within(start, end, || control.is_ending()) {
            Ok(started) => started.map_err(|error| HandOverError::Start { program, error })?,
            Err(Failed::Ending) => return Err(HandOverError::Listeners(StartError::Ending)),
            Err(Failed::System(error)) => return Err(HandOverError::System(error)),
            Err(_) => return Err(HandOverError::Late(timeout)),
        };
        let mut new = NewProcess { child, channel, timeout, end };
        match new.hand_over(&passing, &state, control) {
            Ok(()) => {
                // Before `finish`, which lets this process exit, and before the channel is closed: the new process then
                // reports to the manager, which ignores all but the main process.
                let process = new.child.id();
                // The manager must be the parent by then.
                new.child.release();
                if let Err(error) = announce(process) {
                    control.notify(Notice::SuccessorUnannounced { process, error: error.to_string() });
                }
                passing.into_iter().for_each(|passing| passing.finish(process));
                // The channel has room.
                drop(waiting.try_send(new.child));
                Ok(process)
            }
            Err(failed) => {
                passing.iter().for_each(|passing| passing.own_files(true));
                Err(new.give_up(failed))
            }
        }
    }
}

impl Server {
    /// Sets a function that `SIGUSR2` calls, to have another process take the place of this one. Without it, the server
    /// leaves `SIGUSR2` alone.
    ///
    /// The function starts a [`Successor`](crate::Successor), whose documentation has an example, and returns a
    /// description for the log. The server drains then. After an error, which is printed as it is, it serves on. The
    /// function runs on a thread of its own.
    #[must_use]
    pub fn on_upgrade(
        mut self,
        upgrade: impl Fn(&Control) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        self.functions.upgrade = Some(SignalFunction::new(upgrade));
        self
    }
}

/// Names the new process to the service manager, if there is one. Repeats what fails, because systemd ends a service
/// with the process that it knows.
fn announce(process: u32) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match notify(&format!("MAINPID={process}")) {
            Err(_) if start.elapsed() < ANNOUNCE_WAIT => thread::sleep(ANNOUNCE_RETRY),
            notified => return notified.map(drop),
        }
    }
}

/// Starts a program on a thread: a file system that hangs would hold up its caller without limit. A program that starts
/// later is killed.
fn start_within(
    start: impl FnOnce() -> io::Result<StartedProgram> + Send + 'static,
    end: Instant,
    is_ending: impl Fn() -> bool,
) -> Result<io::Result<StartedProgram>, Failed> {
    // Without room, so that the thread learns whether the program was taken.
    let (sender, started) = sync_channel(0);
    let run = move || {
        if let Err(SendError(Ok(mut late))) = sender.send(start()) {
            drop(late.kill());
            drop(late.wait());
        }
    };
    thread::Builder::new().name("successor-start".to_owned()).spawn(run)?;
    loop {
        match started.recv_timeout(LOOK_INTERVAL) {
            Ok(started) => return Ok(started),
            Err(RecvTimeoutError::Disconnected) => return Err(Failed::Late),
            Err(RecvTimeoutError::Timeout) if is_ending() => return Err(Failed::Ending),
            Err(RecvTimeoutError::Timeout) if Instant::now() >= end => return Err(Failed::Late),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Starts a thread that waits for the process which it gets, and reports its end. Without one it ends.
fn wait_for_end(end: SuccessorEnd) -> io::Result<SyncSender<StartedProgram>> {
    let (sender, child) = sync_channel::<StartedProgram>(1);
    let wait = move || {
        match child.recv() {
            // The service manager has its status, but the number must not be signalled any more.
            Ok(child) if child.is_relayed() => {
                if child.await_end() {
                    end.forget();
                }
            }
            Ok(mut child) => {
                if let Ok(status) = child.wait() {
                    end.note(child.id(), status);
                }
            }
            Err(_) => {}
        }
    };
    thread::Builder::new().name("successor".to_owned()).spawn(wait)?;
    Ok(sender)
}

/// Returns the listeners of these servers in their order, each server once.
fn lock<'a>(servers: &[&'a Control]) -> Result<Vec<PassingListeners<'a>>, StartError> {
    // Locked in the same order by all threads.
    let mut locked: Vec<_> = (0..).zip(servers.iter().copied()).collect();
    locked.sort_by_key(|(_, server)| ptr::from_ref(*server));
    locked.dedup_by(|(_, one), (_, other)| ptr::eq(*one, *other));
    let passing = locked.into_iter().map(|(at, server)| Ok((at, server.pass_listeners()?)));
    let mut passing: Vec<(usize, _)> = passing.collect::<Result<_, StartError>>()?;
    passing.sort_by_key(|(at, _)| *at);
    Ok(passing.into_iter().map(|(_, passing)| passing).collect())
}

/// The new process, until it serves.
struct NewProcess {
    child: StartedProgram,
    channel: SocketChannel,
    /// Time for its present step, and the end of that time.
    timeout: Duration,
    end: Instant,
}

/// The reason why a process doesn't serve.
#[derive(Debug)]
enum Failed {
    /// A drain was ordered meanwhile.
    Ending,
    /// The channel is closed, or has something else than expected.
    Channel,
    /// The process exceeds the time for its present step.
    Late,
    System(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock => Self::Late,
            // A process that ends with unread messages resets the channel.
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::InvalidData => {
                Self::Channel
            }
            _ => Self::System(error),
        }
    }
}

impl NewProcess {
    /// Passes the listeners, waits until the process is ready, and then until it accepts.
    fn hand_over(
        &mut self,
        passing: &[PassingListeners<'_>],
        state: &HandedState,
        control: &Control,
    ) -> Result<(), Failed> {
        for passed in passing.iter().flat_map(PassingListeners::listeners) {
            let mut text = description(passed);
            for socket in &passed.sockets {
                self.limit_wait(WAIT_MAX)?;
                self.channel.send(&text, Some(socket))?;
                ALSO.clone_into(&mut text);
            }
        }
        for message in state.messages() {
            self.send(&message)?;
        }
        self.send(END_OF_LISTENERS)?;
        self.receive(READY, || control.is_ending())?;
        // Before the last look for a drain, which removes files.
        passing.iter().for_each(|passing| passing.own_files(false));
        if control.is_ending() {
            return Err(Failed::Ending);
        }
        (self.timeout, self.end) = (SERVE_WAIT, Instant::now() + SERVE_WAIT);
        self.send(SERVE)?;
        // It may serve by now: a drain is one of this process alone.
        self.receive(SERVING, || false)
    }

    /// Waits for this message, or until the attempt ends.
    fn receive(&mut self, text: &[u8], is_ending: impl Fn() -> bool) -> Result<(), Failed> {
        loop {
            self.limit_wait(LOOK_INTERVAL)?;
            match self.channel.receive() {
                Ok(Some(message)) if message.text == text => return Ok(()),
                Ok(_) => return Err(Failed::Channel),
                Err(_) if is_ending() => return Err(Failed::Ending),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < self.end => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.limit_wait(WAIT_MAX)?;
        self.channel.send(message, None::<&ListeningSocket>)
    }

    /// Limits waits to the time that is left, or to this time.
    fn limit_wait(&self, most: Duration) -> io::Result<()> {
        let left = self.end.saturating_duration_since(Instant::now()).min(most);
        self.channel.set_patience(Some(left.max(Duration::from_millis(1))))
    }

    /// Ends the process and returns the error.
    fn give_up(mut self, failed: Failed) -> HandOverError {
        if matches!(failed, Failed::Channel) && self.exits_soon() {
            return self.child.wait().map_or_else(HandOverError::System, HandOverError::Ended);
        }
        // It fails if the process has ended just now.
        drop(self.child.kill());
        drop(self.child.wait());
        match failed {
            Failed::Ending => HandOverError::Listeners(StartError::Ending),
            Failed::Channel => HandOverError::Closed,
            Failed::Late => HandOverError::Late(self.timeout),
            Failed::System(error) => HandOverError::System(error),
        }
    }

    /// Waits for the exit of a process that has closed the channel.
    fn exits_soon(&mut self) -> bool {
        let end = Instant::now() + EXIT_WAIT;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            thread::sleep(EXIT_POLL);
        }
        false
    }
}

/// Describes a listener for [`predecessor::parse`](crate::predecessor::parse).
pub(crate) fn description(passed: &PassedListener) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    match (&passed.address, passed.file) {
        (Some(ListenAddress::Tcp(address)), _) => format!("tcp {address}").into_bytes(),
        (Some(ListenAddress::Tls(address)), _) => format!("tls {address}").into_bytes(),
        (Some(ListenAddress::Unix { path, mode }), file) => {
            let (device, inode) = file.map_or((0, 0), |file| (file.device, file.inode));
            let words = format!("unix {mode:o} {device} {inode} ");
            [words.as_bytes(), path.as_os_str().as_bytes()].concat()
        }
        // Given by the program or its service manager, and kinds of addresses that are added in the future.
        _ => b"given".to_vec(),
    }
}

/// Returns the program of this process: `argv[0]`, or the file that it was started from.
fn program(first_argument: Option<OsString>) -> io::Result<PathBuf> {
    if let Some(named) = first_argument.map(PathBuf::from).filter(|named| is_found(named)) {
        return Ok(named);
    }
    let started = env::current_exe()?;
    // Linux marks the name of a file that was replaced.
    let replaced = started.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.filter(|path| path.exists()).unwrap_or(started))
}

/// Returns whether a program is there, in `PATH` if it is a name alone, as at the start.
fn is_found(program: &Path) -> bool {
    let is_name = !program.as_os_str().as_encoded_bytes().contains(&b'/');
    let folders = env::var_os("PATH").unwrap_or_default();
    let is_there = |folder: PathBuf| folder.join(program).is_file();
    if is_name { env::split_paths(&folders).any(is_there) } else { program.is_file() }
}

#[cfg(test)]
mod tests {
    use shearwater_io::socket_channel::SocketChannel;

    use super::{Failed, ListeningSocket, start_within};

    #[test]
    fn a_start_that_hangs_ends_with_the_drain_or_in_time() {
        use std::time::{Duration, Instant};
        let later = Instant::now() + Duration::from_secs(600);
        for (end, is_ending) in [(later, true), (Instant::now(), false)] {
            let (_hangs, gate) = std::sync::mpsc::sync_channel::<()>(0);
            let start = move || {
                let _ = gate.recv();
                Err(std::io::ErrorKind::Other.into())
            };
            let failed = start_within(start, end, || is_ending).expect_err("it doesn't start");
            assert_eq!(matches!(failed, Failed::Ending), is_ending, "{failed:?}");
        }
        let started = start_within(|| Err(std::io::ErrorKind::NotFound.into()), later, || false);
        assert!(started.expect("it has failed in time").is_err());
    }

    #[test]
    fn a_process_that_ends_with_unread_messages_has_closed_the_channel() {
        for is_unread in [true, false] {
            let (mut here, there) = SocketChannel::pair().expect("descriptors");
            if is_unread {
                here.send(b"end", None::<&ListeningSocket>).expect("sent");
            }
            drop(there);
            let error = here.send(b"serve", None::<&ListeningSocket>).expect_err("nobody reads it");
            assert!(matches!(Failed::from(error), Failed::Channel), "{is_unread}");
        }
    }
}
