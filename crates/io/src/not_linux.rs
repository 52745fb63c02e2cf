//! Replacements on systems other than Linux.

/// The alarm on kqueue: each wait has its timeout, at no extra call.
pub(crate) mod alarm {
    use std::time::Duration;

    use mio::Registry;

    use crate::clock::Clock;

    /// No alarm.
    #[derive(Debug)]
    pub(crate) struct Alarm;

    impl Alarm {
        pub(crate) fn new(_: &Registry, _: mio::Token) -> Self {
            Self
        }

        pub(crate) fn note(&mut self) {}

        pub(crate) fn cover(&mut self, timeout: Option<Duration>, _: &Clock) -> Option<Duration> {
            timeout
        }
    }
}

/// Returns whether a directory's times show every change of its names. Not known here.
pub(crate) const fn dates_names(_directory: &std::fs::File) -> bool {
    false
}

/// Path resolution by the kernel: never.
pub(crate) mod kernel {
    use std::os::fd::{BorrowedFd, OwnedFd};

    use crate::fs::{Links, OpenError};

    /// Returns whether a directory is on a server: not known here.
    pub(crate) const fn is_remote(_directory: BorrowedFd<'_>) -> bool {
        false
    }

    /// Returns whether the kernel can open what is in its caches only.
    pub(crate) const fn opens_cached(_root: BorrowedFd<'_>) -> bool {
        false
    }

    /// Never called.
    pub(crate) const fn open_cached(
        _root: BorrowedFd<'_>,
        _path: &[u8],
        _links: Links,
    ) -> Result<OwnedFd, OpenError> {
        Err(OpenError::WouldBlock)
    }

    /// Returns whether the kernel resolves.
    pub(crate) const fn resolves(_root: BorrowedFd<'_>) -> bool {
        false
    }

    /// Leaves every path to the walk.
    pub(crate) const fn open(
        _root: BorrowedFd<'_>,
        _path: &[u8],
        _links: Links,
    ) -> Result<Option<OwnedFd>, OpenError> {
        Ok(None)
    }
}

/// Page mappings: there is no call that grows one in place.
pub(crate) mod pages {
    use std::io;

    /// Never constructed.
    #[derive(Debug)]
    pub(crate) enum Pages {}

    impl Pages {
        pub(crate) fn new(_: usize) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn len(&self) -> usize {
            match *self {}
        }

        pub(crate) fn resize(&mut self, _: usize) -> io::Result<()> {
            match *self {}
        }

        pub(crate) fn as_slice(&self) -> &[u8] {
            match *self {}
        }

        pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
            match *self {}
        }
    }
}

/// File watches: none.
pub(crate) mod watches {
    use std::convert::Infallible;
    use std::fs::File;

    /// The watches of one driver: none.
    #[derive(Debug, Default)]
    pub(crate) struct Watches(());

    /// A watch on an open file: never constructed.
    #[derive(Debug)]
    pub(crate) struct Watch(Infallible);

    /// Numbers of events of one inode.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Events {
        /// Writes and truncations.
        pub(crate) writes: u64,
        /// Changes of metadata.
        pub(crate) attributes: u64,
    }

    impl Watches {
        /// Returns `None`.
        pub(crate) const fn watch(&mut self, _file: &File) -> Option<Watch> {
            None
        }
    }

    impl Watch {
        /// Never called.
        pub(crate) const fn events(&self) -> Events {
            match self.0 {}
        }
    }
}
