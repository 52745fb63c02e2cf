//! Other implementations of TLS, where the machine has them: openssl and curl.

use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use shearwater_io::secure::{Session, Step};
use shearwater_tls::{AlpnProtocol, Options, Tickets, TlsProvider};

use crate::authority::{Authority, pem};
use crate::link::{accept, named, serve};

/// Bound on the wait for a program, or for its input.
const WAIT: Duration = Duration::from_secs(10);

/// Serves one connection: a response to the first content, then close_notify.
fn serve_one(stream: &mut TcpStream, provider: &mut TlsProvider) -> std::io::Result<()> {
    let (mut session, mut wire, mut reply) = (accept(provider), Vec::new(), Vec::new());
    loop {
        let mut received = [0; 4096];
        let length = stream.read(&mut received)?;
        wire.extend_from_slice(&received[..length]);
        let ends = loop {
            let opened = session.open(&mut wire, &mut reply);
            wire.drain(..opened.consumed);
            match opened.step {
                Step::NeedMore => break length == 0,
                Step::Plain(_) => {
                    let facts = session.facts().unwrap();
                    let body = format!("{} resumed={}\n", facts.version.as_str(), facts.is_resumed);
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                    session
                        .seal(&[IoSlice::new(head.as_bytes()), IoSlice::new(body.as_bytes())], &mut reply)
                        .unwrap();
                    session.close_notify(&mut reply);
                    break true;
                }
                Step::Closed | Step::Failed(_) => break true,
                _ => {}
            }
        };
        stream.write_all(&reply)?;
        reply.clear();
        if ends {
            return stream.shutdown(std::net::Shutdown::Write);
        }
    }
}

/// Serves connections on a port of this machine until the test binary ends.
fn start(mut provider: TlsProvider) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_read_timeout(Some(WAIT)).unwrap();
            let _ = serve_one(&mut stream, &mut provider);
        }
    });
    port
}

struct Server {
    folder: tempfile::TempDir,
    port: u16,
}

impl Server {
    fn new() -> Self {
        let authority = Authority::new("Test");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), pem("CERTIFICATE", &authority.der)).unwrap();
        let certificates = vec![named(&["localhost"], Some(authority.pair(&["localhost", "127.0.0.1"])))];
        let tickets = Some(Arc::new(Tickets::from_file_bytes(&[1; 80]).unwrap()));
        // Its responses are in HTTP/1.1.
        let protocols = vec![AlpnProtocol::Http11];
        let port = start(serve(Options { certificates, tickets, protocols, ..Options::default() }));
        Self { folder, port }
    }

    /// Runs a program with this input. Returns `None` if the machine doesn't have it.
    fn run(&self, program: &str, arguments: &str, input: &str) -> Option<Output> {
        let arguments = arguments.replace("PORT", &self.port.to_string());
        let mut command = Command::new(program);
        command.args(arguments.split(' ')).current_dir(self.folder.path());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let Ok(mut child) = command.spawn() else {
            eprintln!("skipped: {program} isn't installed");
            return None;
        };
        // It stays open, since some programs end with their input.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        Some(output)
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn openssl_connects_and_resumes() {
    let server = Server::new();
    for (version, name) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        for (session, is_resumed) in [("-sess_out s.pem", false), ("-sess_in s.pem", true)] {
            let arguments = format!(
                "s_client -connect 127.0.0.1:PORT -servername localhost -CAfile ca.pem -verify_return_error -alpn \
                 http/1.1 -ign_eof {version} {session}"
            );
            let Some(output) = server.run("openssl", &arguments, "GET / HTTP/1.1\r\n\r\n") else { return };
            let text = text(&output);
            assert!(text.contains(&format!("{name} resumed={is_resumed}\n")), "{text}");
            assert!(text.contains("Verify return code: 0 (ok)"), "{text}");
        }
    }
}

/// Versions and suites that aren't secure any more.
#[test]
fn openssl_cannot_connect_by_old_versions() {
    let server = Server::new();
    for arguments in ["-tls1_1 -cipher ALL:@SECLEVEL=0", "-tls1_2 -cipher AES128-SHA:@SECLEVEL=0"] {
        let arguments = format!("s_client -connect 127.0.0.1:PORT -servername localhost {arguments}");
        let Some(output) = server.run("openssl", &arguments, "") else { return };
        assert!(!output.status.success() && text(&output).contains("alert"), "{}", text(&output));
    }
}

#[test]
fn curl_connects() {
    let server = Server::new();
    let arguments =
        "-sS --max-time 10 --cacert ca.pem https://localhost:PORT/ --resolve localhost:PORT:127.0.0.1";
    if let Some(output) = server.run("curl", arguments, "") {
        assert_eq!(text(&output), "TLSv1.3 resumed=false\n");
    }
    // Without a name in the ClientHello.
    if let Some(output) = server.run("curl", "-sS --max-time 10 --cacert ca.pem https://127.0.0.1:PORT/", "")
    {
        assert_eq!(text(&output), "TLSv1.3 resumed=false\n");
    }
}
