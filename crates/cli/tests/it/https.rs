//! HTTPS of the program, on each driver: one case for each behaviour. `SHEARWATER_TEST_TLS=1` runs the rest of the suites over TLS.

use std::net::TcpStream;
use std::path::PathBuf;

use testkit::http2::Http2Client;
use testkit::tls::{ClientTls, ClientTlsOptions};
use testkit::{Client, Stream, TIMEOUT, TestClient, TestFolder};

use crate::authority::{Authority, Issued};
use crate::process::{Server, drivers, program, run};

/// More bytes than the sockets between both hold.
const LARGE_BYTES: usize = 12 * 1024 * 1024;

/// A server of `site.toml` with the pair `a.pem` and `a.key`.
struct Site {
    folder: TestFolder,
    authority: Authority,
    issued: Issued,
    server: Server,
}

impl Site {
    /// Serves the folder `www` with keys of the site, after other tables.
    fn start(driver: &str, tables: &str, keys: &str) -> Self {
        let (folder, authority) = (TestFolder::new(), Authority::new("Test Authority"));
        let issued = authority.issue(&["localhost"]);
        issued.write(&folder, "a");
        folder.file("clients.pem", &authority.pem);
        folder
            .file("www/index.html", "index")
            .file("www/f.txt", "content")
            .file("www/404.html", "nothing here");
        folder.file("www/large.bin", large());
        folder.file("site.toml", config(tables, keys));
        let arguments = ["site.toml", "--driver", driver, "--pid-file", "pid", "--workers", "2"];
        let mut command = program(&folder, &arguments);
        command.env_remove("RUNTIME_DIRECTORY").env_remove("XDG_RUNTIME_DIR");
        let server = Server::of(&mut command);
        Self { folder, authority, issued, server }
    }

    /// Returns settings of a client that trusts the authority.
    fn tls(&self) -> ClientTls {
        self.tls_with(&ClientTlsOptions::default())
    }

    fn tls_with(&self, options: &ClientTlsOptions<'_>) -> ClientTls {
        let options = ClientTlsOptions { authority: Some(self.authority.pem.as_bytes()), ..options.clone() };
        ClientTls::with("localhost", &options).expect("usable settings")
    }

    fn connect(&self) -> TestClient {
        self.connect_by(&self.tls())
    }

    fn connect_by(&self, tls: &ClientTls) -> TestClient {
        TestClient::connect_by_tls(self.server.address(), tls)
    }

    /// Returns the error of a request on a new connection.
    fn refusal(&self, tls: &ClientTls) -> String {
        let mut client: Client<Stream> =
            Client::connect_by_tls(self.server.address(), tls).expect("it listens");
        client.get("/f.txt").expect_err("the handshake was refused").to_string()
    }

    fn reload(&self) -> (i32, String, String) {
        run(&self.folder, &["reload", "pid"])
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.at(name)
    }
}

fn config(tables: &str, keys: &str) -> String {
    let tls = if keys.contains("tls = ") { "" } else { "tls = { cert = \"a.pem\", key = \"a.key\" }\n" };
    format!(
        "{tables}[[listen]]\naddress = \"127.0.0.1:0\"\ntls = true\n[[site]]\nroot = \"www\"\nerror_pages = {{ 404 = \"/404.html\" }}\n{tls}{keys}"
    )
}

fn large() -> Vec<u8> {
    (0..LARGE_BYTES).map(|at| (at / 251) as u8 ^ at as u8).collect()
}

fn on_each_driver(tables: &str, keys: &str, check: impl Fn(Site)) {
    for driver in drivers() {
        println!("{driver}: {tables}{keys}");
        check(Site::start(driver, tables, keys));
    }
}

#[test]
fn serves_files_of_all_lengths() {
    on_each_driver("", "", |site| {
        let mut client = site.connect();
        assert_eq!(client.stream().protocol().as_deref(), Some("http/1.1"));
        assert_eq!(client.stream().certificate(), Some(site.issued.der()));
        assert_eq!(client.get("/f.txt").text(), "content");
        let whole = client.get("/large.bin");
        assert!(whole.body == large(), "{} bytes", whole.body.len());
        assert_eq!(client.get("/").text(), "index");
    });
}

#[test]
fn serves_ranges_and_conditional_requests() {
    on_each_driver("", "", |site| {
        let mut client = site.connect();
        let part = client.request("GET", "/large.bin", &["Range: bytes=5000000-5099999"]);
        assert_eq!((part.status, part.field("Content-Range")), (206, Some("bytes 5000000-5099999/12582912")));
        assert!(part.body == large()[5_000_000..5_100_000]);
        let parts = client.request("GET", "/f.txt", &["Range: bytes=0-1,3-4"]);
        assert!(parts.status == 206 && parts.text().contains("\r\n\r\nco\r\n"), "{parts:?}");
        let tag = client.get("/f.txt").field("ETag").expect("a tag").to_owned();
        let unchanged = client.request("GET", "/f.txt", &[&format!("If-None-Match: {tag}")]);
        assert_eq!((unchanged.status, unchanged.text()), (304, ""));
        let head = client.request("HEAD", "/large.bin", &[]);
        assert_eq!((head.status, head.field("Content-Length"), head.text()), (200, Some("12582912"), ""));
        let missing = client.get("/none");
        assert_eq!((missing.status, missing.text()), (404, "nothing here"));
    });
}

#[test]
fn keeps_connections_alive_and_pipelines() {
    on_each_driver("", "", |site| {
        let mut client = site.connect();
        let request = "GET /f.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
        client.send(request.repeat(40));
        for _ in 0..40 {
            assert_eq!(client.response("GET").text(), "content");
        }
        // One byte in each record.
        for byte in request.as_bytes() {
            client.send([*byte]);
        }
        assert_eq!(client.response("GET").text(), "content");
        client.ask("GET", "/f.txt", &["Connection: close"]);
        assert_eq!(client.response("GET").text(), "content");
        client.is_ended();
    });
}

#[test]
fn reads_bodies_of_both_framings() {
    on_each_driver("", "", |site| {
        let mut client = site.connect();
        // Files have no POST: the body is discarded, and the connection remains.
        assert_eq!(client.send_body("POST", "/f.txt", &[], &[b'x'; 100_000]).status, 405);
        assert_eq!(client.get("/f.txt").text(), "content");
        client.ask("POST", "/f.txt", &["Transfer-Encoding: chunked"]);
        for _ in 0..50 {
            client.send("400\r\n").send([b'y'; 1024]).send("\r\n");
        }
        assert_eq!(client.send("0\r\n\r\n").response("POST").status, 405);
        assert_eq!(client.get("/f.txt").text(), "content");
    });
}

#[test]
fn redirects_clear_requests_and_sends_hsts() {
    on_each_driver("[[listen]]\naddress = \"127.0.0.1:0\"\n", "hsts = \"1d\"\n", |site| {
        let urls: Vec<&str> =
            site.server.banner.split_whitespace().filter(|word| word.contains("://")).collect();
        let address = |scheme: &str| {
            let url = urls.iter().find_map(|url| url.strip_prefix(scheme));
            url.unwrap_or_else(|| panic!("{urls:?}")).trim_end_matches('/').parse().expect("an address")
        };
        let (clear, secure) = (address("http://"), address("https://"));
        let response = TestClient::connect_by_tls(secure, &site.tls()).get("/f.txt");
        assert_eq!(
            (response.text(), response.field("Strict-Transport-Security")),
            ("content", Some("max-age=86400"))
        );
        let missing = TestClient::connect_by_tls(secure, &site.tls()).get("/none");
        assert_eq!(missing.field("Strict-Transport-Security"), Some("max-age=86400"));
        for (method, status) in [("GET", 301), ("HEAD", 301), ("POST", 308)] {
            let response = TestClient::connect_in_clear(clear).request(method, "/f.txt?a=b", &[]);
            let location = response.field("Location").expect("a location");
            assert_eq!(response.status, status);
            assert!(
                location.starts_with("https://localhost") && location.ends_with("/f.txt?a=b"),
                "{location}"
            );
            assert_eq!(response.field("Strict-Transport-Security"), None);
        }
        // HTTP in clear at the address with TLS.
        let response = TestClient::connect_in_clear(secure).get("/f.txt");
        assert!(response.status == 400 && response.text().contains("https"), "{response:?}");
    });
}

const WITH_CLIENTS: &str = "tls = { cert = \"a.pem\", key = \"a.key\", client_ca = \"clients.pem\" }\n";

#[test]
fn asks_for_client_certificates() {
    on_each_driver("", WITH_CLIENTS, |site| {
        let Issued { certificate, key } = site.authority.issue(&["client"]);
        let of = |certificate: &str, key: &str| {
            let certificate = Some((certificate.as_bytes(), key.as_bytes()));
            site.tls_with(&ClientTlsOptions { certificate, ..ClientTlsOptions::default() })
        };
        assert_eq!(site.connect_by(&of(&certificate, &key)).get("/f.txt").text(), "content");
        let without = site.refusal(&site.tls());
        assert!(without.contains("CertificateRequired"), "{without}");
        let Issued { certificate, key } = Authority::new("Other Authority").issue(&["client"]);
        let of_another = site.refusal(&of(&certificate, &key));
        assert!(of_another.contains("alert"), "{of_another}");
    });
}

/// A browser may send requests for any host that the certificate names (RFC 9110 section 7.4).
#[test]
fn responds_421_to_a_host_that_wants_client_certificates() {
    let sites = format!(
        "tls = {{ cert = \"a.pem\", key = \"a.key\" }}\n\
         [[site]]\nhosts = [\"guarded.example\"]\nroot = \"www\"\n{WITH_CLIENTS}\
         [[site]]\nhosts = [\"open.example\"]\nroot = \"www\"\ntls = {{ cert = \"a.pem\", key = \"a.key\" }}\n"
    );
    on_each_driver("", &sites, |site| {
        let hosts = [("localhost", 200), ("guarded.example", 421), ("open.example", 200)];
        for (host, status) in hosts {
            let mut client = site.connect();
            let response = client.request("GET", "/f.txt", &[&format!("Host: {host}")]);
            assert_eq!(response.status, status, "{host}: {response:?}");
        }
        let tls = site.tls_with(&ClientTlsOptions { protocols: &["h2"], ..ClientTlsOptions::default() });
        let socket = TcpStream::connect(site.server.address()).expect("it listens");
        socket.set_read_timeout(Some(TIMEOUT)).expect("a socket");
        let stream = Stream::from(socket).secured(&tls).expect("a session");
        let mut client = Http2Client::new(stream).expect("it serves HTTP/2");
        for (host, status) in hosts.into_iter().chain(hosts) {
            let stream = client.send("GET", "/f.txt", &[("host", host)], b"").expect("it is sent");
            let response = client.response(stream).expect("a response");
            assert_eq!(response.status, status, "{host} by HTTP/2: {response:?}");
        }
    });
}

#[test]
fn reloads_pairs_and_keeps_old_ones_for_broken_ones() {
    on_each_driver("", "", |site| {
        let mut old = site.connect();
        assert_eq!(old.get("/f.txt").text(), "content");
        let renewed = site.authority.issue(&["localhost"]);
        renewed.write(&site.folder, "a");
        let (code, _, stderr) = site.reload();
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert_eq!(site.connect().stream().certificate(), Some(renewed.der()));
        assert_eq!(old.get("/f.txt").text(), "content", "an open connection remains");
        for broken in ["not a certificate", &site.authority.issue(&["localhost"]).certificate] {
            site.folder.file("a.pem", broken);
            let (code, _, stderr) = site.reload();
            assert_eq!(code, 1, "{stderr}");
            assert!(
                stderr.contains("a.pem") && stderr.contains("not reloaded: what was served before"),
                "{stderr}"
            );
            let mut client = site.connect();
            assert_eq!(client.stream().certificate(), Some(renewed.der()));
            assert_eq!(client.get("/f.txt").text(), "content");
        }
        std::fs::remove_file(site.at("a.pem")).expect("it is there");
        assert_eq!(site.reload().0, 1);
        assert_eq!(site.connect().stream().certificate(), Some(renewed.der()));
    });
}

#[test]
fn resumes_sessions_also_after_a_reload() {
    on_each_driver("", "", |site| {
        for version in ["1.3", "1.2"] {
            let tls =
                site.tls_with(&ClientTlsOptions { version: Some(version), ..ClientTlsOptions::default() });
            let get = || {
                let mut client = site.connect_by(&tls);
                assert_eq!(client.get("/f.txt").text(), "content");
                assert_eq!(client.stream().version(), Some(version));
                client.stream().is_resumed()
            };
            assert_eq!([get(), get()], [false, true], "{version}");
            assert_eq!(site.reload().0, 0);
            assert!(get(), "{version}: after a reload");
        }
    });
}
