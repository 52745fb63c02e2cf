//! The profile of a checkout: found, judged, kept and removed.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::place::Place;
use crate::stamp::{STAMP_BYTES_MAX, Stamp};

/// A profile that is what its stamp says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    path: PathBuf,
    digest: String,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// No profile.
    Missing,
    /// One that is of no use, and why: a sentence each.
    Stale(Vec<String>),
    /// One that was made of these sources, by this compiler.
    Fresh(Profile),
}

/// Looks for the profile of the checkout, which is `now` made of this.
///
/// # Errors
/// A file that is there can't be read.
pub fn find(place: &Place, now: &Stamp) -> Result<Found, String> {
    let Some(text) = read_stamp(&place.stamp())? else { return Ok(Found::Missing) };
    let Some((stamp, digest)) = Stamp::parse(&text) else {
        return Ok(Found::Stale(vec!["its stamp can't be read".to_owned()]));
    };
    let differences = stamp.differences(now);
    if !differences.is_empty() {
        return Ok(Found::Stale(differences));
    }
    let path = place.profile(&digest);
    match fs::read(&path) {
        Ok(bytes) if of(&bytes) == digest => Ok(Found::Fresh(Profile { path, digest })),
        Ok(_) => Ok(Found::Stale(vec!["it was changed after it had been made".to_owned()])),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Missing),
        Err(error) => Err(told(&path, &error)),
    }
}

/// Takes what was merged into `merged` as the profile in the place of any earlier one.
///
/// # Errors
/// What the file system refuses.
pub fn keep(place: &Place, merged: &Path, stamp: &Stamp) -> Result<Profile, String> {
    let digest = of(&fs::read(merged).map_err(|error| told(merged, &error))?);
    let path = place.profile(&digest);
    fs::rename(merged, &path).map_err(|error| told(&path, &error))?;
    fs::write(place.stamp(), stamp.text(&digest)).map_err(|error| told(&place.stamp(), &error))?;
    Ok(Profile { path, digest })
}

/// Removes the profile, its traces and all that was built with it, so that one that fails to be made leaves none behind.
///
/// # Errors
/// What the file system refuses.
pub fn remove(place: &Place) -> Result<(), String> {
    let digest = read_stamp(&place.stamp())?.and_then(|text| Stamp::parse(&text)).map(|(_, digest)| digest);
    let files = digest.map(|digest| place.profile(&digest)).into_iter().chain([place.stamp()]);
    for path in files {
        unless_missing(&path, fs::remove_file(&path))?;
    }
    for path in [place.traces(), place.guided()] {
        unless_missing(&path, fs::remove_dir_all(&path))?;
    }
    Ok(())
}

impl Profile {
    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "profile {}", self.digest)
    }
}

fn of(bytes: &[u8]) -> String {
    let mut digest = Digest::new();
    digest.add(bytes);
    digest.text()
}

fn read_stamp(path: &Path) -> Result<Option<String>, String> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(told(path, &error)),
    };
    let mut bytes = Vec::new();
    file.take(STAMP_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| told(path, &error))?;
    if bytes.len() as u64 > STAMP_BYTES_MAX {
        bytes.clear();
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn unless_missing(path: &Path, done: io::Result<()>) -> Result<(), String> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(told(path, &error)),
        _ => Ok(()),
    }
}

fn told(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
