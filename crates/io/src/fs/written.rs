//! Files that a server writes: PID files, logs, sockets' files, and everything that is kept across a restart.
//!
//! One rule for all of them, since others may write to the folder: a name is never trusted between two calls. A file
//! is created under a new name or not at all, its permissions are set on the open file, it takes the place of another
//! by a rename, and it is removed or changed only if it is still the same one.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, OFlags};

use crate::FileIdentity;

/// Flags of every file that is opened by a name: a named pipe is no wait, and no file becomes a terminal.
const FLAGS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// Checks that [`replace`] can put a file there, and changes nothing.
///
/// # Errors
/// The folder is missing or not writable, or something that is no regular file is there. A link is replaced.
pub fn check_replaceable(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() && !found.is_symlink() => {
            return Err(Error::new(ErrorKind::AlreadyExists, "there is something that is no regular file"));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    Ok(rustix::fs::access(folder_of(path), Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Puts a file with this content and exactly these permissions in the place of whatever file or link has the name.
/// Readers see the old one or all of the new one. Returns the new one's identity.
///
/// # Errors
/// The system's; then nothing has changed.
pub fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<FileIdentity> {
    check_replaceable(path)?;
    let new = new_name(path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = file.write_all(content).and_then(|()| {
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        let identity = FileIdentity::of(&file.metadata()?);
        fs::rename(&new, path).map(|()| identity)
    });
    // A full disk may have left an empty one.
    written.inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Returns a name beside a path that no file has, and nobody foresees: process IDs repeat in containers.
fn new_name(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_owned();
    name.push(format!(".{:016x}.new", RandomState::new().hash_one(0_u8)));
    Ok(path.with_file_name(name))
}

/// Returns the folder of a file by its path.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the content and the identity of a small regular file. A link isn't followed.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if it is no regular file, or longer than `len_max`; otherwise the system's.
pub fn read_own(path: &Path, len_max: u64) -> io::Result<(Vec<u8>, FileIdentity)> {
    let flags = FLAGS | OFlags::NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > len_max {
        let why = format!("it is no regular file of at most {len_max} bytes");
        return Err(Error::new(ErrorKind::InvalidData, why));
    }
    let mut content = Vec::new();
    file.take(len_max).read_to_end(&mut content)?;
    Ok((content, FileIdentity::of(&found)))
}

/// Opens a log to append to, or a named pipe, which is an error without a reader. A new file gets `mode`, less the
/// umask, but its owner may always write to it.
///
/// A link is followed, as operators and images link logs, but only one that belongs to root or this user: another
/// user's would choose the file.
///
/// # Errors
/// [`ErrorKind::PermissionDenied`] for another user's link; otherwise the system's.
pub fn append(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).mode(mode).custom_flags(FLAGS.bits() as i32);
    // This follows no link.
    match options.clone().create_new(true).open(path) {
        Ok(file) => {
            let given = file.metadata()?.permissions().mode() & 0o777;
            if given & 0o600 != 0o600 {
                file.set_permissions(fs::Permissions::from_mode(given | 0o600))?;
            }
            return Ok(file);
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => check_link(path)?,
        Err(error) => return Err(error),
    }
    let file = options.create(true).open(path)?;
    // What was opened is what the name leads to, and no link has come in between.
    check_link(path)?;
    if FileIdentity::of(&fs::metadata(path)?) != FileIdentity::of(&file.metadata()?) {
        return Err(Error::new(ErrorKind::PermissionDenied, "it was replaced while it was opened"));
    }
    Ok(file)
}

/// Fails for a link of another user.
fn check_link(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() && ![0, rustix::process::geteuid().as_raw()].contains(&found.uid()) {
        return Err(Error::new(ErrorKind::PermissionDenied, "it is another user's symbolic link"));
    }
    Ok(())
}

/// Sets the permissions of a file that is still the same one, and never of another that has its name by now.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if another one has its name; otherwise the system's.
#[cfg(target_os = "linux")]
pub fn set_mode(path: &Path, file: FileIdentity, mode: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let named = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    if has_mode(&named.metadata()?, file, mode)? {
        return Ok(());
    }
    // Not by the path, which may lead elsewhere by now, and `fchmod` refuses a descriptor without access.
    fs::set_permissions(format!("/proc/self/fd/{}", named.as_raw_fd()), fs::Permissions::from_mode(mode))
}

/// Sets the permissions of a file that is still the same one, and never of one that a link of its name leads to.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if another one has its name; otherwise the system's.
#[cfg(not(target_os = "linux"))]
pub fn set_mode(path: &Path, file: FileIdentity, mode: u32) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Mode, RawMode, chmodat};
    if has_mode(&fs::symlink_metadata(path)?, file, mode)? {
        return Ok(());
    }
    Ok(chmodat(CWD, path, Mode::from_raw_mode(mode as RawMode), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Returns whether a file has these permissions already; fails if it is another one.
fn has_mode(found: &fs::Metadata, file: FileIdentity, mode: u32) -> io::Result<bool> {
    if FileIdentity::of(found) != file {
        return Err(Error::new(ErrorKind::AlreadyExists, "another file has replaced the socket's"));
    }
    Ok(found.permissions().mode() & 0o7777 == mode)
}
