//! Sessions of TLS without cryptography: a record is content after its header, and what the server sends is plain.

use std::io::IoSlice;
use std::sync::Arc;

use shearwater_engine::io::secure::{
    Failure, Opened, Provider, Secure, Session, SessionFacts, Step, Version,
};
use shearwater_engine::io::sim::Sim;
use shearwater_engine::io::{Driver, ListenerId};

pub(crate) const HELLO: u8 = 22;
pub(crate) const CONTENT: u8 = 23;
/// A record with a message for the session alone.
pub(crate) const MESSAGE: u8 = 24;
/// Content of a hello that is refused, by this alert.
pub(crate) const REFUSED: u8 = b'!';
/// End of the content of a hello that offers HTTP/2.
pub(crate) const HTTP2: &[u8] = b"h2";
pub(crate) const ALERT: &[u8] = b"alert";

pub(crate) type SecureSim = Secure<Sim, Letters>;

/// A driver over the simulated network.
pub(crate) trait SimDriver: Driver {
    /// The first bytes of each client; with them, what it sends is in records.
    const HELLO: &[u8];

    fn over(sim: Sim) -> Self;

    /// Returns whether the next turn has work without an event.
    fn has_work(&self) -> bool;
}

impl SimDriver for Sim {
    const HELLO: &[u8] = b"";

    fn over(sim: Sim) -> Self {
        sim
    }

    fn has_work(&self) -> bool {
        false
    }
}

impl SimDriver for SecureSim {
    const HELLO: &[u8] = &[HELLO, 3, 3, 0, 1, b'a'];

    fn over(sim: Sim) -> Self {
        Self::new(sim, Letters)
    }

    fn has_work(&self) -> bool {
        Self::has_work(self)
    }
}

/// Hosts in `.example` have the policy that is their first character's number, all others that of `a`.
pub(crate) struct Letters;

#[derive(Default)]
pub(crate) struct Lettered(Option<Arc<SessionFacts>>);

impl Provider for Letters {
    type Session = Lettered;

    fn begin_turn(&mut self, _: u64) {}

    fn accept(&mut self, _: ListenerId) -> Lettered {
        Lettered::default()
    }

    fn has_client_policies(&self) -> bool {
        true
    }

    fn client_policy(&self, host: &str) -> u32 {
        host.bytes().next().filter(|_| host.ends_with(".example")).unwrap_or(b'a').into()
    }
}

impl Session for Lettered {
    fn open(&mut self, wire: &mut [u8], reply: &mut Vec<u8>) -> Opened {
        let record = match *wire {
            [kind, _, _, high, low, ..] => Some((kind, 5 + usize::from(u16::from_be_bytes([high, low])))),
            _ => None,
        };
        let Some((kind, len)) = record.filter(|(_, len)| *len <= wire.len()) else {
            return Opened { consumed: 0, step: Step::NeedMore };
        };
        let step = match kind {
            HELLO if wire[5] == REFUSED => {
                reply.extend_from_slice(ALERT);
                Step::Failed(Failure::Version)
            }
            HELLO => {
                self.0 = Some(Arc::new(SessionFacts {
                    version: Version::Tls13,
                    is_resumed: false,
                    alpn: Some(if wire[5..len].ends_with(HTTP2) { "h2" } else { "http/1.1" }),
                    server_name: Some("a.example".into()),
                    client_certificates: Box::new([Box::from(&b"a certificate"[..])]),
                    client_policy: wire[5].into(),
                    cipher_suite: "TLS_NULL",
                }));
                Step::Secured
            }
            CONTENT => Step::Plain(5..len),
            _ => Step::Handled,
        };
        Opened { consumed: len, step }
    }

    fn seal(&mut self, plain: &[IoSlice<'_>], wire: &mut Vec<u8>) -> Result<(), Failure> {
        plain.iter().for_each(|slice| wire.extend_from_slice(slice));
        Ok(())
    }

    fn close_notify(&mut self, _: &mut Vec<u8>) {}

    fn facts(&self) -> Option<&Arc<SessionFacts>> {
        self.0.as_ref()
    }

    fn held_bytes(&self) -> usize {
        0
    }
}

pub(crate) fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let len = u16::try_from(content.len()).expect("a short record").to_be_bytes();
    [&[kind, 3, 3, len[0], len[1]][..], content].concat()
}
