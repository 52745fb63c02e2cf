//! Inputs: valid requests of common pieces, most of them damaged afterwards.

use testkit::random::Rng;

#[rustfmt::skip]
const METHODS: &[&str] = &[
    "GET", "GET", "GET", "POST", "HEAD", "PUT", "DELETE", "PROPFIND", "get", "M-SEARCH", "!#$%", "OPTIONS",
    "CONNECT",
];
/// Number of methods to use, from the first.
const METHODS_WITH_ANY_PATH: usize = 12;
#[rustfmt::skip]
const TARGETS: &[&str] = &[
    "/", "/", "/index.html", "/favicon.ico", "/?", "/a/../b/./c//d", "/a/b/c?d=e&f=g", "/%41?", "//x/y",
    "/a;b=c/~d", "/\"<>\\^`{|}", "http://example.org/a?b", "https://example.org:8443", "*",
    "example.org:443", "[::1]:80", "http://u@example.org/", "urn:x", "/a#b", "/\u{e9}", "/a/../..",
];
/// Number of targets to use, from the first.
const TARGETS_OF_ORIGIN_FORM: usize = 11;
const VERSIONS: &[&str] = &["HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1x", "HTTP/1.9"];
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "Accept", "accept-encoding", "User-Agent", "Connection", "Content-Length", "Transfer-Encoding", "Host",
    "X-Forwarded-For", "Cookie", "x", "X-Very-Long-Header-Name-That-Is-Longer-Than-A-Vector",
    "!#$%&'*+-.^_`|~", "Expect", "TE",
];
#[rustfmt::skip]
const VALUES: &[&str] = &[
    "", "a", "*/*", "gzip, deflate, br",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)", "close", "keep-alive", "5",
    "0", "5, 5", "+1", "18446744073709551616", "chunked", "gzip, chunked", "chunked, chunked", "identity",
    "example.org", "a:80", "a b", "[::1]", "\u{e9}t\u{e9}", "a\tb", "100-continue",
];
const BLANKS: &[&str] = &[" ", " ", " ", " ", "", "\t", "  ", " \t "];
/// Bytes with a meaning to some parser.
const SHARP_BYTES: &[u8] = b"\r\n\r\n\0\t :,;#@/?*%\"\\\x0b\x0c\x1b\x7f\x80\xa0\xff019aHT";
/// Most changes made to one input.
const DAMAGE_MAX: usize = 4;

/// Generates inputs from a seed.
pub(crate) struct Generator {
    random: Rng,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Rng::with_seed(seed) }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.usize(..bound)
    }

    /// Returns true once in `rate` times on average.
    fn one_in(&mut self, rate: usize) -> bool {
        self.below(rate) == 0
    }

    fn pick(&mut self, choices: &[&'static str]) -> &'static str {
        choices[self.below(choices.len())]
    }

    /// Appends one input to `out`.
    pub(crate) fn generate(&mut self, out: &mut Vec<u8>) {
        if self.one_in(16) {
            out.extend_from_slice(self.pick(&["\r\n", "\r\n", "\n", "\r\n\r\n", "\r", " "]).as_bytes());
        }
        self.request(out);
        if self.one_in(8) {
            self.request(out);
        }
        if !self.one_in(3) {
            for _ in 0..=self.below(DAMAGE_MAX) {
                self.damage(out);
            }
        }
    }

    fn request(&mut self, out: &mut Vec<u8>) {
        let (method, target) = self.method_and_target();
        out.extend_from_slice(method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(target.as_bytes());
        if self.one_in(150) {
            out.resize(out.len() + self.below(10_000), b'a');
        }
        out.push(b' ');
        let version = if self.one_in(6) { self.pick(VERSIONS) } else { "HTTP/1.1" };
        out.extend_from_slice(version.as_bytes());
        out.extend_from_slice(b"\r\n");
        if !self.one_in(10) {
            out.extend_from_slice(b"Host: example.org\r\n");
        }
        let fields = if self.one_in(1000) { 95 + self.below(10) } else { self.below(8) };
        for _ in 0..fields {
            self.field(out);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Appends a field, mostly with a fitting value.
    fn method_and_target(&mut self) -> (&'static str, &'static str) {
        match self.below(12) {
            0 => (self.pick(METHODS), self.pick(TARGETS)),
            1 => ("CONNECT", self.pick(&["example.org:443", "[::1]:80"])),
            2 => ("OPTIONS", self.pick(&["*", "/", "http://example.org"])),
            _ => {
                (self.pick(&METHODS[..METHODS_WITH_ANY_PATH]), self.pick(&TARGETS[..TARGETS_OF_ORIGIN_FORM]))
            }
        }
    }

    fn field(&mut self, out: &mut Vec<u8>) {
        // Framing fields would invalidate most requests if they were as frequent as the others.
        let name = loop {
            let name = self.pick(NAMES);
            if !matches!(name, "Host" | "Content-Length" | "Transfer-Encoding") || self.one_in(6) {
                break name;
            }
        };
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        out.extend_from_slice(self.pick(BLANKS).as_bytes());
        out.extend_from_slice(self.pick(VALUES).as_bytes());
        out.extend_from_slice(self.pick(&["", "", "", " ", "\t"]).as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    /// Changes one thing. An empty input stays empty.
    fn damage(&mut self, out: &mut Vec<u8>) {
        if out.is_empty() {
            return;
        }
        let at = self.below(out.len());
        match self.below(9) {
            0 => out[at] = self.sharp_byte(),
            1 => out[at] = self.random.u8(..),
            2 => out.insert(at, self.sharp_byte()),
            3 => drop(out.remove(at)),
            4 => out.truncate(at),
            5 => self.damage_line_end(out, at),
            6 => self.repeat_range(out, at),
            7 => self.remove_range(out, at),
            _ => out[at] ^= 1 << self.below(8),
        }
    }

    fn sharp_byte(&mut self) -> u8 {
        SHARP_BYTES[self.below(SHARP_BYTES.len())]
    }

    /// Replaces the first CRLF after `at`.
    fn damage_line_end(&mut self, out: &mut Vec<u8>, at: usize) {
        let end = self.pick(&["\n", "\r", "\r\r\n", "\n\r", "\r\n ", "\r\n\t", "", "\r\n\r\n", " \r\n"]);
        if let Some(offset) = out[at..].windows(2).position(|pair| pair == b"\r\n") {
            out.splice(at + offset..at + offset + 2, end.bytes());
        }
    }

    fn repeat_range(&mut self, out: &mut Vec<u8>, at: usize) {
        let end = out.len().min(at + 1 + self.below(40));
        let range = out[at..end].to_vec();
        out.splice(at..at, range);
    }

    fn remove_range(&mut self, out: &mut Vec<u8>, at: usize) {
        let end = out.len().min(at + 1 + self.below(40));
        out.drain(at..end);
    }
}
