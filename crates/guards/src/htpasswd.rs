//! htpasswd files: lines of `user:hash`.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use argon2::Argon2;
use argon2::password_hash::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;

use crate::limits::{
    ARGON2_MEMORY_KIB_MAX, ARGON2_PASSES_MAX, BCRYPT_COST_MAX, HTPASSWD_BYTES_MAX, USERS_MAX,
};

const REMEDY: &str = "`htpasswd -B FILE USER` writes bcrypt";

/// An error in an htpasswd file. Displays as one line, without any part of a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HtpasswdError {
    /// Line, from 1; `None` if the file as a whole is wrong.
    pub line: Option<usize>,
    /// The error.
    pub message: String,
    /// A way to fix it.
    pub help: String,
}

impl HtpasswdError {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line: None, message: message.into(), help: help.into() }
    }
}

impl fmt::Display for HtpasswdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{} (help: {})", self.message, self.help)
    }
}

impl std::error::Error for HtpasswdError {}

/// The users of an htpasswd file, with the hashes of their passwords.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Users {
    hashes: Vec<Hash>,
    /// Indices of `hashes`.
    by_name: HashMap<Box<str>, usize>,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("count", &self.hashes.len()).finish_non_exhaustive()
    }
}

/// A hash that was checked.
#[derive(Clone, PartialEq, Eq)]
enum Hash {
    Bcrypt(Box<str>),
    Argon2id(Box<str>),
}

impl Users {
    /// Reads a file.
    ///
    /// # Errors
    /// If it can't be read, is too large, has no users, or a line that isn't understood. Nothing of it is used then.
    pub fn open(path: &Path) -> Result<Self, HtpasswdError> {
        let unread = |error: std::io::Error| {
            HtpasswdError::new(error.to_string(), "check the path and its permissions")
        };
        let mut text = String::new();
        File::open(path)
            .map_err(unread)?
            .take(HTPASSWD_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(unread)?;
        if text.len() as u64 > HTPASSWD_BYTES_MAX {
            let message = format!("file is larger than {HTPASSWD_BYTES_MAX} bytes");
            return Err(HtpasswdError::new(message, "name a file of `htpasswd -B`"));
        }
        Self::parse(&text)
    }

    /// Parses the text of a file. Empty lines and those that begin with `#` are skipped.
    ///
    /// # Errors
    /// As [`open`](Self::open), for the first line that isn't understood.
    pub fn parse(text: &str) -> Result<Self, HtpasswdError> {
        let mut users = Self::default();
        for (index, line) in text.lines().enumerate() {
            if !line.is_empty() && !line.starts_with('#') {
                let added = users.add(line);
                added.map_err(|error| HtpasswdError { line: Some(index + 1), ..error })?;
            }
        }
        match users.hashes.is_empty() {
            true => Err(HtpasswdError::new("no users", format!("add one: {REMEDY}"))),
            false => Ok(users),
        }
    }

    fn add(&mut self, line: &str) -> Result<(), HtpasswdError> {
        let (name, hash) = line
            .split_once(':')
            .ok_or_else(|| HtpasswdError::new("expected USER:HASH", format!("remove the line; {REMEDY}")))?;
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(HtpasswdError::new(
                "invalid user name",
                "a name has at least one character, and no control characters",
            ));
        }
        if self.hashes.len() >= USERS_MAX {
            return Err(HtpasswdError::new(format!("more than {USERS_MAX} users"), "remove some"));
        }
        let hash = Hash::parse(hash)?;
        if self.by_name.insert(name.into(), self.hashes.len()).is_some() {
            return Err(HtpasswdError::new(
                format!("user {name:?} is there twice"),
                "remove one of the lines",
            ));
        }
        self.hashes.push(hash);
        Ok(())
    }

    /// Returns whether a password is that of a user. Takes as long for an unknown user: `any` chooses another one's hash.
    pub(crate) fn verify(&self, name: &str, password: &[u8], any: u64) -> bool {
        let known = self.by_name.get(name).copied();
        let index = known.unwrap_or(any as usize % self.hashes.len());
        // The hash first: a shortcut would reveal which users exist.
        self.hashes[index].verify(password) && known.is_some()
    }
}

impl Hash {
    fn parse(hash: &str) -> Result<Self, HtpasswdError> {
        match hash.split('$').nth(1) {
            Some("2y" | "2a" | "2b") => Self::bcrypt(hash),
            Some("argon2id") => Self::argon2id(hash),
            _ => Err(refused(hash)),
        }
    }

    fn bcrypt(hash: &str) -> Result<Self, HtpasswdError> {
        let parts: bcrypt::HashParts = hash
            .parse()
            .map_err(|_| HtpasswdError::new("invalid bcrypt hash", format!("make it again: {REMEDY}")))?;
        match parts.get_cost() {
            0..=BCRYPT_COST_MAX => Ok(Self::Bcrypt(hash.into())),
            cost => {
                let help = format!(
                    "make it again with a cost of at most {BCRYPT_COST_MAX}: `htpasswd -B -C 12 FILE USER`"
                );
                Err(HtpasswdError::new(format!("bcrypt hash with cost {cost}, which takes seconds"), help))
            }
        }
    }

    fn argon2id(hash: &str) -> Result<Self, HtpasswdError> {
        let help = "make it again: `argon2 SALT -id -e`";
        let invalid = || HtpasswdError::new("invalid argon2id hash", help);
        let parsed = PasswordHash::new(hash).map_err(|_| invalid())?;
        if parsed.salt.is_none() || parsed.hash.is_none() {
            return Err(invalid());
        }
        let params = argon2::Params::try_from(&parsed).map_err(|_| invalid())?;
        let (memory_kib, passes) = (params.m_cost(), params.t_cost());
        if memory_kib > ARGON2_MEMORY_KIB_MAX || passes > ARGON2_PASSES_MAX {
            let message = format!("argon2id hash with {memory_kib} KiB and {passes} passes");
            let help = format!(
                "at most {ARGON2_MEMORY_KIB_MAX} KiB and {ARGON2_PASSES_MAX} passes: `argon2 SALT -id -e -k 19456 -t 2`"
            );
            return Err(HtpasswdError::new(message, help));
        }
        Ok(Self::Argon2id(hash.into()))
    }

    fn verify(&self, password: &[u8]) -> bool {
        match self {
            Self::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Self::Argon2id(hash) => PasswordHash::new(hash)
                .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok()),
        }
    }
}

/// Returns the error for another kind of hash, by its name.
fn refused(hash: &str) -> HtpasswdError {
    let kind = match hash {
        _ if hash.starts_with("$apr1$") => "`$apr1$` (MD5, the default of `htpasswd`)",
        _ if hash.starts_with("{SHA}") => "`{SHA}` (SHA-1 without salt)",
        _ if hash.starts_with("{SSHA}") => "`{SSHA}` (one round of SHA-1)",
        _ if hash.starts_with("$1$") => "`$1$` (MD5)",
        _ if hash.starts_with("$5$") || hash.starts_with("$6$") => "`$5$` or `$6$` (SHA-2 crypt)",
        _ if hash.starts_with("$argon2") => "argon2i or argon2d: only argon2id is accepted",
        _ if hash.len() == 13 && !hash.contains('$') => "crypt (DES), or a password in plain text",
        _ => "a password in plain text, or an unknown hash",
    };
    HtpasswdError::new(format!("refused: {kind}"), format!("make it again: {REMEDY}"))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use argon2::Argon2;
    use argon2::password_hash::PasswordHasher as _;

    use super::{USERS_MAX, Users};

    /// `secret`, with the lowest cost.
    const BCRYPT: &str = "$2y$04$wbMLjQAjcUmlwnb2Wx41ruXoTyHd7Z5dJ9tqiW3wvTSgDhwqGjCzi";

    fn bcrypt(password: &str) -> String {
        bcrypt::hash(password, 4).expect("a hash")
    }

    #[test]
    fn verifies_each_kind_of_hash() {
        let own = bcrypt("secret");
        let params = argon2::Params::new(64, 1, 1, None).expect("least parameters");
        let argon2id = Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params)
            .hash_password_with_salt(b"secret", b"some salt")
            .expect("a hash");
        let [y, a] = ["$2y$", "$2a$"].map(|kind| own.replacen("$2b$", kind, 1));
        let text = format!("# staff\nb:{own}\ny:{y}\r\n\na:{a}\nargon:{argon2id}\n");
        let users = Users::parse(&text).expect("users");
        for name in ["b", "y", "a", "argon"] {
            assert!(users.verify(name, b"secret", 0), "{name}");
            assert!(!users.verify(name, b"Secret", 0), "{name}");
        }
        for any in 0..8 {
            assert!(!users.verify("nobody", b"secret", any));
        }
    }

    #[test]
    fn names_line_and_remedy() {
        let good = format!("a:{BCRYPT}\n");
        for (line, message) in [
            ("b:$apr1$salt$hash", "`$apr1$`"),
            ("b:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "`{SHA}`"),
            ("b:secret", "plain text"),
            ("b:rqXexS6ZhobKA", "crypt (DES)"),
            ("b:$6$salt$hash", "`$6$`"),
            ("b:$argon2i$v=19$m=64,t=1,p=1$c29tZXNhbHQ$x", "argon2i"),
            ("b:$argon2id$v=19$m=64,t=1", "invalid argon2id"),
            (
                "b:$argon2id$v=19$m=1048576,t=1,p=1$c29tZXNhbHQ$2oFTc+fa1m1pTuN6/Xd+RlRRAvbr2PLvZr0cFPZ0xGE",
                "1048576 KiB",
            ),
            ("b:$2y$04$short", "invalid bcrypt"),
            (&format!("b:{}", BCRYPT.replace("$04$", "$15$")), "cost 15"),
            (&format!("a:{BCRYPT}"), "twice"),
            ("b", "USER:HASH"),
            (":$2y$", "invalid user name"),
        ] {
            let error = Users::parse(&format!("{good}\n{line}\n")).expect_err(line);
            assert_eq!(error.line, Some(3), "{line}: {error}");
            assert!(error.message.contains(message) && !error.help.is_empty(), "{line}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        assert_eq!(Users::parse("# nobody\n").expect_err("empty").line, None);
        let mut many = String::new();
        (0..=USERS_MAX).for_each(|number| writeln!(many, "u{number}:{BCRYPT}").expect("a string"));
        assert_eq!(Users::parse(&many).expect_err("too many").line, Some(USERS_MAX + 1));
    }
}
