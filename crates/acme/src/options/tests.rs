//! Tests of options.

use super::{ExternalAccount, Options};

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
    options.directory = "http://ca.example/".to_owned();
    assert!(options.check().unwrap_err().message.contains("expected an https URL"));
    options.directory = "https://ca.example/".to_owned();
    options.challenges.clear();
    assert!(options.check().is_err());
}
