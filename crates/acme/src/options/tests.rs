//! Tests of options.

use super::{Directory, ExternalAccount, Options};

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
