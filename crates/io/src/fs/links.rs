//! Policy for symbolic links: [`Links`].

/// Policy for symbolic links beneath a root. The path of the root itself may always have links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Links {
    /// Links whose target is beneath the root, absolute links too. Others fail with [`OpenError::Escapes`](super::OpenError::Escapes).
    ///
    /// A link may pass through directories outside, as every absolute link does. It is inside again when it reaches the root directory, which is
    /// recognised by device and inode and not by its path. So bind mounts, links to the root and renamed parents work.
    #[default]
    Inside,
    /// None. A path with a link in it fails with [`OpenError::Link`](super::OpenError::Link).
    Never,
    /// All links, wherever they lead. Only for trees whose authors may publish any file that the server can read.
    Follow,
}
