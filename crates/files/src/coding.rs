//! Content codings that a file may lie ready in (RFC 9110 section 8.4.1).

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Brotli (RFC 7932): `NAME.br`.
    Br,
    /// Zstandard (RFC 8878): `NAME.zst`.
    Zstd,
    /// The format of gzip (RFC 1952): `NAME.gz`.
    Gzip,
}

impl Coding {
    /// All of them, in the usual order of preference: Brotli packs web pages tightest, then Zstandard.
    pub const ALL: [Self; 3] = [Self::Br, Self::Zstd, Self::Gzip];

    /// As the registry has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Br => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// What the name of a file in this coding ends with.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Br => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    /// The coding of this name, in any case. `x-gzip` is an old name of gzip (RFC 9110 section 8.4.1.3).
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
    /// None.
    pub const NONE: Self = Self(0);

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it has this one.
    #[must_use]
    pub const fn has(self, coding: Coding) -> bool {
        self.0 & (1 << coding as u8) != 0
    }

    /// Adds one.
    pub fn add(&mut self, coding: Coding) {
        self.0 |= 1 << coding as u8;
    }
}
