//! `[log]`: destination, format and exclusions of the access log.

use super::on_each_driver;
use crate::access_log::lines_of;

/// Serves a file and a missing one with these keys, and checks the lines without their dates.
fn assert_logs(keys: &str, expected: &[&str]) {
    on_each_driver(&format!("[log]\naccess = \"a.log\"\n{keys}"), |folder, server| {
        let mut client = server.connect();
        assert_eq!(client.request("GET", "/f.txt", &["User-Agent: test"]).status, 200);
        assert_eq!(client.request("GET", "/none", &[]).status, 404);
        drop(client);
        server.stop();
        assert_eq!(lines_of(&folder.at("a.log")), expected, "{keys}");
    });
}

#[test]
pub(crate) fn access() {
    assert_logs(
        "",
        &[
            r#"127.0.0.1 - - [] "GET /f.txt HTTP/1.1" 200 7 "-" "test""#,
            r#"127.0.0.1 - - [] "GET /none HTTP/1.1" 404 10 "-" "-""#,
        ],
    );
    on_each_driver("", |folder, server| {
        assert_eq!(server.connect().request("GET", "/f.txt", &[]).status, 200);
        server.stop();
        assert!(!folder.at("a.log").exists());
    });
}

#[test]
pub(crate) fn format() {
    let common = [
        r#"127.0.0.1 - - [] "GET /f.txt HTTP/1.1" 200 7"#,
        r#"127.0.0.1 - - [] "GET /none HTTP/1.1" 404 10"#,
    ];
    assert_logs("format = \"common\"\n", &common);
    assert_logs("format = \"$uri $${status} $http_user_agent\"\n", &["/f.txt 200 test", "/none 404 -"]);
}

#[test]
pub(crate) fn exclude_paths() {
    assert_logs("format = \"$uri\"\nexclude_paths = [\"/f.txt\", \"/x\"]\n", &["/none"]);
}

#[test]
pub(crate) fn exclude_statuses() {
    assert_logs("format = \"$uri\"\nexclude_statuses = [\"4xx\"]\n", &["/f.txt"]);
}
