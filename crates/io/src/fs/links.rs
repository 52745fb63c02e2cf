//! Which symbolic links are followed: [`Links`].

/// What is done about symbolic links beneath a root. The way to the root itself may have links in either case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Links {
    /// Those are followed that stay beneath the root.
    #[default]
    Beneath,
    /// None is: a path with a link in it is refused as [`OpenError::Link`](super::OpenError::Link).
    Deny,
}
