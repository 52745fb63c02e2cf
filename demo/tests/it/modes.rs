//! `SERVER_MODE`: the application alone, or fast routes in front of it.

use serde_json::json;

use crate::program::Program;

/// Only the application's responses have its middleware's header.
const MARK: &str = "x-content-type-options";

#[test]
fn the_application_responses_all_in_standard_mode() {
    let demo = Program::start(&[("SERVER_MODE", "standard")]);
    for path in ["/", "/json", "/plaintext", "/none"] {
        assert_eq!(demo.get(path).field(MARK), Some("nosniff"), "{path}");
    }
}

#[test]
fn fast_routes_come_before_it_in_performance_mode() {
    let demo = Program::start(&[("SERVER_MODE", "performance")]);
    let (json, plaintext) = (demo.get("/json"), demo.get("/plaintext"));
    assert_eq!((json.json(), json.field(MARK)), (json!({ "message": "Hello, World!" }), None));
    assert_eq!((plaintext.text(), plaintext.field(MARK)), ("Hello, World!", None));
    assert_eq!(plaintext.field("content-type"), Some("text/plain; charset=utf-8"));

    for path in ["/", "/user/7", "/db", "/none", "/json/", "/plaintext/more"] {
        assert_eq!(demo.get(path).field(MARK), Some("nosniff"), "{path}");
    }
    let other = demo.ask("POST", "/json", &[], b"");
    assert_eq!((other.status, other.field(MARK)), (405, Some("nosniff")), "other methods fall through");
    assert_eq!(demo.ask("POST", "/", &[], b"ahoy").text(), "ahoy");
}
