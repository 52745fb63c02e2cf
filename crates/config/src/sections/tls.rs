//! Keys of TLS: `[tls]`, `[acme]`, and the values of `tls`, `http` and `hsts` of a site.

use std::fmt;
use std::path::{PathBuf, absolute};
use std::time::Duration;

use toml::de::DeValue;

use crate::context::{Context, KeyPath, Value};
use crate::rules::collections::{List, Optional, Table, read_table};
use crate::rules::numbers::{Number, age, integer};
use crate::rules::strings::{Choice, Flag, Text, choices, text};
use crate::section::{Description, Kind::Inline, Rule, Source, section};

section! {
    /// TLS of all sites.
    Tls {
        min_version: TlsVersion = TlsVersion::Tls12, Choice(&[]),
            "Lowest version of TLS that clients may use.";
        protocols: Vec<Protocol> = vec![Protocol::Http2, Protocol::Http11], List(PROTOCOL),
            "Protocols that clients may negotiate (ALPN), in the server's order of preference. A client that offers only others is refused. \
             One that doesn't negotiate gets HTTP/1.1, even if only \"h2\" is listed.";
        strict_sni: bool = false, Flag,
            "Refuses clients that ask for a name of no site, or for none. Otherwise they get the certificate of the first site that has one.";
        redirect_port: Option<u16> = None, Optional(integer(1..=65_535)),
            "Port that requests in clear are redirected to. Set it if a router or a container maps another port to `https_port`, which is the \
             default.";
        ticket_keys: Option<PathBuf> = None, Optional(file("a file, such as \"/etc/shearwater/tickets\"")),
            "File with the keys of session tickets, so that clients resume sessions on any of several machines. Default: each process \
             makes its own and replaces them twice a day; an upgrade passes them on.";
        storage: Option<PathBuf> = None, Optional(file("a folder, such as \"/var/lib/shearwater\"")),
            "Folder for certificates that the server gets by itself, and for the account they belong to. Several machines may share it. \
             Default: the service manager's (`StateDirectory=`), or `shearwater` in the user's folder for data.";
    }

    fn check(&mut self, source: &Source<'_>, context: &mut Context<'_>) {
        if self.protocols.is_empty() {
            let help = "name some, such as `protocols = [\"h2\", \"http/1.1\"]`, or remove the key";
            source.error(context, "protocols", "expected at least one protocol, found none", help);
        }
    }

    fn example() -> Self {
        Self {
            redirect_port: Some(443),
            ticket_keys: Some(PathBuf::from("/etc/shearwater/tickets")),
            storage: Some(PathBuf::from("/var/lib/shearwater")),
            ..Self::default()
        }
    }
}

choices! {
    /// Versions of TLS.
    TlsVersion {
        Tls12 "1.2": "TLS 1.2 and 1.3";
        Tls13 "1.3": "TLS 1.3 only";
    }
}

/// Protocols that are negotiated with clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// HTTP/2.
    #[default]
    Http2,
    /// HTTP/1.1.
    Http11,
}

const PROTOCOL: Text<Protocol> = Text {
    allowed: "\"h2\" or \"http/1.1\"",
    parse: |text, _| match text {
        "h2" => Ok(Protocol::Http2),
        "http/1.1" => Ok(Protocol::Http11),
        "h2c" => Err("HTTP/2 without TLS is `http2_prior_knowledge` of [server]".to_owned()),
        "h3" => Err("HTTP/3 is not supported yet".to_owned()),
        _ => Err("unknown protocol".to_owned()),
    },
    format: |protocol| {
        let name = match protocol {
            Protocol::Http2 => "h2",
            Protocol::Http11 => "http/1.1",
        };
        name.to_owned()
    },
    help: "",
};

section! {
    /// The certificate authority of sites with `tls = "auto"`.
    Acme {
        email: Option<String> = None, Optional(EMAIL),
            "Address that the authority may write to. Let's Encrypt doesn't need one.";
        directory: Directory = Directory::LetsEncrypt, DIRECTORY,
            "The authority: Let's Encrypt, its staging environment, whose certificates browsers refuse but whose limits allow for trying, or the \
             URL of another authority's ACME directory (RFC 8555).";
        ca: Option<PathBuf> = None, Optional(file("a file of certificates (PEM)")),
            "Certificates that the directory's own server is checked with, for an authority of your own. Default: those of the system.";
        eab: Option<Eab> = None, Optional(Table(Inline, "a table such as { kid = \"…\", hmac = \"${EAB_HMAC}\" }")),
            "External account binding, which some authorities require.";
        agree_to_terms: bool = true, Flag,
            "Agrees to the authority's terms of service. Without it an authority that has terms gives no certificate.";
    }

    fn example() -> Self {
        Self {
            email: Some("ops@example.org".to_owned()),
            ca: Some(PathBuf::from("/etc/shearwater/ca.pem")),
            eab: Some(Eab::example()),
            ..Self::default()
        }
    }
}

const EMAIL: Text<String> = Text {
    allowed: "an email address, such as \"ops@example.org\"",
    parse: |text, _| match text.split_once('@') {
        Some((name, host)) if is_plain(name) && is_plain(host) && !name.contains(':') => Ok(text.to_owned()),
        _ => Err("invalid email address".to_owned()),
    },
    format: String::clone,
    help: "",
};

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@')
}

/// A certificate authority.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Directory {
    /// Let's Encrypt.
    #[default]
    LetsEncrypt,
    /// Let's Encrypt's staging environment.
    LetsEncryptStaging,
    /// The URL of an ACME directory.
    Url(String),
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LetsEncrypt => "letsencrypt",
            Self::LetsEncryptStaging => "letsencrypt-staging",
            Self::Url(url) => url,
        })
    }
}

const DIRECTORY: Text<Directory> = Text {
    allowed: "\"letsencrypt\", \"letsencrypt-staging\", or a URL such as \"https://ca.example.org/directory\"",
    parse: |text, _| match text {
        "letsencrypt" => Ok(Directory::LetsEncrypt),
        "letsencrypt-staging" => Ok(Directory::LetsEncryptStaging),
        url if url.strip_prefix("https://").is_some_and(is_plain) => Ok(Directory::Url(url.to_owned())),
        _ => Err("unknown certificate authority".to_owned()),
    },
    format: Directory::to_string,
    help: "",
};

section! {
    /// External account binding (RFC 8555 section 7.3.4).
    Eab {
        kid: String = String::new(), text("a string"),
            "Identifier of the key, as the authority gave it.";
        hmac: Secret = Secret::default(), SECRET,
            "The key in base64url. Keep it in an environment variable.";
    }

    const MEANS: &'static str = "External account binding.";
    const REQUIRED: &'static [&'static str] = &["kid", "hmac"];

    fn example() -> Self {
        Self { kid: "key-1".to_owned(), hmac: Secret("c2VjcmV0".to_owned()) }
    }
}

/// A key, which `Debug` leaves out.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Returns the key as written.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

const SECRET: Text<Secret> = Text {
    allowed: "a key in base64url (letters, digits, `-` and `_`)",
    parse: |text, _| {
        let digits = text.trim_end_matches('=');
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        match !digits.is_empty() && digits.bytes().all(is_digit) {
            true => Ok(Secret(digits.to_owned())),
            false => Err("invalid key".to_owned()),
        }
    },
    format: |secret| secret.0.clone(),
    help: "",
};

/// The certificate of a site.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SiteTls {
    /// None: the site has no TLS.
    #[default]
    Off,
    /// One that the server gets and renews by itself.
    Auto,
    /// One that the server makes, which no browser trusts.
    SelfSigned,
    /// The operator's.
    Own(Pair),
}

/// The certificates that a word names.
const WORD: Text<SiteTls> = Text {
    allowed: ALLOWED,
    parse: |text, _| match text {
        "off" => Ok(SiteTls::Off),
        "auto" => Ok(SiteTls::Auto),
        "self-signed" => Ok(SiteTls::SelfSigned),
        _ => Err("unknown value".to_owned()),
    },
    format: |tls| {
        let word = match tls {
            SiteTls::Off | SiteTls::Own(_) => "off",
            SiteTls::Auto => "auto",
            SiteTls::SelfSigned => "self-signed",
        };
        word.to_owned()
    },
    help: "",
};

const ALLOWED: &str =
    "\"off\", \"auto\", \"self-signed\", or a table such as { cert = \"site.pem\", key = \"site.key\" }";

section! {
    /// A certificate and its key.
    Pair {
        cert: PathBuf = PathBuf::new(), file("a file (PEM)"),
            "The certificate, followed by those between it and the authority's root (PEM).";
        key: PathBuf = PathBuf::new(), file("a file (PEM)"),
            "Its private key (PEM): RSA, P-256, P-384 or Ed25519. Only the server's user should be able to read it.";
        client_ca: Option<PathBuf> = None, Optional(file("a file (PEM)")),
            "Certificates of authorities. Clients must have a certificate of one of them.";
    }

    const MEANS: &'static str = "A certificate and its key. A reload reads them again.";
    const REQUIRED: &'static [&'static str] = &["cert", "key"];

    fn example() -> Self {
        Self {
            cert: PathBuf::from("/etc/shearwater/example.org.pem"),
            key: PathBuf::from("/etc/shearwater/example.org.key"),
            client_ca: None,
        }
    }
}

/// A word, or a table with a pair.
pub(crate) struct Certificate;

const PAIR: Table = Table(Inline, ALLOWED);

impl Rule<SiteTls> for Certificate {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut SiteTls) {
        match value.get_ref() {
            DeValue::String(_) => WORD.read(value, context, place),
            DeValue::Table(table) => {
                let mut pair = Pair::default();
                read_table(table, value.span(), &mut pair, context);
                *place = SiteTls::Own(pair);
            }
            _ => context.mismatch(value, "a string or a table", &self.allowed()),
        }
    }

    fn write(&self, value: &SiteTls, at: &KeyPath<'_>) -> Option<String> {
        match value {
            SiteTls::Own(pair) => PAIR.write(pair, at),
            word => WORD.write(word, at),
        }
    }

    fn allowed(&self) -> String {
        ALLOWED.to_owned()
    }

    fn tables(&self, heading: &str, means: &'static str) -> Vec<Description> {
        Rule::<Pair>::tables(&PAIR, heading, means)
    }
}

choices! {
    /// Treatment of requests that came in clear.
    ClearRequests {
        Redirect "redirect": "They are redirected to https";
        Serve "serve": "They are served like those by TLS";
    }
}

/// The first one, which is overwritten where a value is read.
impl Default for ClearRequests {
    fn default() -> Self {
        Self::Redirect
    }
}

section! {
    /// HTTP Strict Transport Security (RFC 6797).
    Hsts {
        max_age: Duration = Duration::ZERO, AGE,
            "Time for which a browser that has seen the header uses https only. \"0s\" ends that.";
        subdomains: bool = false, Flag,
            "Includes all names beneath the host.";
        preload: bool = false, Flag,
            "Agrees to be on the lists that browsers are shipped with, which takes months to undo. Needs `subdomains` and a year.";
    }

    const MEANS: &'static str = "HTTP Strict Transport Security, with more than a time.";
    const REQUIRED: &'static [&'static str] = &["max_age"];

    fn example() -> Self {
        Self { max_age: Duration::from_secs(365 * 86_400), subdomains: true, preload: false }
    }
}

/// Up to a hundred years.
const AGE: Number<Duration> = age(0..=100 * 365 * 86_400);

/// A time, or a table with more.
pub(crate) struct HstsRule;

const HSTS: Table = Table(Inline, "a table such as { max_age = \"1y\", subdomains = true }");

impl Rule<Option<Hsts>> for HstsRule {
    fn read(&self, value: &Value<'_>, context: &mut Context<'_>, place: &mut Option<Hsts>) {
        let mut hsts = Hsts::default();
        match value.get_ref() {
            DeValue::Boolean(false) => return *place = None,
            DeValue::Table(table) => read_table(table, value.span(), &mut hsts, context),
            DeValue::String(_) | DeValue::Integer(_) => AGE.read(value, context, &mut hsts.max_age),
            _ => context.mismatch(value, "a duration, a table or false", &self.allowed()),
        }
        *place = Some(hsts);
    }

    fn write(&self, value: &Option<Hsts>, at: &KeyPath<'_>) -> Option<String> {
        match value.as_ref()? {
            Hsts { max_age, subdomains: false, preload: false } => AGE.write(max_age, at),
            hsts => HSTS.write(hsts, at),
        }
    }

    fn allowed(&self) -> String {
        format!("a duration, such as \"1y\" or \"180d\", {}, or false", HSTS.1)
    }

    fn tables(&self, heading: &str, means: &'static str) -> Vec<Description> {
        Rule::<Hsts>::tables(&HSTS, heading, means)
    }
}

/// A path, relative to the folder of the configuration.
pub(crate) const fn file(allowed: &'static str) -> Text<PathBuf> {
    Text {
        allowed,
        parse: |text, base| {
            if text.is_empty() || text.contains('\0') {
                return Err("invalid path".to_owned());
            }
            let joined = base.join(text);
            Ok(absolute(&joined).unwrap_or(joined))
        },
        format: |path| path.display().to_string(),
        help: "",
    }
}
