//! A server in memory: each response has the request's content, and a trailer.

use std::io::{self, Read, Write};

use shearwater_http2::{Connection, HeadBuffer, ResponseHead, StreamEvent, StreamId, limits::Limits};

/// A request that is being received, then echoed.
struct Echo {
    stream: StreamId,
    content: Vec<u8>,
    sent: usize,
    is_complete: bool,
}

/// A server in memory. As a stream, its client writes requests and reads responses.
pub(crate) struct EchoServer {
    connection: Connection,
    head: HeadBuffer,
    input: Vec<u8>,
    /// Bytes that the client hasn't read.
    out: Vec<u8>,
    echoes: Vec<Echo>,
}

impl EchoServer {
    pub(crate) fn new() -> Self {
        let (limits, mut out) = (Limits::default(), Vec::new());
        let connection = Connection::new(limits, 0, &mut out);
        Self { connection, head: HeadBuffer::new(limits.head), input: Vec::new(), out, echoes: Vec::new() }
    }

    /// Takes the bytes for the client.
    pub(crate) fn take_output(&mut self) -> Vec<u8> {
        self.connection.output_sent();
        std::mem::take(&mut self.out)
    }

    /// Handles bytes of the client.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let (server, head, out) = (&mut self.connection, &mut self.head, &mut self.out);
        let mut at = 0;
        loop {
            let step = server.receive(&self.input[at..], head, out).expect("the client is correct");
            at += step.consumed;
            let find = |stream| move |echo: &&mut Echo| echo.stream == stream;
            match step.event {
                StreamEvent::More => break,
                StreamEvent::Request { stream, ends } => {
                    let path = head.head().path().to_owned();
                    let line = format!("X-Path: {path}\r\nServer: test\r\n");
                    let response =
                        ResponseHead { status: 200, lines: line.as_bytes(), ..ResponseHead::default() };
                    assert!(server.respond(stream, &response, false, out));
                    self.echoes.push(Echo { stream, content: Vec::new(), sent: 0, is_complete: ends });
                }
                StreamEvent::Data { stream, content, ends } => {
                    let echo = self.echoes.iter_mut().find(find(stream)).expect("it has begun");
                    echo.content.extend_from_slice(content);
                    echo.is_complete |= ends;
                    server.consumed(stream, content.len(), out);
                }
                StreamEvent::Trailers { stream } => {
                    assert_eq!(head.trailers().next().map(|field| field.name), Some("x-sum"));
                    self.echoes.iter_mut().find(find(stream)).expect("it has begun").is_complete = true;
                }
                StreamEvent::Reset { stream, .. } => self.echoes.retain(|echo| echo.stream != stream),
                other => panic!("{other:?}"),
            }
        }
        self.input.drain(..at);
        self.send();
    }

    /// Sends what the windows allow, in the scheduler's order.
    fn send(&mut self) {
        let server = &mut self.connection;
        for echo in &self.echoes {
            server.set_available(echo.stream, (echo.content.len() - echo.sent) as u64);
        }
        while let Some((stream, len)) = server.next_data(10_000) {
            let echo = self.echoes.iter_mut().find(|echo| echo.stream == stream).expect("it has content");
            assert!(server.data(stream, &echo.content[echo.sent..echo.sent + len], false, &mut self.out));
            echo.sent += len;
        }
        self.echoes.retain(|echo| {
            let is_done = echo.is_complete && echo.sent == echo.content.len();
            assert!(!is_done || server.trailers(echo.stream, b"X-Sum: 1\r\n", &mut self.out));
            !is_done
        });
    }
}

impl Write for EchoServer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.receive(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for EchoServer {
    /// Reads at most a few bytes at once. Without any, the exchange would hang.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        assert!(!self.out.is_empty(), "the client waits for nothing");
        let len = room.len().min(self.out.len()).min(1000);
        room[..len].copy_from_slice(&self.out[..len]);
        self.out.drain(..len);
        if self.out.is_empty() {
            self.connection.output_sent();
        }
        Ok(len)
    }
}
