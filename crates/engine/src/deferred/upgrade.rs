//! Handlers that upgrade their connection.

use shearwater_http1::{Framing, Head, is_same_protocol};

use crate::deferred::call::Call;
use crate::request::Request;
use crate::response::Response;
use crate::response::fault::Fault;
use crate::response::fields::encode_field;
use crate::upgrade::{HandedOver, Taker};

impl Response<'_> {
    /// Upgrades the connection (RFC 9110 section 7.8). Sends a `101` with `Upgrade: protocol` and the fields
    /// set here, then calls `take` with the connection on this worker's thread.
    ///
    /// Of HTTP/2 it upgrades the stream of an extended CONNECT (RFC 8441), and the response is a `200`: see
    /// [`Service::protocols`](crate::Service::protocols).
    ///
    /// Until then the server's timeouts and minimum rates apply. The connection counts for the connection
    /// limits until its [guard](HandedOver::guard) is dropped; a stream counts for none, its connection as long as it is
    /// open. If either ends before the response is sent, `take` is dropped.
    ///
    /// The response becomes a `500` if the request doesn't [offer](Head::upgrades) the protocol, or has a
    /// body. `protocol` may have a version (`name/1.0`); names are compared case-insensitively.
    pub fn upgrade(
        &mut self,
        request: &Request<'_>,
        protocol: &str,
        take: impl FnOnce(HandedOver) + 'static,
    ) -> &mut Self {
        let head = request.head();
        self.upgrade_of(&head, protocol, Taker::new(&head, take))
    }

    fn upgrade_of(&mut self, head: &Head<'_>, protocol: &str, taker: Taker) -> &mut Self {
        self.drop_deferral();
        let is_connect = head.protocol().is_some();
        let has_content = match head.framing() {
            Framing::None | Framing::Length(0) => false,
            // What follows is the tunnel's.
            Framing::Open => !is_connect,
            Framing::Length(_) | Framing::Chunked => true,
        };
        let is_offered = head.upgrades().any(|offered| is_same_protocol(protocol.as_bytes(), offered));
        let encoded = match is_offered {
            true if has_content => Err("a handler upgraded with a request that has a body".to_owned()),
            true if is_connect => Ok(()),
            true => encode_field(&mut self.draft.fields, "Upgrade", protocol.as_bytes()),
            false => Err(format!("a handler upgraded to {protocol:?}, which its request doesn't offer")),
        };
        if let Err(why) = encoded {
            self.draft.fault.get_or_insert_with(|| Box::new(Fault::Built(why)));
        }
        self.draft.upgrade = Some(taker);
        self
    }
}

impl Call {
    /// Upgrades the connection when the `Call` is dropped: see [`Response::upgrade`]. It has no effect after
    /// [`begin`](Self::begin).
    pub fn upgrade(&mut self, protocol: &str, take: impl FnOnce(HandedOver) + 'static) {
        let (request, mut response) = self.parts();
        let head = request.head();
        response.upgrade_of(&head, protocol, Taker::new(&head, take));
    }
}
