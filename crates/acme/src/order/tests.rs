//! Tests of the parts of an order. The end-to-end tests have a CA.

use instant_acme::{Error, Problem};

use super::{identifier, with_nonces};
use crate::limits::NONCE_ATTEMPTS_MAX;
use crate::schedule::tests::facts;

fn bad_nonce() -> Error {
    Error::Api(Problem {
        r#type: Some("urn:ietf:params:acme:error:badNonce".to_owned()),
        detail: None,
        status: Some(400),
        subproblems: Vec::new(),
    })
}

#[tokio::test]
async fn repeats_requests_whose_nonce_was_rejected() {
    let mut left = 10;
    let result = with_nonces(async || {
        left -= 1;
        if left > 0 { Err(bad_nonce()) } else { Ok("done") }
    });
    assert_eq!(result.await.ok(), Some("done"));
}

#[tokio::test(start_paused = true)]
async fn repeats_them_a_bounded_number_of_times() {
    let mut requests = 0;
    let result = with_nonces(async || {
        requests += 1;
        Err::<(), _>(bad_nonce())
    });
    assert!(result.await.is_err());
    assert_eq!(requests, NONCE_ATTEMPTS_MAX);
}

#[tokio::test]
async fn other_errors_are_final() {
    let mut requests = 0;
    let result = with_nonces(async || {
        requests += 1;
        Err::<(), _>(Error::Str("other"))
    });
    assert!(result.await.is_err());
    assert_eq!(requests, 1);
}

#[test]
fn identifies_a_certificate_for_its_ca() {
    // The example of RFC 9773, section 4.1.
    let mut facts = facts(1);
    facts.authority_key_id = Some(vec![
        0x69, 0x88, 0x5b, 0x6b, 0x87, 0x46, 0x40, 0x41, 0xe1, 0xb3, 0x7b, 0x84, 0x7b, 0xa0, 0xae, 0x2c, 0xde,
        0x01, 0xc8, 0xd4,
    ]);
    facts.serial = vec![0, 0x87, 0x65, 0x43, 0x21];
    assert_eq!(identifier(&facts).unwrap().to_string(), "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE");
    facts.authority_key_id = None;
    assert_eq!(identifier(&facts), None);
}
