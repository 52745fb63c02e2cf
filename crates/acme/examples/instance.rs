//! A server that serves nothing but challenges, for tests: it obtains certificates, and prints what happens.
//!
//! `cargo run -p shearwater-acme --example instance -- --storage DIR --directory URL --ca FILE --http 5002 NAME[,NAME…]…`

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shearwater_acme::{ChallengeKind, Clock, ExternalAccount, Manager, Notice, Options};
use shearwater_io::ListenerId;
use shearwater_io::secure::{Provider as _, Session as _, Step};
use shearwater_tls::{Challenges, Configuration, NamedCertificate, SharedConfiguration, TlsProvider};

type Error = Box<dyn std::error::Error>;

/// Options of the manager, and what this server does itself.
struct Arguments {
    options: Options,
    http: Option<TcpListener>,
    tls: Option<TcpListener>,
    renewed: Option<String>,
}

impl Arguments {
    fn parse() -> Result<Self, Error> {
        let mut options = Options::new("storage".into(), Vec::new());
        options.terms_agreed = true;
        options.challenges = Vec::new();
        let mut parsed = Self { options, http: None, tls: None, renewed: None };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.strip_prefix("--") {
                Some(option) => parsed.set(option, arguments.next().ok_or("an option lacks its value")?)?,
                None => parsed.options.certificates.push(argument.split(',').map(str::to_owned).collect()),
            }
        }
        Ok(parsed)
    }

    fn set(&mut self, option: &str, value: String) -> Result<(), Error> {
        let options = &mut self.options;
        match option {
            "storage" => options.storage = value.into(),
            "directory" => {
                options.directory = value;
            }
            "ca" => options.ca = Some(value.into()),
            "email" => options.emails.push(value),
            "eab" => {
                let (kid, hmac) = value.split_once(':').ok_or("--eab: expected KID:HMAC")?;
                let (kid, hmac) = (kid.to_owned(), hmac.to_owned());
                options.external_account = Some(ExternalAccount { kid, hmac });
            }
            "http" => {
                options.challenges.push(ChallengeKind::Http01);
                self.http = Some(TcpListener::bind(format!("127.0.0.1:{value}"))?);
            }
            "tls" => {
                options.challenges.push(ChallengeKind::TlsAlpn01);
                self.tls = Some(TcpListener::bind(format!("127.0.0.1:{value}"))?);
            }
            // The challenges of an instance are served by another one.
            "challenge" if value == "http-01" => options.challenges.push(ChallengeKind::Http01),
            "challenge" if value == "tls-alpn-01" => options.challenges.push(ChallengeKind::TlsAlpn01),
            "clock-ahead" => {
                let ahead: u64 = value.parse()?;
                options.clock = Clock::new(move || ahead + unix_seconds());
            }
            "renew" => self.renewed = Some(value),
            _ => return Err(format!("unknown option --{option}").into()),
        }
        Ok(())
    }
}

fn print(notice: Notice) {
    match notice {
        Notice::Certificate(certificate) => {
            let facts = certificate.pair.facts();
            println!("certificate {} serial {:02x?}", certificate.names.join(","), facts.serial);
        }
        Notice::Failed(failure) => println!("error: {failure}\n  help: {}", failure.help),
    }
    drop(std::io::stdout().flush());
}

fn main() -> Result<(), Error> {
    let Arguments { options, http, tls, renewed } = Arguments::parse()?;
    let handle = Manager::start(options, print)?;
    let challenges = handle.challenges();
    if let Some(listener) = http {
        let challenges = Arc::clone(&challenges);
        thread::spawn(move || serve(&listener, |connection| serve_http(connection, &challenges)));
    }
    if let Some(listener) = tls {
        let mut provider = provider(challenges)?;
        thread::spawn(move || serve(&listener, |connection| serve_tls(connection, &mut provider)));
    }
    if let Some(name) = renewed {
        handle.renew(&name)?;
    }
    // Each line of standard input prints the status; its end stops the server.
    for line in std::io::stdin().lines() {
        drop(line?);
        println!("{:#?}", handle.status());
        std::io::stdout().flush()?;
    }
    handle.stop();
    Ok(())
}

/// Makes TLS sessions that have no certificates but those of challenges.
fn provider(challenges: Arc<shearwater_acme::Challenges>) -> Result<TlsProvider, Error> {
    let challenges = Challenges::with_source(move |name| challenges.alpn(name));
    let none = NamedCertificate { names: vec!["none.example".to_owned()], pair: None, clients: None };
    let options = shearwater_tls::Options {
        certificates: vec![none],
        challenges: Some(Arc::new(challenges)),
        ..Default::default()
    };
    Ok(TlsProvider::new(SharedConfiguration::new(Configuration::new(options)?)))
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Serves one connection after the other. Errors end a connection, not the server.
fn serve(listener: &TcpListener, mut serve: impl FnMut(TcpStream) -> Result<(), Error>) {
    for connection in listener.incoming().flatten() {
        drop(connection.set_read_timeout(Some(Duration::from_secs(5))));
        drop(serve(connection));
    }
}

fn serve_http(mut connection: TcpStream, challenges: &shearwater_acme::Challenges) -> Result<(), Error> {
    let mut line = String::new();
    BufReader::new(connection.try_clone()?).take(4096).read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default();
    let token = path.strip_prefix("/.well-known/acme-challenge/").unwrap_or_default();
    let (status, body) = match challenges.http(token) {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", String::new()),
    };
    let length = body.len();
    write!(connection, "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")?;
    Ok(())
}

fn serve_tls(mut connection: TcpStream, provider: &mut TlsProvider) -> Result<(), Error> {
    provider.begin_turn(unix_seconds());
    let mut session = provider.accept(ListenerId::default());
    let (mut wire, mut reply, mut buffer) = (Vec::new(), Vec::new(), [0; 16 << 10]);
    loop {
        let opened = session.open(&mut wire, &mut reply);
        wire.drain(..opened.consumed);
        connection.write_all(&reply)?;
        reply.clear();
        match opened.step {
            Step::NeedMore => match connection.read(&mut buffer)? {
                0 => return Ok(()),
                count => wire.extend_from_slice(&buffer[..count]),
            },
            Step::Closed | Step::Failed(_) => return Ok(()),
            _ => {}
        }
    }
}
