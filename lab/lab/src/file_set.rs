//! A large set of files, for requests that few caches hold: name and content of each follow from its number, so that the
//! client asks for them in random order and checks every byte.

use serde::{Deserialize, Serialize};

use crate::client::{CheckedRequest, ExpectedResponse};

/// Folders that the files are spread over.
const FOLDERS: u32 = 500;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileSet {
    /// Target of the folder that holds all of them.
    pub(crate) path: String,
    pub(crate) count: u32,
    /// Length of each file.
    pub(crate) bytes: u32,
}

/// The content of a file or a body: a line, repeated up to a length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileContent {
    line: Vec<u8>,
    pub(crate) bytes: u64,
}

impl FileSet {
    /// Returns the target of a file. Neighbouring numbers are in different folders, under names without an order.
    pub(crate) fn target(&self, number: u32) -> String {
        let name = fastrand::Rng::with_seed(number.into()).u64(..);
        format!("{}/d{:03}/{name:016x}.bin", self.path, number % FOLDERS)
    }

    pub(crate) fn content(&self, number: u32) -> FileContent {
        FileContent { line: (self.target(number) + "\n").into_bytes(), bytes: self.bytes.into() }
    }

    /// Returns the requests for all files, in the order of their numbers.
    pub(crate) fn requests(&self) -> Vec<CheckedRequest> {
        let request = |number| CheckedRequest {
            request: format!("GET {} HTTP/1.1\r\nHost: lab\r\n\r\n", self.target(number)),
            expected: ExpectedResponse::with_body(self.content(number)),
        };
        (0..self.count).map(request).collect()
    }
}

impl FileContent {
    pub(crate) fn of(body: &[u8]) -> Self {
        Self { line: body.to_vec(), bytes: body.len() as u64 }
    }

    pub(crate) fn whole(&self) -> Vec<u8> {
        self.line.iter().copied().cycle().take(self.bytes as usize).collect()
    }

    /// Returns true if these bytes are the content's from `offset`.
    pub(crate) fn has_at(&self, offset: u64, bytes: &[u8]) -> bool {
        let line = &*self.line;
        let rest = &line[offset as usize % line.len().max(1)..];
        let (first, others) = bytes.split_at(rest.len().min(bytes.len()));
        rest.starts_with(first) && others.chunks(line.len().max(1)).all(|piece| line.starts_with(piece))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn set() -> FileSet {
        FileSet { path: "/tail".to_owned(), count: 50_000, bytes: 4_096 }
    }

    #[test]
    fn files_differ_in_name_and_content_and_fill_all_folders() {
        let targets: BTreeSet<String> = (0..set().count).map(|number| set().target(number)).collect();
        assert_eq!(targets.len(), 50_000);
        let folders: BTreeSet<&str> = targets.iter().filter_map(|target| target.split('/').nth(2)).collect();
        assert_eq!(folders.len(), 500);
        let whole = set().content(7).whole();
        assert_eq!(whole.len(), 4_096);
        assert!(whole.starts_with(set().target(7).as_bytes()) && !set().content(8).has_at(0, &whole));
    }

    #[test]
    fn content_is_checked_at_every_offset_and_in_every_part() {
        let content = FileContent { line: b"abcde\n".to_vec(), bytes: 20 };
        let whole = content.whole();
        for start in 0..20 {
            for end in start..=20 {
                assert!(content.has_at(start as u64, &whole[start..end]), "{start}..{end}");
            }
            let mut wrong = whole.clone();
            wrong[start] = b'x';
            assert!(!content.has_at(0, &wrong), "{start}");
            assert!(!content.has_at(start as u64 + 1, &whole[start..]), "{start}: shifted by one");
        }
    }
}
