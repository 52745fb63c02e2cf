//! Scripted conversations over HTTP/2: each request of HTTP/1 is a stream, and the steps and responses are the same.
//!
//! HTTP/2 has no pipelines, no chunks, no versions of requests, and no response that ends a connection. Requests that have
//! one are ordinary requests here, and so are those behind them.

use shearwater_engine::io::sim::Sim;
use testkit::http2::frame::{self, Frame};
use testkit::http2::{Session, request_fields};
use testkit::{ClientResponse, Error};

use crate::harness::app::TestApp;
use crate::harness::conversation::Trouble;
use crate::harness::{Act, ClientEnd, Conversation, ExpectedResponse, Setting, SimClient, SimWorld, Unit};

/// Windows of the client: the script alone holds up responses. `faults.rs` has those that are held up by windows.
const WINDOW_BYTES: u32 = 1 << 30;
const PAYLOAD_BYTES_MAX: usize = 16 * 1024;
/// Window of each stream of the server.
const STREAM_WINDOW_BYTES: usize = 64 * 1024;
/// Codes of GOAWAY and RST_STREAM.
const NO_ERROR: u32 = 0;
const PROTOCOL_ERROR: u32 = 1;

/// Runs a conversation, then checks the responses of each client and the worker's leftovers.
pub(crate) fn run(conversation: &Conversation) -> SimWorld<TestApp, Sim> {
    let mut setting = Setting { ..conversation.setting.clone() };
    setting.http2.prior_knowledge = true;
    let mut world = SimWorld::new(setting);
    let client = |units: &Vec<Unit>| ScriptedClient::new(world.connect(), conversation.preamble, units);
    let mut clients: Vec<ScriptedClient> = conversation.clients.iter().map(client).collect();
    let mut drained_until_ms = u64::MAX;
    for (number, step) in &conversation.steps {
        match step {
            Act::Turn => _ = world.turn_if_ready(),
            Act::Settle => settle(&mut world, &mut clients),
            Act::Drain(ms) => {
                world.control.drain(*ms);
                drained_until_ms = world.net.now_ms() + ms;
            }
            step => clients[*number].take(*step),
        }
    }
    world.end();
    let is_cut = world.net.now_ms() >= drained_until_ms;
    for (number, client) in clients.iter_mut().enumerate() {
        println!("client {number}");
        client.check(conversation, number, is_cut);
    }
    let is_reset = |number: &usize| {
        clients[*number].sim.peer.saw_reset() && conversation.ends[*number] != ClientEnd::Gone
    };
    let resets = (0..clients.len()).filter(is_reset).count();
    let resets_max = if let Trouble::Resets(count) = conversation.trouble { count } else { 0 };
    assert!(resets <= resets_max, "{resets} clients were reset");
    world
}

/// Runs the worker until it is idle and the clients have nothing to send of their own.
fn settle(world: &mut SimWorld, clients: &mut [ScriptedClient]) {
    loop {
        world.settle();
        if clients.iter_mut().filter_map(ScriptedClient::pump).count() == 0 {
            return;
        }
    }
}

/// A request as a stream.
struct Request {
    stream: u32,
    /// Bytes of the script that decide the response.
    decided_at: usize,
    /// The response; `None` if the stream must be reset.
    response: Option<ExpectedResponse>,
    may_continue: bool,
    /// Its content is longer than the window, which the script doesn't wait for.
    exceeds_window: bool,
}

/// A client in a conversation.
struct ScriptedClient {
    sim: SimClient,
    session: Session,
    requests: Vec<Request>,
    script: Vec<u8>,
    /// Places in the bytes of HTTP/1 with those in the script, in order; steps between them are proportional.
    places: Vec<(usize, usize)>,
    /// Ends of frames in the script, behind which other frames may be sent.
    frame_ends: Vec<usize>,
    /// Bytes of HTTP/1, and of the script, that it has tried to send.
    tried: (usize, usize),
    /// Bytes of the script that the network has accepted.
    accepted: usize,
    is_reading: bool,
}

impl ScriptedClient {
    fn new(sim: SimClient, preamble: &[u8], units: &[Unit]) -> Self {
        let mut session = Session::new(&[(frame::INITIAL_WINDOW_SIZE, WINDOW_BYTES)]);
        session.grant(0, WINDOW_BYTES);
        let mut client = Self {
            sim,
            session,
            requests: Vec::new(),
            script: preamble.to_vec(),
            places: vec![(0, 0), (preamble.len(), preamble.len())],
            frame_ends: Vec::new(),
            tried: (0, 0),
            accepted: 0,
            is_reading: true,
        };
        let mut at = preamble.len();
        client.end_frame();
        for unit in units {
            client.add(at, unit);
            at += unit.bytes.len();
        }
        client
    }

    /// Moves a queued frame into the script.
    fn end_frame(&mut self) {
        self.script.extend(self.session.take_output());
        self.frame_ends.push(self.script.len());
    }

    /// Adds a request that begins `at` so many bytes of HTTP/1.
    fn add(&mut self, at: usize, unit: &Unit) {
        let (head, content) = split(&unit.bytes, b"\r\n\r\n").expect("a whole head");
        let text = std::str::from_utf8(head).expect("heads of tests are text");
        let (line, lines) = text.split_once("\r\n").unwrap_or((text, ""));
        let [method, target] = [0, 1].map(|at| line.split(' ').nth(at).expect("a request line"));
        let lines = lines.lines().filter_map(|line| line.split_once(':'));
        let fields: Vec<_> = lines.map(|(name, value)| (name.to_ascii_lowercase(), value.trim())).collect();
        let of = |name: &str| fields.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
        let length = of("content-length").map(|length| length.parse::<usize>().expect("a length"));
        let (content, trailers) = match (length, of("transfer-encoding")) {
            (Some(_), _) => (content.to_vec(), Vec::new()),
            (None, Some(_)) => unchunked(content),
            (None, None) => (Vec::new(), Vec::new()),
        };
        let own = |name: &str| matches!(name, "connection" | "transfer-encoding");
        let sent: Vec<_> = fields.iter().map(|(name, value)| (&**name, *value)).collect();
        let sent: Vec<_> = sent.into_iter().filter(|(name, _)| !own(name)).collect();
        let sent = request_fields("http", method, target, &sent);
        let is_bare = content.is_empty() && length.unwrap_or(0) == 0 && trailers.is_empty();
        let stream = if is_bare { self.session.begin_whole(&sent) } else { self.session.begin(&sent) };
        self.end_frame();
        let head_end = self.script.len();
        self.places.push((at + head.len() + 4, head_end));
        self.add_content(stream, &content, length == Some(content.len()), &trailers);
        self.places.push((at + unit.bytes.len(), self.script.len()));
        let is_early = unit.decided_at < unit.bytes.len() || unit.leaves_body();
        self.requests.push(Request {
            stream,
            decided_at: if is_early { head_end } else { self.script.len() },
            response: Some(unit.response.clone())
                .filter(|_| !fields.iter().any(|(name, _)| name.ends_with(' '))),
            may_continue: unit.continue_at.is_some(),
            exceeds_window: !is_early && content.len() > STREAM_WINDOW_BYTES,
        });
    }

    /// Adds content as it is, whatever the server's windows are.
    fn add_content(&mut self, stream: u32, content: &[u8], is_whole: bool, trailers: &[(String, String)]) {
        let count = content.chunks(PAYLOAD_BYTES_MAX).count();
        for (number, piece) in content.chunks(PAYLOAD_BYTES_MAX).enumerate() {
            self.session.push(&Frame::data(stream, piece, is_whole && number + 1 == count));
            self.end_frame();
        }
        if !trailers.is_empty() {
            let trailers: Vec<_> = trailers.iter().map(|(name, value)| (&**name, &**value)).collect();
            self.session.send_trailers(stream, &trailers);
            self.end_frame();
        }
    }

    fn take(&mut self, step: Act) {
        match step {
            Act::Send(bytes) => self.send(bytes),
            Act::SendAll => self.send(usize::MAX),
            Act::StopReading(window) => {
                self.is_reading = false;
                self.sim.stop_reading(window);
            }
            Act::Read(bytes) => self.receive(&self.sim.peer.read_at_most(bytes)),
            Act::ReadOn => {
                self.is_reading = true;
                self.sim.peer.set_reading(true);
            }
            Act::Finish => self.sim.peer.finish(),
            Act::Close => self.sim.peer.close(),
            Act::Reset => self.sim.peer.reset(),
            Act::Turn | Act::Settle | Act::Drain(_) => unreachable!("steps of the worker"),
        }
    }

    /// Sends as much as corresponds to so many bytes of HTTP/1.
    fn send(&mut self, bytes: usize) {
        let (last, _) = self.places[self.places.len() - 1];
        let until = self.tried.0.saturating_add(bytes).min(last);
        let (before, after) = self.places.split_at(self.places.partition_point(|place| place.0 <= until));
        let (from, mut to) = before[before.len() - 1];
        if let Some(next) = after.first() {
            to += (until - from) * (next.1 - to) / (next.0 - from);
        }
        let before = self.sim.sent;
        self.sim.send(&self.script[self.tried.1..to]);
        self.accepted += self.sim.sent - before;
        self.tried = (until, to);
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.session.receive(bytes).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Receives, and sends what only a client's session can know. `None` if there was neither.
    fn pump(&mut self) -> Option<()> {
        let received = if self.is_reading { self.sim.peer.read() } else { Vec::new() };
        self.receive(&received);
        let is_between = self.accepted == self.tried.1 && self.frame_ends.contains(&self.accepted);
        let output = if is_between { self.session.take_output() } else { Vec::new() };
        self.sim.send(&output);
        (!received.is_empty() || !output.is_empty()).then_some(())
    }

    /// Checks that the right responses arrived; all of them, unless prevented by a reset, a drain or its disconnect.
    fn check(&mut self, conversation: &Conversation, number: usize, is_cut: bool) {
        let end = conversation.ends[number];
        let was_reset = self.sim.peer.saw_reset();
        let received = self.sim.peer.read();
        self.receive(&received);
        let is_part_enough = was_reset || end == ClientEnd::Gone || is_cut;
        assert!(is_part_enough || self.sim.peer.saw_fin(), "no FIN");
        if self.sim.peer.saw_fin() {
            // Without a whole preface the connection has HTTP/1, and a refusal.
            let is_http2 = self.accepted >= self.frame_ends[0];
            let ended = self.session.receive_end();
            assert!(is_part_enough || !is_http2 || ended.is_ok(), "{ended:?}");
        }
        let (last, code) = self.session.go_away().unwrap_or((u32::MAX, NO_ERROR));
        let is_within = self.accepted > 0 && !self.frame_ends.contains(&self.accepted);
        assert!(code == NO_ERROR || is_within, "GOAWAY with code {code}");
        for request in &self.requests {
            let is_sent = self.accepted >= request.decided_at;
            let is_optional = is_part_enough || request.stream > last || request.exceeds_window;
            let received = Received::take(&mut self.session, request.stream);
            let context = || format!("stream {}, sent: {is_sent}: {received:?}", request.stream);
            assert!(received.interim <= usize::from(request.may_continue), "{}", context());
            match (&request.response, &received.head) {
                (_, None) if !is_sent || is_optional => {}
                (None, None) => {
                    assert_eq!(received.end, Some(Error::StreamReset(PROTOCOL_ERROR)), "{}", context());
                }
                (Some(response), Some(head)) => {
                    let late = ExpectedResponse::timeout();
                    let expected = if is_sent { response } else { &late };
                    assert_eq!(comparable(head), comparable_of(expected), "{}", context());
                    assert!(expected.body.starts_with(&received.body), "{}", context());
                    assert!(is_optional || received.body.len() == expected.body.len(), "{}", context());
                    assert!(is_optional || received.end.is_none(), "{}", context());
                }
                _ => panic!("{}", context()),
            }
        }
    }
}

/// All that has arrived of a response.
#[derive(Debug)]
struct Received {
    interim: usize,
    head: Option<ClientResponse>,
    body: Vec<u8>,
    /// The error that it ended with; `None` if it is whole.
    end: Option<Error>,
}

impl Received {
    fn take(session: &mut Session, stream: u32) -> Self {
        let mut received = Self { interim: 0, head: None, body: Vec::new(), end: None };
        loop {
            match session.head(stream) {
                Ok(Some(head)) if head.status == 100 => received.interim += 1,
                Ok(Some(head)) => break received.head = Some(head),
                other => return Self { end: Some(other.err().unwrap_or(Error::Truncated)), ..received },
            }
        }
        loop {
            match session.data(stream) {
                Ok(Some(piece)) if piece.is_empty() => return received,
                Ok(Some(piece)) => received.body.extend(piece),
                other => return Self { end: Some(other.err().unwrap_or(Error::Truncated)), ..received },
            }
        }
    }
}

/// Returns status and fields, except the value of `Date`.
fn comparable(head: &ClientResponse) -> (String, Vec<(String, String)>) {
    let field = |(name, value): &(String, String)| match &**name {
        "date" => (name.clone(), String::new()),
        _ => (name.clone(), value.clone()),
    };
    (head.status.to_string(), head.fields.iter().map(field).collect())
}

fn comparable_of(expected: &ExpectedResponse) -> (String, Vec<(String, String)>) {
    let length = expected.length.map(|length| format!("Content-Length: {length}\r\n"));
    let lines = format!("Server: shearwater\r\nDate: \r\n{}{}", expected.fields, length.unwrap_or_default());
    let field = |line: &str| {
        let (name, value) = line.split_once(": ").expect("a field");
        (name.to_ascii_lowercase(), value.to_owned())
    };
    (expected.status[..3].to_owned(), lines.lines().map(field).collect())
}

/// Splits bytes in front of and behind a mark.
fn split<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(mark.len()).position(|window| window == mark)?;
    Some((&bytes[..at], &bytes[at + mark.len()..]))
}

/// Returns content without its chunks, and its trailers.
fn unchunked(mut chunks: &[u8]) -> (Vec<u8>, Vec<(String, String)>) {
    let mut content = Vec::new();
    loop {
        let (line, rest) = split(chunks, b"\r\n").expect("a chunk");
        let line = std::str::from_utf8(line).expect("sizes are text");
        let size = line.split(';').next().expect("a size");
        match usize::from_str_radix(size, 16).expect("a number") {
            0 => {
                let text = std::str::from_utf8(rest).expect("trailers are text");
                let fields = text.lines().filter_map(|line| line.split_once(": "));
                let owned = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
                return (content, owned.collect());
            }
            len => {
                content.extend_from_slice(&rest[..len]);
                chunks = &rest[len + 2..];
            }
        }
    }
}
