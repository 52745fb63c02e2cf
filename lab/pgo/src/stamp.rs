//! What a profile was made of: it is of use only to the same compiler, for the same sources, on the same system.

use std::path::Path;

use crate::sources;
use crate::toolchain::Toolchain;

/// A stamp with more bytes is none.
pub(crate) const STAMP_BYTES_MAX: u64 = 4096;

/// What programs are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The compiler, as it names itself.
    pub compiler: String,
    /// The system that it compiles for.
    pub host: String,
    /// Digest of the sources.
    pub sources: String,
}

impl Stamp {
    /// Of the checkout as it is now.
    ///
    /// # Errors
    /// A source can't be read.
    pub fn now(root: &Path, toolchain: &Toolchain) -> Result<Self, String> {
        let (compiler, host) = (toolchain.compiler.clone(), toolchain.host.clone());
        Ok(Self { compiler, host, sources: sources::digest(root)? })
    }

    /// In what the profile's stamp, `self`, differs from `now`: each with what it was and what it is. Empty: in nothing.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (what, was, is) in [
            ("the compiler", &self.compiler, &now.compiler),
            ("the system", &self.host, &now.host),
            ("the sources", &self.sources, &now.sources),
        ] {
            if was != is {
                found.push(format!("{what}: it was made with {was}, now there is {is}"));
            }
        }
        found
    }

    /// As it lies beside the profile, with the profile's own digest.
    pub(crate) fn text(&self, profile: &str) -> String {
        let Self { compiler, host, sources } = self;
        format!("profile = {profile}\ncompiler = {compiler}\nhost = {host}\nsources = {sources}\n")
    }

    /// Reads that text: the stamp and the profile's digest. None: it says something else.
    pub(crate) fn parse(text: &str) -> Option<(Self, String)> {
        let mut lines = text.lines();
        let mut value = |name: &str| Some(lines.next()?.strip_prefix(name)?.strip_prefix(" = ")?.to_owned());
        let profile = value("profile")?;
        let stamp = Self { compiler: value("compiler")?, host: value("host")?, sources: value("sources")? };
        lines.next().is_none().then_some((stamp, profile))
    }
}

#[cfg(test)]
mod tests {
    use super::Stamp;

    fn stamp() -> Stamp {
        Stamp { compiler: "rustc 1.2.3".to_owned(), host: "here".to_owned(), sources: "0123".to_owned() }
    }

    #[test]
    fn what_is_written_is_read_back_and_nothing_else_is() {
        let text = stamp().text("feed");
        assert_eq!(Stamp::parse(&text), Some((stamp(), "feed".to_owned())));
        for cut in 0..text.len() - 1 {
            let read = Stamp::parse(&text[..cut]).map(|(stamp, _)| stamp);
            assert_ne!(read, Some(stamp()), "cut at {cut}");
        }
        assert_eq!(Stamp::parse(&(text + "more = 1\n")), None);
    }

    #[test]
    fn each_difference_is_told_with_both_sides() {
        assert_eq!(stamp().differences(&stamp()), Vec::<String>::new());
        let other = Stamp { compiler: "rustc 1.2.4".to_owned(), sources: "4567".to_owned(), ..stamp() };
        let told = stamp().differences(&other);
        assert_eq!(
            told,
            [
                "the compiler: it was made with rustc 1.2.3, now there is rustc 1.2.4",
                "the sources: it was made with 0123, now there is 4567",
            ]
        );
    }
}
