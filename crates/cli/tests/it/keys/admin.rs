//! `[admin]`: the address of the admin listener, and who may reach it.

use super::{SITE, folder, on_each_driver};
use crate::admin::{connect, value};
use crate::process::{drivers, run};

#[test]
pub(crate) fn listen() {
    on_each_driver("[admin]\nlisten = \"127.0.0.1:0\"\n", |_, server| {
        assert_eq!(server.connect().get("/f.txt").text(), "content");
        assert_eq!(connect(&server).get("/ready").text(), "serving\n");
        assert_eq!(value(&server, "shearwater_connections_accepted_total"), 1);
        // The server itself has no such paths.
        assert_eq!(server.connect().get("/metrics").status, 404);
    });
    on_each_driver("", |_, server| assert_eq!(server.line("admin"), None));
}

#[test]
pub(crate) fn remote() {
    on_each_driver("[admin]\nlisten = \"0.0.0.0:0\"\nremote = true\n", |_, server| {
        assert!(server.line("admin").expect("its address").ends_with("(all addresses of this machine)"));
    });
    for driver in drivers() {
        let folder = folder(&format!("[admin]\nlisten = \"0.0.0.0:0\"\n{SITE}"));
        let (code, _, stderr) = run(&folder, &["site.toml", "--driver", driver]);
        let expected = "error: other machines can reach this address\n --> site.toml:2:1\n";
        assert!(code == 2 && stderr.starts_with(expected) && stderr.contains("remote = true"), "{stderr}");
    }
}
