//! A conversation: clients with their requests, a script of steps, and the model of the expected responses.

use super::app::TestApp;
use super::letters::SimDriver;
use super::unit::{ExpectedOutput, ExpectedResponse, OutputMatch, Unit, show};
use super::world::{Setting, SimClient, SimWorld};

/// A step of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Sends so many of its remaining bytes.
    Send(usize),
    /// Sends all of them.
    SendAll,
    /// Runs a turn of the worker, unless it would have to sleep.
    Turn,
    /// Runs the worker until it is idle.
    Settle,
    /// Stops reading; so many bytes fit between it and the server.
    StopReading(usize),
    /// Reads so many bytes.
    Read(usize),
    /// Resumes reading everything.
    ReadOn,
    Finish,
    Close,
    Reset,
    /// Drains the worker with this limit in milliseconds.
    Drain(u64),
}

/// The way in which the client's side of a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientEnd {
    /// The client becomes silent; time passes.
    Silence,
    /// The client sends a FIN and continues reading.
    Finish,
    /// The server is drained: unfinished requests are cut off.
    Cut,
    /// The client disconnects.
    Gone,
}

/// A script and its world.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conversation {
    pub(crate) setting: Setting,
    /// Bytes of each client before its requests.
    pub(crate) preamble: &'static [u8],
    /// Requests of each client.
    pub(crate) clients: Vec<Vec<Unit>>,
    /// Steps in order.
    pub(crate) steps: Vec<(usize, Act)>,
    /// The way in which each client's connection ends.
    pub(crate) ends: Vec<ClientEnd>,
    pub(crate) trouble: Trouble,
}

/// Permitted deviations from the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Trouble {
    /// Delays only: all responses arrive whole.
    #[default]
    None,
    /// One client's sending side may have ended early.
    Fin,
    /// At most so many connections may have been reset.
    Resets(usize),
}

impl Conversation {
    /// Returns a single client.
    pub(crate) fn alone(units: Vec<Unit>, steps: &[Act]) -> Self {
        let mut conversation = Self::default();
        conversation.add(units, steps, ClientEnd::Silence);
        conversation
    }

    /// Adds a client whose steps follow those of the others.
    pub(crate) fn add(&mut self, units: Vec<Unit>, steps: &[Act], end: ClientEnd) {
        let number = self.clients.len();
        self.clients.push(units);
        self.steps.extend(steps.iter().map(|step| (number, *step)));
        self.ends.push(end);
    }

    /// Runs the conversation, then checks the output of each client and the worker's leftovers.
    pub(crate) fn run(&self) -> SimWorld {
        self.run_on()
    }

    /// Runs it on another driver.
    pub(crate) fn run_on<D: SimDriver>(&self) -> SimWorld<TestApp, D> {
        let mut world = SimWorld::on_driver(self.setting.clone(), TestApp);
        // Connects all clients here, so that they are accepted in the order of the list.
        let mut clients: Vec<ScriptedClient> = self
            .clients
            .iter()
            .map(|units| ScriptedClient::new(world.connect(), self.preamble, units))
            .collect();
        let mut drained_until_ms = u64::MAX;
        for (number, step) in &self.steps {
            clients[*number].take(*step, &mut world);
            if let Act::Drain(ms) = step {
                drained_until_ms = world.net.now_ms() + ms;
            }
        }
        world.end();
        let is_cut = world.net.now_ms() >= drained_until_ms;
        for (number, scripted) in clients.iter_mut().enumerate() {
            self.check(number, scripted, is_cut);
        }
        let is_reset = |number: &usize| {
            clients[*number].client.peer.saw_reset() && self.ends[*number] != ClientEnd::Gone
        };
        let resets: Vec<usize> = (0..clients.len()).filter(is_reset).collect();
        let resets_max = if let Trouble::Resets(count) = self.trouble { count } else { 0 };
        assert!(resets.len() <= resets_max, "clients {resets:?} were reset");
        world
    }

    /// Checks that only its own responses arrived, in order; all of them, unless prevented by a reset, its
    /// disconnect or a drain's deadline (`is_cut`).
    fn check(&self, number: usize, scripted: &mut ScriptedClient, is_cut: bool) {
        let ScriptedClient { client, stream, .. } = scripted;
        let (units, end) = (&self.clients[number], self.ends[number]);
        let was_reset = client.peer.saw_reset();
        client.read();
        let sent = client.sent.saturating_sub(self.preamble.len());
        let mut allowed = vec![expected(units, sent, end)];
        if self.trouble == Trouble::Fin {
            allowed.push(expected(units, sent, ClientEnd::Finish));
        }
        // A full server ends connections as a drain does.
        let may_be_full = self.setting.limits.connections_max < self.clients.len();
        if may_be_full || self.steps.iter().any(|(_, step)| matches!(step, Act::Drain(_))) {
            allowed.extend(drained(units, sent));
        }
        if was_reset || end == ClientEnd::Gone {
            // A reset may have destroyed the last bytes in both directions.
            allowed.push(expected(units, stream.len() - self.preamble.len(), ClientEnd::Silence));
        }
        let verdicts: Vec<OutputMatch> =
            allowed.iter().map(|expected| expected.compare(&client.got)).collect();
        let is_part_enough = was_reset || end == ClientEnd::Gone || is_cut;
        let is_good = verdicts.contains(&OutputMatch::Equal)
            || (is_part_enough && verdicts.contains(&OutputMatch::Prefix));
        let at = furthest(&verdicts, client.got.len());
        assert!(
            is_good,
            "client {number}, {} bytes sent: {verdicts:?}: {}",
            client.sent,
            show(&client.got, at)
        );
        assert!(is_part_enough || client.peer.saw_fin(), "client {number}: no FIN");
    }
}

/// Offset at which the longest comparison failed.
fn furthest(verdicts: &[OutputMatch], len: usize) -> usize {
    let at = |verdict: &OutputMatch| if let OutputMatch::Differs { at } = verdict { *at } else { len };
    verdicts.iter().map(at).max().unwrap_or(0)
}

/// A client in a conversation.
struct ScriptedClient {
    client: SimClient,
    stream: Vec<u8>,
    /// Bytes that it has tried to send.
    tried: usize,
}

impl ScriptedClient {
    fn new(client: SimClient, preamble: &[u8], units: &[Unit]) -> Self {
        Self { client, stream: [preamble, &Unit::stream(units)].concat(), tried: 0 }
    }

    fn take<D: SimDriver>(&mut self, step: Act, world: &mut SimWorld<TestApp, D>) {
        let peer = &self.client.peer;
        match step {
            Act::Send(bytes) => self.send(bytes),
            Act::SendAll => self.send(usize::MAX),
            Act::Turn => {
                world.turn_if_ready();
            }
            Act::Settle => world.settle(),
            Act::StopReading(window) => {
                self.client.stop_reading(window);
            }
            Act::Read(bytes) => self.client.got.extend(peer.read_at_most(bytes)),
            Act::ReadOn => peer.set_reading(true),
            Act::Finish => peer.finish(),
            Act::Close => peer.close(),
            Act::Reset => peer.reset(),
            Act::Drain(ms) => world.control.drain(ms),
        }
    }

    fn send(&mut self, bytes: usize) {
        let until = self.tried.saturating_add(bytes).min(self.stream.len());
        self.client.send(&self.stream[self.tried..until]);
        self.tried = until;
    }
}

/// Returns the expected responses to a client that has sent the first `sent` bytes of `units`.
pub(crate) fn expected(units: &[Unit], sent: usize, end: ClientEnd) -> ExpectedOutput {
    let mut expected = ExpectedOutput::default();
    let mut left = sent;
    for unit in units {
        if unit.continue_at.is_some_and(|at| left >= at) {
            expected.push_continue();
        }
        if left < unit.decided_at {
            let unfinished = match end {
                ClientEnd::Silence if left > 0 => ExpectedResponse::timeout(),
                ClientEnd::Finish if left > 0 => ExpectedResponse::incomplete(),
                _ => return expected,
            };
            expected.push(&if is_head(&unit.bytes[..left]) { unfinished.bodyless() } else { unfinished });
            return expected;
        }
        expected.push(&unit.response);
        if unit.is_last {
            return expected;
        }
        left -= unit.bytes.len();
    }
    expected
}

/// Returns the possible output for a client of a draining worker: any number of its responses, the last of
/// which says so; then a rejection as too slow or incomplete.
pub(crate) fn drained(units: &[Unit], sent: usize) -> Vec<ExpectedOutput> {
    let mut responded = ExpectedOutput::default();
    let mut allowed = Vec::new();
    let mut left = sent;
    for unit in units {
        if unit.continue_at.is_some_and(|at| left >= at) {
            allowed.extend(with_tails(&responded, unit));
            responded.push_continue();
        }
        allowed.extend(with_tails(&responded, unit));
        if left < unit.decided_at {
            return allowed;
        }
        let mut last = responded.clone();
        last.push(&unit.response.clone().last());
        allowed.push(last);
        responded.push(&unit.response);
        if unit.is_last {
            return allowed;
        }
        left -= unit.bytes.len();
    }
    allowed.push(responded);
    allowed
}

/// Returns the possible output if `unit` is unfinished: the responses so far, and a rejection.
fn with_tails(responded: &ExpectedOutput, unit: &Unit) -> Vec<ExpectedOutput> {
    let mut tails = vec![ExpectedResponse::timeout(), ExpectedResponse::incomplete()];
    if is_head(&unit.bytes) {
        tails.extend(tails.clone().into_iter().map(ExpectedResponse::bodyless));
    }
    let with = |tail: &ExpectedResponse| {
        let mut expected = responded.clone();
        expected.push(tail);
        expected
    };
    std::iter::once(responded.clone()).chain(tails.iter().map(with)).collect()
}

/// Returns true if the method was sent, and is `HEAD`.
pub(crate) fn is_head(sent: &[u8]) -> bool {
    sent.starts_with(b"HEAD ") || sent.starts_with(b"\r\nHEAD ")
}
