//! Results of httparse, and of a second, textual implementation of the rules that httparse leaves to its
//! callers.

use shearwater_http1::Framing;

/// Maximum number of fields; the same as the parser's default.
pub(crate) const FIELDS_MAX: usize = 100;

/// httparse's view of a request.
pub(crate) struct OracleRequest<'a> {
    pub(crate) head_len: usize,
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) minor_version: u8,
    pub(crate) fields: Vec<(&'a str, &'a [u8])>,
}

/// Result of httparse.
pub(crate) enum OracleVerdict<'a> {
    Accepted(OracleRequest<'a>),
    Partial { target: Option<&'a str>, method: Option<&'a str> },
    Refused(httparse::Error),
}

pub(crate) fn judge(input: &[u8]) -> OracleVerdict<'_> {
    let mut headers = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(input) {
        Ok(httparse::Status::Complete(head_len)) => OracleVerdict::Accepted(OracleRequest {
            head_len,
            method: request.method.expect("a complete request has a method"),
            target: request.path.expect("a complete request has a target"),
            minor_version: request.version.expect("a complete request has a version"),
            fields: request.headers.iter().map(|header| (header.name, header.value)).collect(),
        }),
        Ok(httparse::Status::Partial) => {
            OracleVerdict::Partial { target: request.path, method: request.method }
        }
        Err(error) => OracleVerdict::Refused(error),
    }
}

impl<'a> OracleRequest<'a> {
    pub(crate) fn values(&self, name: &str) -> Vec<&'a [u8]> {
        let has_name = |field: &&(&str, &[u8])| field.0.eq_ignore_ascii_case(name);
        self.fields.iter().filter(has_name).map(|field| field.1).collect()
    }

    /// Returns true if the request has the one Host that its version requires, in an unambiguous form.
    pub(crate) fn has_plain_host(&self) -> bool {
        let plain = |value: &[u8]| {
            let text = String::from_utf8_lossy(value);
            let (host, port) = text.split_once(':').unwrap_or((&text, "80"));
            let is_host = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
            let is_port = |port: &str| !port.starts_with('+') && port.parse::<u16>().is_ok();
            value.is_empty() || (!host.is_empty() && host.chars().all(is_host) && is_port(port))
        };
        match self.values("host")[..] {
            [] => self.minor_version == 0,
            [value] => plain(value),
            _ => false,
        }
    }

    /// Returns true if the number of Hosts is valid for its version.
    pub(crate) fn has_right_number_of_hosts(&self) -> bool {
        match self.values("host").len() {
            0 => self.minor_version == 0,
            number => number == 1,
        }
    }

    /// Returns the framing, if it is unambiguous.
    pub(crate) fn framing(&self) -> Option<Framing> {
        let lengths = self.values("content-length");
        let codings = self.values("transfer-encoding");
        match (&lengths[..], &codings[..]) {
            ([], []) => Some(Framing::None),
            ([length], []) => {
                let digits = std::str::from_utf8(length).ok()?;
                let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit());
                is_number.then(|| digits.parse().ok().map(Framing::Length))?
            }
            ([], [coding]) => {
                let is_chunked = self.minor_version > 0 && coding.eq_ignore_ascii_case(b"chunked");
                is_chunked.then_some(Framing::Chunked)
            }
            _ => None,
        }
    }

    pub(crate) fn keep_alive(&self) -> bool {
        let values = self.values("connection");
        let text = values.iter().map(|value| String::from_utf8_lossy(value).to_ascii_lowercase());
        let options: Vec<String> = text
            .flat_map(|value| value.split(',').map(|option| option.trim().to_owned()).collect::<Vec<_>>())
            .collect();
        let has = |name: &str| options.iter().any(|option| option == name);
        !has("close") && (self.minor_version > 0 || has("keep-alive"))
    }
}
