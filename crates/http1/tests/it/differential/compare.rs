//! One input, two parsers: interpretation of their results.

use super::oracle::{self, OracleRequest, OracleVerdict};
use shearwater_http1::{Head, HeadLimits, HeadParser, ParseError, Parsed, Target, Version};
use testkit::random::Rng;

macro_rules! outcomes {
    ($($outcome:ident $reason:literal)*) => {
        /// Result of a comparison: agreement, or a disagreement with a reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum OracleComparison { $($outcome,)* }

        impl OracleComparison {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$outcome,)*];

            pub(crate) fn reason(self) -> &'static str {
                match self { $(Self::$outcome => $reason,)* }
            }
        }
    };
}

outcomes! {
    AgreeAccept "same length, method, target, version, fields, framing and persistence"
    AgreeReject "both refuse"
    AgreePartial "both want more"
    LineNotEnded "we judge a line when it has ended (so that the reason never depends on the split); httparse within the line"
    LaterMinorVersion "RFC 9110 2.5: HTTP/1.2 and later are read as 1.1; httparse knows 1.0 and 1.1 only"
    BareLf "RFC 9112 2.2 allows LF alone, but whoever disagrees about line ends can be made to disagree about messages"
    EmptyLines "RFC 9112 2.2 asks for one empty line to be skipped; httparse skips any number"
    TargetBytes "RFC 9112 3.2: control characters and `#` are in no target; httparse leaves this to the URI's reader"
    AboveRoot "RFC 3986 5.2.4: a path that leaves the root means nothing; httparse does not look into targets"
    TargetForm "RFC 9112 3.2: the four forms and their methods; httparse does not look into targets"
    Limits "RFC 9112 3, RFC 6585 5: bounds of method, target and head; httparse leaves them to its caller"
    Host "RFC 9112 3.2: one valid Host; httparse does not look into fields"
    Framing "RFC 9112 6: one undoubted length; httparse does not look into fields"
}

/// Compares inputs; owns our parser and the choice of splits.
pub(crate) struct Comparer {
    parser: HeadParser,
    random: Rng,
    longer: Vec<u8>,
}

impl Comparer {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            parser: HeadParser::new(HeadLimits::default()),
            random: Rng::with_seed(!seed),
            longer: Vec::new(),
        }
    }

    /// Compares the two parsers' results; fails if the combination is not listed, or if ours depends on a
    /// split.
    pub(crate) fn compare(&mut self, input: &[u8]) -> Result<OracleComparison, String> {
        let split = self.random.usize(..=input.len());
        self.parser.reset();
        let early = self.parser.parse(&input[..split]);
        let resumed = if early == Ok(Parsed::Partial) { self.parser.parse(input) } else { early };
        self.parser.reset();
        let ours = self.parser.parse(input);
        if ours != resumed {
            return Err(format!("whole {ours:?}, split at {split} {resumed:?}"));
        }
        let theirs = oracle::judge(input);
        let outcome = match (ours, &theirs) {
            (Ok(Parsed::Complete { head_len }), OracleVerdict::Accepted(request)) => {
                let head = self.parser.head(input);
                (head_len == request.head_len && is_same(&head, request))
                    .then_some(OracleComparison::AgreeAccept)
            }
            (Ok(Parsed::Complete { .. }), OracleVerdict::Refused(httparse::Error::Version)) => {
                has_later_minor_version(input).then_some(OracleComparison::LaterMinorVersion)
            }
            (Ok(Parsed::Partial), OracleVerdict::Partial { .. }) => Some(OracleComparison::AgreePartial),
            (Ok(Parsed::Partial), OracleVerdict::Refused(_)) => self.refused_early(input),
            (Err(_), OracleVerdict::Refused(_)) => Some(OracleComparison::AgreeReject),
            (Err(reject), theirs) => stricter(reject, input, theirs),
            _ => None,
        };
        outcome.ok_or_else(|| format!("ours {ours:?}, theirs {}", describe(&theirs)))
    }

    /// They reject what is incomplete for us: explained by the incomplete line only if we reject it after its
    /// end too.
    fn refused_early(&mut self, input: &[u8]) -> Option<OracleComparison> {
        self.longer.clear();
        self.longer.extend_from_slice(input.strip_suffix(b"\r").unwrap_or(input));
        self.longer.extend_from_slice(b"\r\n\r\n");
        self.parser.reset();
        match self.parser.parse(&self.longer) {
            Err(_) => Some(OracleComparison::LineNotEnded),
            Ok(_) => has_later_minor_version(&self.longer).then_some(OracleComparison::LaterMinorVersion),
        }
    }
}

/// Returns the kind of an error of ours if httparse accepts, or wants more; `None` if the input lacks the
/// claimed fault.
fn stricter(reject: ParseError, input: &[u8], theirs: &OracleVerdict<'_>) -> Option<OracleComparison> {
    let (method, target) = match theirs {
        OracleVerdict::Accepted(request) => (Some(request.method), Some(request.target)),
        OracleVerdict::Partial { target, method } => (*method, *target),
        OracleVerdict::Refused(_) => (None, None),
    };
    let request = match theirs {
        OracleVerdict::Accepted(request) => Some(request),
        _ => None,
    };
    let (outcome, is_shown) = match reject {
        ParseError::BareLf => (OracleComparison::BareLf, has_bare_lf(input)),
        ParseError::ExtraEmptyLine => (OracleComparison::EmptyLines, input.starts_with(b"\r\n\r")),
        ParseError::InvalidTargetByte => {
            let is_foreign = |letter: char| letter == '#' || !letter.is_ascii_graphic();
            (OracleComparison::TargetBytes, target.is_some_and(|target| target.contains(is_foreign)))
        }
        ParseError::PathAboveRoot => (
            OracleComparison::AboveRoot,
            target.is_some_and(|target| target.contains("..") || target.contains('%')),
        ),
        ParseError::InvalidTarget
        | ParseError::InvalidTargetAuthority
        | ParseError::InvalidConnectTarget
        | ParseError::AsteriskWithoutOptions => {
            let is_plain = target.is_some_and(|target| target.starts_with('/')) && method != Some("CONNECT");
            (OracleComparison::TargetForm, !is_plain)
        }
        ParseError::TargetTooLong | ParseError::MethodTooLong | ParseError::HeadTooLarge => {
            (OracleComparison::Limits, is_long(input))
        }
        ParseError::MissingHost | ParseError::DuplicateHost | ParseError::InvalidHost => {
            (OracleComparison::Host, request.is_some_and(|request| !request.has_plain_host()))
        }
        ParseError::TransferEncodingAndContentLength
        | ParseError::DuplicateContentLength
        | ParseError::InvalidContentLength
        | ParseError::TransferEncodingInHttp10
        | ParseError::InvalidTransferEncoding
        | ParseError::ChunkedNotLast
        | ParseError::UnknownTransferCoding => {
            (OracleComparison::Framing, request.is_some_and(|request| request.framing().is_none()))
        }
        _ => return None,
    };
    is_shown.then_some(outcome)
}

fn is_same(head: &Head<'_>, request: &OracleRequest<'_>) -> bool {
    let version = if request.minor_version == 0 { Version::Http10 } else { Version::Http11 };
    // RFC 9112 3.2.2: an absolute target replaces the value of `Host`.
    let is_absolute = matches!(head.target(), Target::Absolute { .. });
    let fields = request.fields.iter().map(|&(name, value)| {
        let is_replaced = is_absolute && name.eq_ignore_ascii_case("Host");
        (name, if is_replaced { head.host().as_bytes() } else { value })
    });
    head.method_name() == request.method
        && head.target_str() == request.target
        && head.version() == version
        && head.fields().map(|field| (field.name, field.value)).eq(fields)
        && request.has_right_number_of_hosts()
        && Some(head.framing()) == request.framing()
        && head.keep_alive() == request.keep_alive()
}

fn has_bare_lf(input: &[u8]) -> bool {
    input.first() == Some(&b'\n') || input.windows(2).any(|pair| pair[1] == b'\n' && pair[0] != b'\r')
}

fn has_later_minor_version(input: &[u8]) -> bool {
    let is_later = |window: &[u8]| window.starts_with(b" HTTP/1.") && (b'2'..=b'9').contains(&window[8]);
    input.windows(11).any(|window| is_later(window) && window.ends_with(b"\r\n"))
}

/// Returns true if the first line is longer than 32 bytes to its first space or 8,192 altogether, or the
/// input longer than 65,536.
fn is_long(input: &[u8]) -> bool {
    let line =
        input.strip_prefix(b"\r\n").unwrap_or(input).split(|&byte| byte == b'\n').next().unwrap_or_default();
    let method_len = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
    method_len > 32 || line.len() > 8192 || input.len() > 65_536
}

fn describe(verdict: &OracleVerdict<'_>) -> String {
    match verdict {
        OracleVerdict::Accepted(request) => format!(
            "accepted, {} bytes: {} {} 1.{} {:?}",
            request.head_len, request.method, request.target, request.minor_version, request.fields
        ),
        OracleVerdict::Partial { .. } => "partial".to_owned(),
        OracleVerdict::Refused(error) => format!("refused: {error}"),
    }
}
