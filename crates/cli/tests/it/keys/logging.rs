//! `[logging]`: messages on standard error.

use rustix::process::Signal;

use super::on_each_driver;

#[test]
pub(super) fn level() {
    for (level, says_what_it_does) in
        [("off", false), ("error", false), ("warn", false), ("info", true), ("debug", true)]
    {
        on_each_driver(&format!("[logging]\nlevel = \"{level}\"\n"), |_, mut serving| {
            serving.signal(Signal::USR1);
            if level != "off" {
                assert!(serving.hear().starts_with("shearwater: so far 0 requests"), "{level}");
            }
            serving.signal(Signal::TERM);
            let (code, _, stderr) = serving.end();
            assert_eq!(code, Some(0));
            let says = |what: &str| stderr.contains(what);
            assert_eq!(
                says("draining: responding to received requests"),
                says_what_it_does,
                "{level}: {stderr}"
            );
            assert_eq!(says("in all 0 requests"), says_what_it_does, "{level}: {stderr}");
            assert_eq!(says("worker 0 has ended"), level == "debug", "{level}: {stderr}");
            assert_eq!(stderr.is_empty(), !says_what_it_does, "{level}: {stderr}");
        });
    }
}

#[test]
fn logs_warnings_from_their_level_on() {
    for (level, is_said) in [("error", false), ("warn", true)] {
        let settings = format!(
            "[server]\nworkers = 1\n[performance]\nmax_connections = 1\n[logging]\nlevel = \"{level}\"\n"
        );
        on_each_driver(&settings, |_, mut serving| {
            let mut first = serving.connect();
            assert_eq!(first.request("GET", "/f.txt", &[]).status, 200);
            let mut second = serving.connect();
            second.ask("GET", "/f.txt", &[]);
            let mut said = String::new();
            while !said.contains("; limits reached: connections_max 1") {
                serving.signal(Signal::USR1);
                said.push_str(&serving.hear());
            }
            drop(first);
            assert_eq!(second.response("GET").status, 200);
            serving.signal(Signal::TERM);
            said.push_str(&serving.end().2);
            assert_eq!(said.contains("accepts no connections for now"), is_said, "{level}: {said}");
        });
    }
}
