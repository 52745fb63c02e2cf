//! A session: the ClientHello, the choice of its configuration, then the rest of it in `running`.

use std::fmt;
use std::io::IoSlice;
use std::mem;
use std::sync::Arc;

use shearwater_io::secure::{Failure, Opened, Session, SessionFacts, Step};

use crate::configuration::Configuration;
use crate::hello::{self, Gathered, PartialHello};
use crate::running::Running;

/// The server's side of a TLS connection.
pub struct ServerSession(Stage);

enum Stage {
    /// The ClientHello isn't whole.
    Hello(Arc<Configuration>, PartialHello),
    /// The ClientHello is whole; the next call chooses a configuration and begins the handshake.
    Costly(Arc<Configuration>, PartialHello),
    Running(Box<Running>),
    /// The session is broken. It was complete if there are facts.
    Failed(Failure, Option<Arc<SessionFacts>>),
}

impl ServerSession {
    pub(crate) fn new(configuration: Arc<Configuration>) -> Self {
        Self(Stage::Hello(configuration, PartialHello::default()))
    }

    /// Begins the handshake with the configuration for the client's names.
    fn begin(
        configuration: &Configuration,
        hello: PartialHello,
        reply: &mut Vec<u8>,
    ) -> Result<Box<Running>, Failure> {
        let mut records = hello.into_records();
        let accepted = hello::parse(&records, reply)?;
        let client = accepted.client_hello();
        let offers =
            |protocol: &str| client.alpn().is_some_and(|mut all| all.any(|one| one == protocol.as_bytes()));
        let chosen = configuration.choose(client.server_name(), offers).map_err(|(failure, alert)| {
            alert.append(reply);
            failure
        })?;
        drop(accepted);
        Running::new(chosen, &mut records, reply).map(Box::new)
    }

    fn fail(&mut self, failure: Failure) {
        let facts = match &mut self.0 {
            Stage::Running(running) => running.facts.take(),
            Stage::Failed(_, facts) => facts.take(),
            _ => None,
        };
        self.0 = Stage::Failed(failure, facts);
    }
}

impl Session for ServerSession {
    fn open(&mut self, wire: &mut [u8], reply: &mut Vec<u8>) -> Opened {
        let opened = |consumed, step| Opened { consumed, step };
        let result = match &mut self.0 {
            Stage::Hello(configuration, hello) => {
                match hello.take(wire, &configuration.plain_http_response, reply) {
                    Gathered::Nothing => return opened(0, Step::NeedMore),
                    Gathered::Part(taken) => return opened(taken, Step::Handled),
                    Gathered::Whole(taken) => {
                        self.0 = Stage::Costly(Arc::clone(configuration), mem::take(hello));
                        return opened(taken, Step::Costly);
                    }
                    Gathered::Failed(failure) => Err(failure),
                }
            }
            Stage::Costly(configuration, hello) => {
                match Self::begin(configuration, mem::take(hello), reply) {
                    Ok(running) => {
                        self.0 = Stage::Running(running);
                        return opened(0, Step::Handled);
                    }
                    Err(failure) => Err(failure),
                }
            }
            Stage::Running(running) => running.open(wire, reply),
            Stage::Failed(failure, _) => Err(*failure),
        };
        result.unwrap_or_else(|failure| {
            self.fail(failure);
            opened(wire.len(), Step::Failed(failure))
        })
    }

    fn seal(&mut self, plain: &[IoSlice<'_>], wire: &mut Vec<u8>) -> Result<(), Failure> {
        match &mut self.0 {
            Stage::Running(running) if running.facts.is_some() => running.seal(plain, wire),
            Stage::Failed(failure, _) => Err(*failure),
            _ => Err(Failure::Other),
        }
    }

    fn close_notify(&mut self, wire: &mut Vec<u8>) {
        if let Stage::Running(running) = &mut self.0
            && running.facts.is_some()
        {
            running.close_notify(wire);
        }
    }

    fn facts(&self) -> Option<&Arc<SessionFacts>> {
        match &self.0 {
            Stage::Running(running) => running.facts.as_ref(),
            Stage::Failed(_, facts) => facts.as_ref(),
            Stage::Hello(..) | Stage::Costly(..) => None,
        }
    }

    fn pending_bytes(&self) -> usize {
        match &self.0 {
            Stage::Hello(_, hello) | Stage::Costly(_, hello) => hello.held_bytes(),
            Stage::Running(running) => running.pending_bytes(),
            Stage::Failed(..) => 0,
        }
    }

    fn abandon(&mut self) {
        self.fail(Failure::Other);
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.0 {
                Stage::Hello(_, hello) | Stage::Costly(_, hello) => hello.held_bytes(),
                Stage::Running(running) => running.held_bytes(),
                Stage::Failed(..) => 0,
            }
    }
}

impl fmt::Debug for ServerSession {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.0 {
            Stage::Hello(..) => "hello",
            Stage::Costly(..) => "costly",
            Stage::Running(running) if running.facts.is_none() => "handshake",
            Stage::Running(_) => "secured",
            Stage::Failed(..) => "failed",
        };
        out.debug_tuple("ServerSession").field(&stage).finish()
    }
}
