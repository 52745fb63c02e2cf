//! Builds nginx without what the lab doesn't need, in a folder, and copies the program to a file: `build-nginx FOLDER FILE`.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(folder), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: build-nginx FOLDER FILE"));
    };
    fs::create_dir_all(&folder)?;
    // nginx builds in a folder of its own source.
    let (_source, built) = nginx_src::build(folder.canonicalize()?)?;
    fs::create_dir_all(file.parent().unwrap_or(&file))?;
    fs::copy(built.join("nginx"), file).map(|_| ())
}
