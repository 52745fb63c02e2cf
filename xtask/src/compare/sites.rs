//! What is served: four sites, each of which every server is configured for as alike as it can be.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::harness::folder::Folder;
use crate::harness::trouble::{During, Outcome};

/// A site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Site {
    /// Files, with an error page, a redirect, rules on caching, a media type of its own, a field in every answer.
    Plain,
    /// A program of one page.
    Spa,
    /// Pages without their extension.
    Clean,
    /// Folders that are listed.
    List,
}

impl Site {
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Spa, Self::Clean, Self::List];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Spa => "spa",
            Self::Clean => "clean",
            Self::List => "list",
        }
    }
}

/// Files, the same below every site's root. Their contents tell them apart. (static-web-server cuts the line end off a page of its own.)
const FILES: &[(&str, &str)] = &[
    ("index.html", "<h1>index</h1>"),
    ("about.html", "<h1>about</h1>\n"),
    ("404.html", "<h1>not found</h1>"),
    ("small.txt", "0123456789abcdef\n"),
    ("empty.txt", ""),
    ("style.css", "body{}\n"),
    ("app.js", "start()\n"),
    ("module.mjs", "export {}\n"),
    ("data.json", "{}\n"),
    ("picture.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n"),
    ("photo.webp", "RIFF....WEBP"),
    ("font.woff2", "wOF2....\n"),
    ("code.wasm", "\0asm"),
    ("app.webmanifest", "{ }\n"),
    ("paper.pdf", "%PDF-1.7\n"),
    ("note.xyz", "a note\n"),
    ("what", "no extension\n"),
    ("UPPER.HTML", "<h1>upper</h1>\n"),
    ("a b.txt", "a space\n"),
    ("100%.txt", "a percent sign\n"),
    ("ü.txt", "a letter of two bytes\n"),
    ("plus+and;semi.txt", "marks\n"),
    ("assets/app.3f9c.js", "hashed()\n"),
    ("folder/index.html", "<h1>folder</h1>\n"),
    ("bare/file.txt", "in a folder without an index\n"),
    (".hidden", "hidden\n"),
    (".git/config", "[core]\n"),
    (".well-known/security.txt", "Contact: x\n"),
    ("packed.txt", "packed packed packed packed packed packed packed packed packed\n"),
    ("packed.txt.gz", "(as if in gzip)\n"),
    ("both.css", "both{} both{} both{} both{} both{} both{} both{} both{} both{}\n"),
    ("both.css.gz", "(as if in gzip, too)\n"),
    ("both.css.br", "(as if in brotli)\n"),
];

/// A time at which nothing was written by this program: Sun, 06 Nov 1994 08:49:37 GMT.
const WRITTEN_S: u64 = 784_111_777;

/// The name of a file by its content, for what may be sent.
pub(super) fn name_of(content: &[u8]) -> Option<&'static str> {
    FILES.iter().find(|(_, known)| !known.is_empty() && known.as_bytes() == content).map(|(name, _)| *name)
}

/// Writes the files and gives their root.
pub(super) fn lay_out(folder: &Folder) -> Outcome<PathBuf> {
    for (name, content) in FILES {
        let path = folder.write(&format!("root/{name}"), content.as_bytes())?;
        set_time(&path)?;
    }
    let root = folder.path().join("root");
    folder.write("outside.txt", b"outside\n")?;
    symlink("small.txt", root.join("link-in.txt")).during("making a link")?;
    symlink("../outside.txt", root.join("link-out.txt")).during("making a link")?;
    Ok(root)
}

fn set_time(path: &Path) -> Outcome<()> {
    let file = File::options().write(true).open(path).during("opening a file")?;
    file.set_modified(UNIX_EPOCH + Duration::from_secs(WRITTEN_S)).during("setting a file's time")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{FILES, name_of};

    #[test]
    fn contents_tell_files_apart() {
        let contents: BTreeSet<_> = FILES.iter().map(|(_, content)| content).collect();
        assert_eq!(contents.len(), FILES.len());
        assert_eq!((name_of(b"a note\n"), name_of(b""), name_of(b"else")), (Some("note.xyz"), None, None));
    }
}
