//! Settings from the environment, checked as a whole before anything is opened.
//!
//! `SERVER_MODE`, `DATABASE_URL`, `JWT_SECRET`, and `PORT` or `LISTEN`. Each has a default; an error is one sentence.

use std::env::{self, VarError};
use std::fmt;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

const PORT: u16 = 3000;
/// Minimum length in bytes of an HS256 key (RFC 7518 section 3.2). Shorter keys work, with a warning.
const SECRET_BYTES_MIN: usize = 32;

/// The settings of the program.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) address: SocketAddr,
    pub(crate) database: DatabaseUrl,
    pub(crate) secret: Secret,
}

/// The handler of `/json` and `/plaintext`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The application, as for all other paths.
    Standard,
    /// Fast routes in front of the application.
    Performance,
}

/// The location of the database.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DatabaseUrl {
    /// Lost when the program ends.
    Memory,
    File(PathBuf),
}

/// The key that signs tokens.
#[derive(Debug)]
pub(crate) struct Secret {
    pub(crate) bytes: Vec<u8>,
    /// A warning about the key.
    pub(crate) note: Option<&'static str>,
}

/// An invalid setting: a sentence without its full stop.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrongSetting(String);

impl fmt::Display for WrongSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "standard",
            Self::Performance => "performance",
        })
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("sqlite::memory:"),
            Self::File(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

impl Settings {
    pub(crate) fn from_environment() -> Result<Self, WrongSetting> {
        Self::read(variable)
    }

    /// Reads the settings. `variable` returns the value of a variable, or `None` if it is not set.
    fn read(variable: impl Fn(&str) -> Result<Option<String>, WrongSetting>) -> Result<Self, WrongSetting> {
        Ok(Self {
            mode: mode(variable("SERVER_MODE")?.as_deref())?,
            address: address(variable("PORT")?.as_deref(), variable("LISTEN")?.as_deref())?,
            database: database(variable("DATABASE_URL")?.as_deref())?,
            secret: secret(variable("JWT_SECRET")?)?,
        })
    }
}

fn variable(name: &str) -> Result<Option<String>, WrongSetting> {
    match env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(WrongSetting(format!("{name} is not valid UTF-8"))),
    }
}

fn mode(value: Option<&str>) -> Result<Mode, WrongSetting> {
    match value {
        None | Some("standard") => Ok(Mode::Standard),
        Some("performance") => Ok(Mode::Performance),
        Some(other) => {
            Err(WrongSetting(format!("SERVER_MODE is `{other}`, and should be `standard` or `performance`")))
        }
    }
}

fn address(port: Option<&str>, listen: Option<&str>) -> Result<SocketAddr, WrongSetting> {
    match (port, listen) {
        (Some(_), Some(_)) => Err(WrongSetting("PORT and LISTEN are both set; set one of them".into())),
        (None, None) => Ok((Ipv4Addr::LOCALHOST, PORT).into()),
        (Some(port), None) => match port.parse::<u16>() {
            Ok(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
            Err(_) => Err(WrongSetting(format!("PORT is `{port}`, and should be a number from 0 to 65535"))),
        },
        (None, Some(listen)) => listen.parse().map_err(|_| {
            WrongSetting(format!(
                "LISTEN is `{listen}`, and should be an address with a port, such as 0.0.0.0:3000"
            ))
        }),
    }
}

/// Parses `sqlite::memory:`, `sqlite:PATH` or `sqlite://PATH`.
fn database(value: Option<&str>) -> Result<DatabaseUrl, WrongSetting> {
    let Some(url) = value else { return Ok(DatabaseUrl::Memory) };
    let wrong = |why: &str| {
        Err(WrongSetting(format!(
            "DATABASE_URL is `{url}`, {why}: it should be `sqlite::memory:` or `sqlite:PATH`"
        )))
    };
    let Some(place) = url.strip_prefix("sqlite:") else { return wrong("which is not SQLite") };
    match place.strip_prefix("//").unwrap_or(place) {
        ":memory:" => Ok(DatabaseUrl::Memory),
        "" => wrong("which names no file"),
        path if path.contains('?') => wrong("and options behind a `?` are not known"),
        path => Ok(DatabaseUrl::File(path.into())),
    }
}

fn secret(value: Option<String>) -> Result<Secret, WrongSetting> {
    match value {
        None => random_secret(),
        Some(value) if value.is_empty() => {
            Err(WrongSetting("JWT_SECRET is empty, so anybody could sign tokens".into()))
        }
        Some(value) => {
            let short = "JWT_SECRET is shorter than 32 bytes, which is good enough for a demonstration only";
            Ok(Secret { note: (value.len() < SECRET_BYTES_MIN).then_some(short), bytes: value.into_bytes() })
        }
    }
}

fn random_secret() -> Result<Secret, WrongSetting> {
    let mut bytes = vec![0; SECRET_BYTES_MIN];
    let random = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    random.map_err(|error| {
        WrongSetting(format!("JWT_SECRET is not set, and no random one is available: {error}"))
    })?;
    Ok(Secret {
        bytes,
        note: Some("JWT_SECRET is not set: a random one is used, and tokens end with this process"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Settings, String> {
        let value =
            |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Settings::read(|name| Ok(value(name))).map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn uses_defaults() {
        let settings = read(&[]).unwrap();
        assert_eq!((settings.mode, settings.database), (Mode::Standard, DatabaseUrl::Memory));
        assert_eq!(settings.address.to_string(), "127.0.0.1:3000");
        assert_eq!(settings.secret.bytes.len(), SECRET_BYTES_MIN);
        assert_ne!(settings.secret.bytes, read(&[]).unwrap().secret.bytes, "a new one each time");
    }

    #[test]
    fn reads_each_setting() {
        let settings = read(&[
            ("SERVER_MODE", "performance"),
            ("LISTEN", "[::]:80"),
            ("DATABASE_URL", "sqlite://data/demo.db"),
            ("JWT_SECRET", "a secret of more than thirty-two bytes"),
        ]);
        let settings = settings.unwrap();
        assert_eq!((settings.mode, settings.address.to_string()), (Mode::Performance, "[::]:80".to_owned()));
        assert_eq!(settings.database, DatabaseUrl::File("data/demo.db".into()));
        assert_eq!((settings.secret.bytes.len(), settings.secret.note), (38, None));
        assert_eq!(read(&[("PORT", "8000")]).unwrap().address.to_string(), "127.0.0.1:8000");
        assert!(read(&[("JWT_SECRET", "short")]).unwrap().secret.note.is_some());
    }

    #[test]
    fn parses_database_urls() {
        let url = |url: &str| database(Some(url)).map_err(|wrong| wrong.to_string());
        assert_eq!(url("sqlite::memory:"), Ok(DatabaseUrl::Memory));
        assert_eq!(url("sqlite://:memory:"), Ok(DatabaseUrl::Memory));
        assert_eq!(url("sqlite:demo.db"), Ok(DatabaseUrl::File("demo.db".into())));
        assert_eq!(url("sqlite:///var/demo.db"), Ok(DatabaseUrl::File("/var/demo.db".into())));
        assert!(url("sqlite:").is_err() && url("sqlite:a?mode=ro").is_err() && url("demo.db").is_err());
    }
}
