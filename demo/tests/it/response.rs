//! Parser of raw HTTP responses.

/// Status, header fields and body of a response on a connection that then closed.
#[derive(Debug)]
pub(crate) struct ClientResponse {
    pub(crate) status: u16,
    /// Names in lower case.
    fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl ClientResponse {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head has an end");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).expect("a status line");
        let field =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let fields = lines.map(|line| field(line).expect("a field is a name and a value")).collect();
        let mut response =
            Self { status: status[..3].parse().unwrap(), fields, body: bytes[end + 4..].to_vec() };
        if response.field("transfer-encoding") == Some("chunked") {
            response.body = unchunked(&response.body);
        }
        response
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(
            (self.status, self.field("content-type")),
            (200, Some("application/json")),
            "{}",
            self.text()
        );
        serde_json::from_slice(&self.body).unwrap()
    }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|window| window == b"\r\n").expect("a chunk has a size");
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 2 + size + 2..];
    }
}
