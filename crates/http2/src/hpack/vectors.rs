//! The examples of RFC 7541 appendix C: blocks and their lists.

use super::{Decoder, Strings};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits are ASCII"), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("all are hexadecimal digits")).collect()
}

/// Decodes the blocks of one connection, and compares each list with its lines `name: value`.
fn check(blocks: &[(&str, &str)]) {
    let mut decoder = Decoder::new();
    for (hex, expected) in blocks {
        let mut list = Vec::new();
        let each = |name: &[u8], value: &[u8]| list.push([name, b": ", value].concat());
        decoder.decode(&bytes(hex), &mut Strings::default(), each).expect("a valid block");
        let expected: Vec<_> = expected.lines().map(|line| line.trim().as_bytes().to_vec()).collect();
        assert_eq!(list, expected, "{hex}");
    }
}

#[test]
fn single_fields() {
    check(&[("400a637573746f6d2d6b65790d637573746f6d2d686561646572", "custom-key: custom-header")]);
    check(&[("040c2f73616d706c652f70617468", ":path: /sample/path")]);
    check(&[("100870617373776f726406736563726574", "password: secret")]);
    check(&[("82", ":method: GET")]);
}

const REQUESTS: [&str; 3] = [
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com",
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache",
    ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value",
];

#[test]
fn requests() {
    check(&[
        ("828684410f7777772e6578616d706c652e636f6d", REQUESTS[0]),
        ("828684be58086e6f2d6361636865", REQUESTS[1]),
        ("828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", REQUESTS[2]),
    ]);
}

#[test]
fn requests_in_huffman_code() {
    check(&[
        ("828684418cf1e3c2e5f23a6ba0ab90f4ff", REQUESTS[0]),
        ("828684be5886a8eb10649cbf", REQUESTS[1]),
        ("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", REQUESTS[2]),
    ]);
}

/// The RFC's responses, whose table has 256 bytes, so that entries are evicted: a block sets that size first.
#[test]
fn responses_that_evict() {
    let first = ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n\
        location: https://www.example.com";
    let second = first.replace("302", "307");
    let third = ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n\
        location: https://www.example.com\ncontent-encoding: gzip\n\
        set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    check(&[
        (
            "3fe101 4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54\
             6e1768747470733a2f2f7777772e6578616d706c652e636f6d",
            first,
        ),
        ("4803333037c1c0bf", &second),
        (
            "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153\
             444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
            third,
        ),
    ]);
    check(&[
        (
            "3fe101 488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97\
             c8e9ae82ae43d3",
            first,
        ),
        ("4883640effc1c0bf", &second),
        (
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960\
             d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
            third,
        ),
    ]);
}
