//! `rate_limit` and `basic_auth` of `[[site]]`, whose effects have a memory.

use testkit::TestClient;

use super::{SITE, folder, on_each_driver};
use crate::process::{Server, run};

/// `secret`.
const SECRET: &str = "$2y$04$2Qg2mhOfIMFWvOWGiAwGjukuZFcTY2fz5K3PIPdRN4LznV4cOBmTC";

fn statuses(client: &mut TestClient, targets: &[&str]) -> Vec<u16> {
    targets.iter().map(|target| client.request("GET", target, &[]).status).collect()
}

#[test]
pub(crate) fn rate_limit() {
    let keys = "rate_limit = { requests = 1, per = \"24h\", burst = 3 }\n\
                [[site.route]]\npath = \"/f.txt\"\nheaders = { set = { X = \"1\" } }\n\
                [[site.route]]\npath = \"/own\"\nrate_limit = { requests = 1, per = \"24h\" }\n\
                [[site.route]]\npath = \"/free\"\nrate_limit = false\n";
    for workers in [1, 2] {
        on_each_driver_with(workers, keys, |server| {
            let (mut client, mut other) = (server.connect(), server.connect());
            assert_eq!(
                statuses(&mut client, &["/f.txt", "/", "/f.txt", "/", "/f.txt"]),
                [200, 200, 200, 429, 429]
            );
            let limited = other.request("GET", "/f.txt", &[]);
            assert_eq!((limited.status, limited.field("Retry-After")), (429, Some("86400")));
            assert_eq!(limited.field("X"), Some("1"));
            assert_eq!(statuses(&mut other, &["/own", "/own", "/free", "/free"]), [404, 429, 404, 404]);
        });
    }
}

fn on_each_driver_with(workers: u32, keys: &str, check: impl Fn(&Server)) {
    for driver in crate::process::drivers() {
        let folder = folder(&format!("[server]\nworkers = {workers}\n{SITE}{keys}"));
        check(&Server::start(&folder, &["site.toml", "--driver", driver]));
    }
}

#[test]
fn a_refused_request_with_a_body_is_not_received() {
    on_each_driver("", |folder, _| {
        folder.file("users", format!("ann:{SECRET}\n"));
        folder.file("guarded.toml", format!("{SITE}basic_auth = \"users\"\n"));
        let server = Server::start(folder, &["guarded.toml"]);
        let head = "POST /f.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n";
        for expect in ["", "Expect: 100-continue\r\n"] {
            let mut client = server.connect();
            let response = client.send(format!("{head}{expect}\r\n")).response("POST");
            assert_eq!((response.status, response.field("Connection")), (401, Some("close")));
        }
        // With a password it is as without a guard.
        let authorization = "Authorization: Basic YW5uOnNlY3JldA==\r\n";
        let response = server
            .connect()
            .send(format!("{head}{authorization}Expect: 100-continue\r\n\r\n"))
            .response("POST");
        assert_eq!((response.status, response.field("Allow")), (405, Some("GET, HEAD, OPTIONS")));
    });
}

#[test]
fn check_reports_guards_with_their_places() {
    let folder = folder(&format!(
        "{SITE}allow = [\"10.0.0.0/8\", \"10.0.0.1/8\"]\nbasic_auth = \"users\"\ncors = {{ origins = [\"example.org\"] }}\n\
         [[site.route]]\npath = \"/a\"\nbasic_auth = \"none\"\n"
    ));
    folder.file("users", format!("ann:{SECRET}\n\nbob:{{SHA}}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n"));
    let (code, _, stderr) = run(&folder, &["check", "site.toml"]);
    assert_eq!(code, 2, "{stderr}");
    for part in [
        "error: network has bits after its prefix",
        "site[0].allow[1]",
        "users:3: refused: `{SHA}`",
        "htpasswd -B",
        "invalid origin \"example.org\"",
        "none: No such file",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}
