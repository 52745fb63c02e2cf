//! The drivers that are there: what is to hold on each is tried on each.

use std::sync::OnceLock;

use crate::folder::Temporary;
use crate::process::{Serving, program};

/// Their names as `--driver` and `server.driver` take them; at least one.
pub(crate) fn drivers() -> &'static [&'static str] {
    static FOUND: OnceLock<Vec<&str>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let folder = Temporary::new();
        let is_there = |name: &&str| {
            let arguments = ["--listen", "127.0.0.1:0", "--workers", "1", "--driver", name];
            match Serving::try_start(&mut program(folder.path(), &arguments)) {
                Ok(_) => true,
                Err((code, said)) => {
                    assert!(code == Some(2) && said.contains("isn't there"), "{name}: {said}");
                    false
                }
            }
        };
        let found: Vec<&str> = ["epoll", "kqueue", "uring"].into_iter().filter(is_there).collect();
        assert!(!found.is_empty(), "there is no driver at all");
        found
    })
}
