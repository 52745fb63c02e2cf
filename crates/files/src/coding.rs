//! Content codings of precompressed files (RFC 9110 section 8.4.1).

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Brotli (RFC 7932): `NAME.br`.
    Br,
    /// Zstandard (RFC 8878): `NAME.zst`.
    Zstd,
    /// gzip (RFC 1952): `NAME.gz`.
    Gzip,
}

impl Coding {
    /// All codings by default preference: Brotli compresses web pages best, then Zstandard.
    pub const ALL: [Self; 3] = [Self::Br, Self::Zstd, Self::Gzip];

    /// Returns the registered name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Br => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// Returns the file extension, with its dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Br => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    /// Returns the coding of this name, case-insensitively. `x-gzip` is an old name of gzip (RFC 9110 section 8.4.1.3).
    pub(crate) fn from_name(name: &[u8]) -> Option<Self> {
        let is_named = |coding: &Self| name.eq_ignore_ascii_case(coding.name().as_bytes());
        let old = name.eq_ignore_ascii_case(b"x-gzip").then_some(Self::Gzip);
        Self::ALL.into_iter().find(is_named).or(old)
    }
}

/// A set of codings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codings(u8);

impl Codings {
    /// The empty set.
    pub const NONE: Self = Self(0);

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the set contains this coding.
    #[must_use]
    pub const fn has(self, coding: Coding) -> bool {
        self.0 & (1 << coding as u8) != 0
    }

    /// Adds a coding.
    pub fn add(&mut self, coding: Coding) {
        self.0 |= 1 << coding as u8;
    }
}
