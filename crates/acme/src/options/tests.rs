//! Tests of options.

use super::{Directory, ExternalAccount, Options, check_names};
use crate::limits::{CERTIFICATES_MAX, NAMES_PER_CERTIFICATE_MAX};

fn check(names: &[&str]) -> Result<(), String> {
    let names = vec![names.iter().map(|name| (*name).to_owned()).collect()];
    check_names(&names).map_err(|failure| failure.message)
}

#[test]
fn accepts_host_names() {
    for name in ["example.org", "a.b.c.example.org", "xn--bcher-kva.example", "1.example.org", "a-b.example"]
    {
        assert_eq!(check(&[name]), Ok(()), "{name}");
    }
}

#[test]
fn rejects_names_that_no_ca_or_file_accepts() {
    let long = format!("{}.example", "a".repeat(64));
    for name in [
        "",
        "localhost",
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
        let message = check(&[name]).expect_err(name);
        assert!(message.starts_with(&format!("no certificate for {name:?}: ")), "{message}");
    }
}

#[test]
fn a_name_is_in_one_certificate() {
    assert_eq!(check(&["a.example", "a.example"]), Err("found a.example in two certificates".to_owned()));
}

#[test]
fn bounds_names_and_certificates() {
    let many = |count: usize| (0..count).map(|number| format!("n{number}.example")).collect::<Vec<_>>();
    assert!(check_names(&[many(NAMES_PER_CERTIFICATE_MAX)]).is_ok());
    assert!(check_names(&[many(NAMES_PER_CERTIFICATE_MAX + 1)]).is_err());
    assert!(check_names(&[Vec::new()]).is_err());
    let each = |count| many(count).into_iter().map(|name| vec![name]).collect::<Vec<_>>();
    assert!(check_names(&each(CERTIFICATES_MAX)).is_ok());
    assert!(check_names(&each(CERTIFICATES_MAX + 1)).is_err());
}

#[test]
fn reads_the_words_of_directories() {
    assert_eq!(Directory::parse("letsencrypt"), Some(Directory::LetsEncrypt));
    let staging = Directory::parse("letsencrypt-staging").unwrap();
    assert_eq!(staging.url(), "https://acme-staging-v02.api.letsencrypt.org/directory");
    assert_eq!(Directory::parse("https://ca.example/acme").unwrap().url(), "https://ca.example/acme");
    assert_eq!(Directory::parse("http://ca.example/acme"), None);
    assert_eq!(Directory::parse("staging"), None);
}

#[test]
fn needs_agreement_and_a_valid_key() {
    let mut options = Options::new("storage".into(), vec![vec!["example.org".to_owned()]]);
    assert!(options.check().unwrap_err().message.contains("aren't agreed to"));
    options.terms_agreed = true;
    assert_eq!(options.check(), Ok(()));
    let account = |hmac: &str| Some(ExternalAccount { kid: "kid".to_owned(), hmac: hmac.to_owned() });
    options.external_account = account("AAEC_-8");
    assert_eq!(options.check(), Ok(()));
    assert_eq!(
        format!("{:?}", options.external_account.as_ref().unwrap()),
        "ExternalAccount { kid: \"kid\", .. }"
    );
    options.external_account = account("not base64!");
    assert!(options.check().is_err());
    options.external_account = None;
    options.challenges.clear();
    assert!(options.check().is_err());
}
