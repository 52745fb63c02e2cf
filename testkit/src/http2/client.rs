//! A blocking client of HTTP/2.

use std::io::{ErrorKind, Read, Write};

use super::frame::Frame;
use super::hpack::Fields;
use super::session::Session;
use crate::error::Error;
use crate::test_client::ClientResponse;

const READ_BYTES: usize = 64 * 1024;

/// A connection of HTTP/2 by prior knowledge or after ALPN, with any number of requests in flight.
#[derive(Debug)]
pub struct Http2Client<S> {
    stream: S,
    session: Session,
}

impl<S: Read + Write> Http2Client<S> {
    /// Sends the preface and empty SETTINGS. Requests are for `https`.
    pub fn new(stream: S) -> Result<Self, Error> {
        Self::with_settings(stream, &[])
    }

    /// As [`new`](Self::new), with requests for `http`.
    pub fn in_clear(stream: S) -> Result<Self, Error> {
        Self::with_session(stream, Session::new(&[]).in_clear())
    }

    /// Sends the preface and these SETTINGS.
    pub fn with_settings(stream: S, settings: &[(u16, u32)]) -> Result<Self, Error> {
        Self::with_session(stream, Session::new(settings))
    }

    fn with_session(stream: S, session: Session) -> Result<Self, Error> {
        let mut client = Self { stream, session };
        client.flush()?;
        Ok(client)
    }

    /// The state of the connection. What is queued there is sent by [`flush`](Self::flush) and before each read.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The stream itself.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Sends a whole request; returns its stream. See [`Session::send`].
    pub fn send(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Result<u32, Error> {
        let stream = self.session.send(method, target, fields, body);
        self.flush()?;
        Ok(stream)
    }

    /// Reads the whole response of a stream. Interim responses (`1xx`) are returned too.
    pub fn response(&mut self, stream: u32) -> Result<ClientResponse, Error> {
        until(&mut self.stream, &mut self.session, |session| session.response(stream))
    }

    /// Reads the head of a stream's response. Read the body with [`data`](Self::data).
    pub fn head(&mut self, stream: u32) -> Result<ClientResponse, Error> {
        until(&mut self.stream, &mut self.session, |session| session.head(stream))
    }

    /// Reads the content of the next frame of a stream's response; empty at its end.
    pub fn data(&mut self, stream: u32) -> Result<Vec<u8>, Error> {
        until(&mut self.stream, &mut self.session, |session| session.data(stream))
    }

    /// Handles all frames up to the orderly end of the connection; returns the last stream and code of its GOAWAY.
    pub fn end(&mut self) -> Result<Option<(u32, u32)>, Error> {
        until(&mut self.stream, &mut self.session, |session| Ok(session.is_over().then_some(())))?;
        Ok(self.session.go_away())
    }

    /// Sends what is queued.
    pub fn flush(&mut self) -> Result<(), Error> {
        Ok(self.stream.write_all(&self.session.take_output())?)
    }

    /// Frames as they are, for servers and clients that misbehave.
    pub fn frames(&mut self) -> Frames<'_, S> {
        Frames(self)
    }
}

/// Frames as they are: nothing is acknowledged, counted or checked.
#[derive(Debug)]
pub struct Frames<'a, S>(&'a mut Http2Client<S>);

impl<S: Read + Write> Frames<'_, S> {
    /// Sends any frame.
    pub fn send(&mut self, frame: &Frame) -> Result<(), Error> {
        self.send_bytes(&frame.encode())
    }

    /// Sends any bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.session.push_bytes(bytes);
        self.0.flush()
    }

    /// Reads the next frame; `None` at the orderly end of the connection.
    pub fn read(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            if let Some(frame) = self.0.session.next_frame() {
                return Ok(Some(frame));
            }
            match read(&mut self.0.stream)? {
                bytes if bytes.is_empty() => return self.0.session.receive_end().map(|()| None),
                bytes => self.0.session.receive_unread(&bytes),
            }
        }
    }

    /// Decodes a header block. Each must be, in order, because they share a table.
    pub fn decode(&mut self, block: &[u8]) -> Result<Fields, Error> {
        self.0.session.decode(block)
    }
}

/// Sends and receives until `take` returns something, then sends what that has queued.
pub(super) fn until<S: Read + Write, T>(
    stream: &mut S,
    session: &mut Session,
    mut take: impl FnMut(&mut Session) -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    loop {
        // A server that has responded may be gone: what it sent can still be read.
        match stream.write_all(&session.take_output()).map_err(Error::from) {
            Ok(()) | Err(Error::Reset) => {}
            Err(error) => return Err(error),
        }
        if let Some(taken) = take(session)? {
            return Ok(taken);
        }
        if session.is_over() {
            return Err(Error::Closed);
        }
        match read(stream)? {
            bytes if bytes.is_empty() => session.receive_end()?,
            bytes => session.receive(&bytes)?,
        }
    }
}

/// Receives once; nothing is the orderly end of the connection.
fn read(stream: &mut impl Read) -> Result<Vec<u8>, Error> {
    let mut room = vec![0; READ_BYTES];
    loop {
        match stream.read(&mut room) {
            // A signal interrupts a read with a timeout.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
            Ok(len) => {
                room.truncate(len);
                return Ok(room);
            }
        }
    }
}
