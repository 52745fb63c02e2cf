//! Tests of names.

use super::{check, unsuitable};
use crate::limits::{CERTIFICATES_MAX, NAMES_PER_CERTIFICATE_MAX};

fn checked(names: &[&str]) -> Result<(), String> {
    let names = vec![names.iter().map(|name| (*name).to_owned()).collect()];
    check(&names).map_err(|failure| failure.message)
}

#[test]
fn accepts_host_names() {
    for name in [
        "example.org",
        "a.b.c.example.org",
        "xn--bcher-kva.example",
        "1.example.org",
        "a-b.example",
        "intranet",
    ] {
        assert_eq!(checked(&[name]), Ok(()), "{name}");
    }
}

#[test]
fn rejects_names_that_no_ca_or_file_accepts() {
    let long = format!("{}.example", "a".repeat(64));
    for name in [
        "",
        "Example.org",
        "*.example.org",
        "bücher.example",
        "192.0.2.1",
        "::1",
        "a..b",
        "-a.b",
        "a-.b",
        "../../etc/passwd",
        "a/b.c",
        "a\0.b",
        ".example.org",
        "example.org.",
        "a_b.example",
        &long,
    ] {
        let message = checked(&[name]).expect_err(name);
        assert!(message.starts_with(&format!("{name:?}: no certificate by itself")), "{message}");
    }
}

#[test]
fn a_name_is_in_one_certificate() {
    assert_eq!(checked(&["a.example", "a.example"]), Err("found a.example in two certificates".to_owned()));
}

#[test]
fn bounds_names_and_certificates() {
    let many = |count: usize| (0..count).map(|number| format!("n{number}.example")).collect::<Vec<_>>();
    assert!(check(&[many(NAMES_PER_CERTIFICATE_MAX)]).is_ok());
    assert!(check(&[many(NAMES_PER_CERTIFICATE_MAX + 1)]).is_err());
    assert!(check(&[Vec::new()]).is_err());
    let each = |count| many(count).into_iter().map(|name| vec![name]).collect::<Vec<_>>();
    assert!(check(&each(CERTIFICATES_MAX)).is_ok());
    assert!(check(&each(CERTIFICATES_MAX + 1)).is_err());
}

#[test]
fn public_authorities_need_public_names() {
    for name in ["localhost", "intranet", "printer.local", "a.b.test"] {
        assert!(unsuitable(name, true).is_some() && unsuitable(name, false).is_none(), "{name}");
    }
    assert_eq!(unsuitable("example.org", true), None);
}
