//! Revalidates cached files without opening them.
//!
//! A `stat` of a file's name ([`Root::compare_at`](shearwater_io::fs::Root::compare_at)) says whether it still leads to the
//! cached version, but not where: nothing confines it to the root. So the file's directory is opened beneath the root
//! first, once for all its files in a period of 500 ms that begins with a look-up of the root's path, and the check counts
//! from the start of that period. Whoever moves a directory out of the root, or puts a link in its place, can at most have
//! a version sent that was beneath the root when the server read it, until the period ends, as with any change. No content
//! is ever read through the name: if anything differs, the file is opened beneath the root as if it weren't cached.
//!
//! A directory's times show whether names in it have changed ([`directories`](crate::cache::directories)), so siblings that
//! were missing aren't looked for again. Existing ones are compared by a `stat` each.
//!
//! A `stat` can't be told not to wait for the disk. It doesn't as long as the kernel has the name in its caches, from which
//! it evicts the names that were used least recently. So only a file that was checked within ten seconds (`RECENT_MS_MAX`)
//! is compared like this, and only on the usual local file systems; any other is opened, which
//! [`disk`](crate::disk) does without waiting where the system can. A worker can wait here only if memory is so short that a name was evicted
//! within ten seconds, or for a missing sibling after a change of its directory.

use crate::cache::cached_file::CachedFile;
use crate::cache::directories::NamesVersion;
use crate::cache::store::FileStore;
use crate::now::Now;

impl FileStore {
    /// Returns whether a cached file is fresh, or found unchanged now.
    pub(super) fn is_present(&mut self, cached: &CachedFile, name: &mut Vec<u8>, now: Now) -> bool {
        now.is_fresh(cached.checked_ms.get()) || self.is_unchanged(cached, name, now)
    }

    /// Returns whether a cached file and its siblings are unchanged, by their names' metadata. Updates the time of the
    /// check if so.
    ///
    /// Takes one `stat`, and one for each sibling. A first check, or one after a change of the directory, also looks for
    /// the siblings that were missing.
    fn is_unchanged(&mut self, cached: &CachedFile, name: &mut Vec<u8>, now: Now) -> bool {
        let Some(names) = self.leads_to(cached, name, now) else { return false };
        let (siblings, codings) = (cached.siblings, &self.settings.codings);
        let are_names_same = cached.names.get() == Some(names);
        if !siblings.are_unchanged(self.disk.root(), codings, name, are_names_same) {
            return false;
        }
        cached.names.set(Some(names));
        cached.checked_ms.set(self.root_checked(now).ms);
        true
    }

    /// Returns the version of the directory's names if a name still leads to this version of a file: see `directories`.
    /// `None` also if a `stat` might have to wait for the disk.
    pub(super) fn leads_to(&mut self, cached: &CachedFile, name: &[u8], now: Now) -> Option<NamesVersion> {
        let may_stat = self.disk.access().has_cached_meta() && now.is_recent(cached.checked_ms.get());
        if !cached.is_settled || !may_stat {
            return None;
        }
        let period = self.root_checked(now);
        let names = self.directories.names_around(self.disk.access(), name, period)?;
        let is_same = self.disk.root().compare_at(name).is_ok_and(|meta| meta == cached.meta);
        is_same.then_some(names)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::io;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use testkit::TestFolder;

    use crate::cache::tests::TestStore;
    use crate::limits::RECENT_MS_MAX;

    /// Milliseconds of a period.
    const PERIOD_MS: u64 = 500;

    /// A change of the folder.
    type Change = fn(&TestFolder) -> io::Result<()>;

    const GONE: [(&str, Change); 9] = [
        ("rewritten", |folder| fs::write(folder.at("root/d/f"), "new")),
        ("replaced by another", |folder| {
            fs::write(folder.at("root/d/new"), "d/f")?;
            fs::rename(folder.at("root/d/new"), folder.at("root/d/f"))
        }),
        ("removed", |folder| fs::remove_file(folder.at("root/d/f"))),
        ("made private", |folder| fs::set_permissions(folder.at("root/d/f"), Permissions::from_mode(0o600))),
        ("moved and linked to", |folder| {
            fs::rename(folder.at("root/d/f"), folder.at("root/d/g"))?;
            symlink("g", folder.at("root/d/f"))
        }),
        ("moved out of the root and linked to", |folder| {
            fs::rename(folder.at("root/d/f"), folder.at("outside/f"))?;
            symlink("../../outside/f", folder.at("root/d/f"))
        }),
        ("its folder removed", |folder| fs::remove_dir_all(folder.at("root/d"))),
        ("its folder moved out of the root", |folder| {
            fs::rename(folder.at("root/d"), folder.at("outside/d"))
        }),
        ("its folder moved out of the root and linked to", |folder| {
            fs::rename(folder.at("root/d"), folder.at("outside/d"))?;
            symlink("../outside/d", folder.at("root/d"))
        }),
    ];

    #[test]
    fn a_changed_file_is_not_sent_after_its_period() {
        for (what, change) in GONE {
            let mut test = TestStore::new(&[]);
            for _ in 0..3 {
                test.pass(PERIOD_MS);
                assert!(test.is_present(), "unchanged, before it was {what}");
            }
            test.pass(PERIOD_MS - 1);
            change(&test.folder).expect("it can be done");
            assert!(test.is_present(), "{what} in the period of the last check");
            test.pass(1);
            assert!(!test.is_present(), "{what}");
        }
    }

    /// Even if the directory was opened before the change, and the file is checked after it.
    #[test]
    fn a_file_out_of_the_root_is_not_sent_after_the_period_of_its_directory() {
        let (what, change) = GONE[8];
        let mut test = TestStore::new(&["d/g"]);
        test.pass(PERIOD_MS);
        let period = test.now;
        assert!(test.store.directories.names_around(test.store.disk.access(), b"d/g", period).is_some());
        change(&test.folder).expect("it can be done");
        test.pass(PERIOD_MS - 1);
        assert!(test.is_present(), "{what}: it was beneath the root when the period began");
        test.pass(1);
        assert!(!test.is_present(), "{what}");
    }

    #[test]
    fn a_link_inside_the_root_leads_to_the_cached_file() {
        let mut test = TestStore::new(&[]);
        fs::rename(test.folder.at("root/d"), test.folder.at("root/e")).expect("moved");
        symlink("e", test.folder.at("root/d")).expect("a link");
        test.pass(PERIOD_MS);
        assert!(test.is_present());
    }

    /// The kernel's caches can have lost its name by then.
    #[test]
    fn a_file_that_was_not_checked_recently_is_opened() {
        let mut test = TestStore::new(&[]);
        test.pass(RECENT_MS_MAX - 1);
        assert!(test.is_present());
        test.pass(RECENT_MS_MAX);
        assert!(!test.is_present());
    }

    #[test]
    fn a_recently_changed_file_is_read_again_each_period() {
        let mut test = TestStore::new(&[]);
        test.now.unix_seconds -= 10;
        test.store.evict(b"d/f");
        test.read();
        test.pass(PERIOD_MS);
        assert!(!test.is_present());
    }

    #[test]
    fn changed_siblings_are_looked_for_again() {
        let changes: [(&str, &[&str], Change); 6] = [
            ("added", &[], |folder| fs::write(folder.at("root/d/f.gz"), "packed")),
            ("added to another", &["d/f.br"], |folder| fs::write(folder.at("root/d/f.gz"), "packed")),
            ("removed", &["d/f.br", "d/f.gz"], |folder| fs::remove_file(folder.at("root/d/f.gz"))),
            ("rewritten", &["d/f.gz"], |folder| fs::write(folder.at("root/d/f.gz"), "other")),
            ("moved out of the root and linked to", &["d/f.gz"], |folder| {
                fs::rename(folder.at("root/d/f.gz"), folder.at("outside/f.gz"))?;
                symlink("../../outside/f.gz", folder.at("root/d/f.gz"))
            }),
            ("a link that leads nowhere", &[], |folder| symlink("none", folder.at("root/d/f.gz"))),
        ];
        for (what, files, change) in changes {
            let mut test = TestStore::new(files);
            for _ in 0..3 {
                test.pass(PERIOD_MS);
                assert!(test.is_present(), "before a sibling is {what}");
            }
            change(&test.folder).expect("it can be done");
            test.pass(PERIOD_MS);
            assert!(!test.is_present(), "{what}");
        }
    }

    /// A file beside it appears: its siblings are looked for once more, and nothing has changed.
    #[test]
    fn other_names_in_the_directory_change_nothing() {
        let mut test = TestStore::new(&["d/f.gz"]);
        for number in 0..3 {
            test.folder.file(format!("root/d/{number}"), "new");
            test.pass(PERIOD_MS);
            assert!(test.is_present());
        }
    }
}
