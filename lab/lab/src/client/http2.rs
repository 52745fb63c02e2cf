//! HTTP/2 below the client's requests: their text becomes streams, and the responses become text again, in the order of the
//! requests. So one comparison of responses serves both versions.

use std::collections::VecDeque;
use std::io::{self, Error, ErrorKind, Read, Write};

use testkit::http2::Session;
use testkit::http2::frame::INITIAL_WINDOW_SIZE;

/// Window of a stream, larger than any file, and of a connection, as those of browsers.
const WINDOW_BYTES: u32 = 16 << 20;
/// Bytes received after which the connection's window is filled up.
const UPDATE_BYTES: usize = 1 << 20;
/// Bytes per receive of the blocking adapter.
const RECEIVE_BYTES: usize = 16 * 1024;

/// The streams of a connection.
pub(crate) struct Streams {
    session: Session,
    /// Streams of requests whose responses weren't passed on yet.
    pending: VecDeque<u32>,
    /// Target of a file that is downloaded all the time, and the stream of the present download.
    download: Option<(String, u32)>,
    /// Responses as text.
    text: Vec<u8>,
    /// Bytes received since the last update of the window.
    received: usize,
}

impl Streams {
    /// Begins a connection, with a target that is to be downloaded all the time beside the requests.
    pub(crate) fn new(download: Option<&str>) -> Self {
        let mut session = Session::new(&[(INITIAL_WINDOW_SIZE, WINDOW_BYTES)]);
        session.stop_window_updates();
        session.grant(0, WINDOW_BYTES);
        let download = download.map(|target| (target.to_owned(), session.send("GET", target, &[], b"")));
        Self { session, pending: VecDeque::new(), download, text: Vec::new(), received: 0 }
    }

    /// Queues whole requests, which have no content.
    pub(crate) fn request(&mut self, text: &[u8]) -> io::Result<()> {
        let text = str::from_utf8(text).map_err(Error::other)?;
        for head in text.split_terminator("\r\n\r\n") {
            let mut lines = head.split("\r\n");
            let mut words = lines.next().unwrap_or_default().split(' ');
            let (Some(method), Some(target)) = (words.next(), words.next()) else {
                return Err(Error::other(format!("request line of {head:?}")));
            };
            let fields = lines.filter_map(|line| line.split_once(": "));
            let fields: Vec<_> = fields.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
            let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, *value)).collect();
            self.pending.push_back(self.session.send(method, target, &fields, b""));
        }
        Ok(())
    }

    /// Takes the bytes to send.
    pub(crate) fn take_output(&mut self) -> Vec<u8> {
        self.session.take_output()
    }

    /// Handles received bytes, and passes on the text of the responses that are whole.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> io::Result<&[u8]> {
        let wrong = |error: testkit::Error| Error::new(ErrorKind::InvalidData, error.to_string());
        self.session.receive(bytes).map_err(wrong)?;
        self.received += bytes.len();
        if self.received >= UPDATE_BYTES {
            // With what frames the content.
            self.session.grant(0, self.received as u32);
            self.received = 0;
        }
        self.continue_download().map_err(wrong)?;
        self.text.clear();
        while let Some(stream) = self.pending.front()
            && let Some(response) = self.session.response(*stream).map_err(wrong)?
        {
            self.pending.pop_front();
            write!(self.text, "HTTP/1.1 {} \r\n", response.status)?;
            let has_length = response.fields.iter().any(|(name, _)| name == "content-length");
            for (name, value) in &response.fields {
                write!(self.text, "{name}: {value}\r\n")?;
            }
            if !has_length {
                write!(self.text, "content-length: {}\r\n", response.body.len())?;
            }
            self.text.extend_from_slice(b"\r\n");
            self.text.extend_from_slice(&response.body);
        }
        Ok(&self.text)
    }

    /// Drops what has arrived of the download. After its end begins the next one.
    fn continue_download(&mut self) -> Result<(), testkit::Error> {
        let Some((target, stream)) = &mut self.download else { return Ok(()) };
        while let Some(data) = self.session.data(*stream)? {
            if data.is_empty() {
                *stream = self.session.send("GET", target, &[], b"");
            }
        }
        Ok(())
    }
}

/// A blocking stream on which HTTP/1.1 is written and read, and HTTP/2 is sent.
pub(crate) struct TextStream<S> {
    stream: S,
    streams: Streams,
    unread: VecDeque<u8>,
}

impl<S> TextStream<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, streams: Streams::new(None), unread: VecDeque::new() }
    }
}

impl<S: Write> Write for TextStream<S> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.streams.request(text)?;
        self.flush()?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let output = self.streams.take_output();
        self.stream.write_all(&output)
    }
}

impl<S: Read + Write> Read for TextStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut received = [0; RECEIVE_BYTES];
        while self.unread.is_empty() {
            let length = self.stream.read(&mut received)?;
            if length == 0 {
                return Ok(0);
            }
            self.unread.extend(self.streams.receive(&received[..length])?);
            self.flush()?;
        }
        self.unread.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use testkit::http2::frame::Frame;

    use super::*;

    /// Returns the frames of a response with this content.
    fn response(stream: u32, content: &str) -> Vec<u8> {
        let head = Frame::headers(stream, &[(":status", "200"), ("server", "x")], false).encode();
        [head, Frame::data(stream, content.as_bytes(), true).encode()].concat()
    }

    #[test]
    fn responses_become_text_in_the_order_of_their_requests() {
        let mut streams = Streams::new(None);
        let request = b"GET /a HTTP/1.1\r\nHost: lab\r\n\r\n";
        streams.request(&request.repeat(2)).expect("two requests");
        let none: &[u8] = b"";
        assert_eq!(streams.receive(&response(3, "second")).expect("frames"), none);
        let text = "HTTP/1.1 200 \r\nserver: x\r\ncontent-length: 5\r\n\r\nfirst\
                    HTTP/1.1 200 \r\nserver: x\r\ncontent-length: 6\r\n\r\nsecond";
        assert_eq!(streams.receive(&response(1, "first")).expect("frames"), text.as_bytes());
        assert!(streams.receive(&response(5, "not asked for")).is_err());
        assert!(streams.request(b"GET\r\n\r\n").is_err());
    }

    #[test]
    fn a_download_begins_again_beside_the_requests() {
        let mut streams = Streams::new(Some("/large"));
        streams.request(b"GET /a HTTP/1.1\r\nHost: lab\r\n\r\n").expect("a request");
        streams.take_output();
        let none: &[u8] = b"";
        assert_eq!(streams.receive(&response(1, "large")).expect("frames"), none);
        let again = streams.take_output();
        assert!(again.windows(6).any(|window| window == b"/large"), "{again:?}");
        assert!(streams.receive(&response(3, "small")).is_ok_and(|text| text.ends_with(b"small")));
    }
}
