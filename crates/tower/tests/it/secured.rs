//! Facts of the TLS session in axum apps.

use std::sync::Arc;

use axum::routing::get;
use axum::{Extension, Router};
use http::uri::Scheme;
use shearwater::tls::{
    ClientAuthorities, Configuration, NamedCertificate, Options, Pair, SharedConfiguration, Tickets,
};
use shearwater::{TlsSession, Verbosity};
use shearwater_tower::bind_tls;
use testkit::tls::{ClientTls, ClientTlsOptions};
use testkit::{TestClient, TestFolder};

use crate::authority::Authority;
use crate::served::{Served, drivers, here};

fn router() -> Router {
    let facts = async |session: Option<Extension<TlsSession>>, Extension(scheme): Extension<Scheme>| {
        let Some(Extension(session)) = session else { return scheme.to_string() };
        let chain: Vec<_> = session.client_chain().map(<[u8]>::to_vec).collect();
        let certificate = session.client_certificate().map_or(0, <[u8]>::len);
        format!("{scheme} {session:?} {certificate} {chain:?}")
    };
    // With a body it is called as a task, without one at once.
    Router::new().route("/", get(facts).post(facts))
}

#[test]
fn an_app_sees_the_session_and_the_client_s_certificate() {
    let (servers, clients) = (Authority::new("Servers"), Authority::new("Clients"));
    let folder = TestFolder::new();
    servers.issue(&["localhost"]).write(&folder, "server");
    let pair = Pair::read(&folder.at("server.pem"), &folder.at("server.key")).expect("a pair");
    let of_client = clients.issue(&["client"]);
    let chain = format!("{}{}", of_client.certificate, clients.pem);
    for driver in drivers() {
        let certificate = NamedCertificate {
            names: Vec::new(),
            pair: Some(pair.clone()),
            clients: Some(ClientAuthorities::from_pem(clients.pem.as_bytes()).expect("an authority")),
        };
        let tickets = Some(Arc::new(Tickets::random(0).expect("random numbers")));
        let options = Options { certificates: vec![certificate], tickets, ..Options::default() };
        let certificates = SharedConfiguration::new(Configuration::new(options).expect("a certificate"));
        let serve = bind_tls("127.0.0.1:0", certificates, router()).workers(1).verbosity(Verbosity::Off);
        let served = Served::of(serve.driver(driver).tls_info());
        for (version, name) in [("1.2", "Tls12"), ("1.3", "Tls13")] {
            let options = ClientTlsOptions {
                authority: Some(servers.pem.as_bytes()),
                certificate: Some((chain.as_bytes(), of_client.key.as_bytes())),
                version: Some(version),
                ..ClientTlsOptions::default()
            };
            let tls = ClientTls::with("localhost", &options).expect("settings");
            for is_resumed in [false, true] {
                let mut client = TestClient::connect_by_tls(served.address, &tls);
                let responses = [client.get("/"), client.send_body("POST", "/", &[], b"a body")];
                for response in responses {
                    let text = response.text();
                    let certificates = [of_client.der(), der_of(&clients.pem)];
                    let end = format!("{} {certificates:?}", certificates[0].len());
                    assert!(text.starts_with("https TlsSession") && text.ends_with(&end), "{text}");
                    let facts = [
                        format!("version: {name}"),
                        format!("is_resumed: {is_resumed}"),
                        "alpn: Some(\"http/1.1\"), server_name: Some(\"localhost\")".to_owned(),
                    ];
                    assert!(facts.iter().all(|fact| text.contains(fact)), "{driver:?} {facts:?}: {text}");
                    assert!(!text.contains("cipher_suite: \"\""), "{text}");
                }
            }
        }
    }
}

fn der_of(pem: &str) -> Vec<u8> {
    crate::authority::Issued { certificate: pem.to_owned(), key: String::new() }.der()
}

#[test]
fn an_app_in_clear_sees_the_scheme_alone() {
    if testkit::tls::skips("it is about connections in clear") {
        return;
    }
    let served = Served::of(here(router()).tls_info());
    assert_eq!(served.connect().get("/").text(), "http");
    assert_eq!(served.connect().send_body("POST", "/", &[], b"a body").text(), "http");
}
