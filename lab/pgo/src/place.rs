//! Where everything of a profile-guided build lies: one folder among cargo's own.

use std::path::{Path, PathBuf};

/// The folder of a checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    root: PathBuf,
    folder: PathBuf,
}

impl Place {
    /// Of the checkout `root`, in the folder that cargo is told to build in.
    pub fn of(root: &Path) -> Self {
        let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        Self::within(root, &root.join(target))
    }

    /// Of the checkout `root`, built in `target`.
    pub fn within(root: &Path, target: &Path) -> Self {
        Self { root: root.to_owned(), folder: target.join("pgo") }
    }

    /// The checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where programs that trace themselves are built.
    pub fn tracing(&self) -> PathBuf {
        self.folder.join("generate")
    }

    /// Where they leave their traces.
    pub fn traces(&self) -> PathBuf {
        self.folder.join("traces")
    }

    /// Where programs are built with the profile.
    pub fn guided(&self) -> PathBuf {
        self.folder.join("use")
    }

    /// What the profile was made of.
    pub(crate) fn stamp(&self) -> PathBuf {
        self.folder.join("profile.stamp")
    }

    /// The profile with this digest. The digest is in the name, since cargo builds anew where a name has changed, not a content.
    pub(crate) fn profile(&self, digest: &str) -> PathBuf {
        self.folder.join(format!("{digest}.profdata"))
    }
}
