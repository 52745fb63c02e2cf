//! Upgrades by the command, and reloads meanwhile.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{Controlled, output, site};
use crate::process::{drivers, has_proc, run};

#[test]
fn an_upgrade_refuses_no_reload() {
    for driver in drivers() {
        let mut controlled = Controlled::start(driver);
        let is_over = AtomicBool::new(false);
        for _ in 0..3 {
            is_over.store(false, Relaxed);
            let new = std::thread::scope(|scope| {
                let reloads = scope.spawn(|| {
                    let mut outcomes = vec![controlled.reload()];
                    while !is_over.load(Relaxed) {
                        outcomes.push(controlled.reload());
                    }
                    outcomes
                });
                let (code, stdout, stderr) = run(&controlled.folder, &["upgrade", "pid"]);
                let new = controlled.written();
                is_over.store(true, Relaxed);
                assert_eq!((code, stdout), (0, format!("process {new} serves now\n")), "{stderr}");
                for outcome in reloads.join().expect("no panic") {
                    assert_eq!(outcome, (0, controlled.reloaded("one"), String::new()));
                }
                new
            });
            assert_ne!(new, controlled.server.pid());
            controlled.server.succeeded_by(new);
            assert_eq!(controlled.server.connect().get("/f.txt").text(), "one");
        }
    }
}

/// Each is one that began after its request: the second one may be an upgrade of the new process.
#[test]
fn two_upgrades_at_once_both_succeed() {
    for driver in drivers() {
        let mut controlled = Controlled::start(driver);
        let upgrades = [(); 2].map(|()| controlled.spawn("upgrade"));
        for upgrade in upgrades {
            let (code, stdout, stderr) = output(upgrade);
            assert!(code == 0 && stdout.ends_with(" serves now\n"), "{stdout}{stderr}");
        }
        controlled.server.succeeded_by(controlled.written());
        assert_eq!(controlled.reload(), (0, controlled.reloaded("one"), String::new()));
        let client = &mut controlled.server.connect();
        assert_eq!(client.get("/f.txt").text(), "one");
    }
}

/// The new version waits for the test before it starts.
#[test]
fn a_reload_during_an_upgrade_is_one_of_the_new_process() {
    if !has_proc() {
        return;
    }
    for driver in drivers() {
        let controlled = Controlled::start(driver);
        mknodat(CWD, controlled.folder.at("gate"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("a pipe");
        let real = env!("CARGO_BIN_EXE_shearwater");
        controlled.folder.file("new", format!("#!/bin/sh\ncat gate > began\nexec {real} \"$@\"\n"));
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(controlled.folder.at("new"), executable).expect("set");
        fs::rename(controlled.folder.at("new"), controlled.folder.at("shearwater")).expect("renamed");

        let upgrade = controlled.spawn("upgrade");
        // Opened once the new version reads from it.
        let gate = fs::File::options().write(true).open(controlled.folder.at("gate")).expect("a pipe");
        controlled.folder.file("site.toml", site("two"));
        let reload = controlled.spawn("reload");
        controlled.until_threads("reload", 1);
        drop(gate);

        let (code, stdout, stderr) = output(upgrade);
        let new = controlled.written();
        assert_eq!((code, stdout), (0, format!("process {new} serves now\n")), "{stderr}");
        assert_eq!(output(reload), (0, controlled.reloaded("two"), String::new()));
        let mut controlled = controlled;
        controlled.server.succeeded_by(new);
        controlled.until_logged(" reloaded ");
    }
}

#[test]
fn a_refused_upgrade_prints_the_reason() {
    for driver in drivers() {
        let mut controlled = Controlled::start(driver);
        let pid = controlled.server.pid();
        controlled.folder.file("site.toml", "[server]\nwokers = 1\n");
        let (code, stdout, stderr) = run(&controlled.folder, &["upgrade", "pid"]);
        let expected = "error: the new process ended before it served (exit status: 2)\n\
                        error: not upgraded: nothing has changed\n\
                        help: the server's log has the messages of the new process\n";
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (1, "", expected));
        assert_eq!(controlled.written(), pid);
        controlled.until_logged("not upgraded: nothing has changed");
        controlled.folder.file("site.toml", site("two"));
        assert_eq!(controlled.reload(), (0, controlled.reloaded("two"), String::new()));
        controlled.server.stop();
    }
}
