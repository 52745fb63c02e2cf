//! No spelling of a path avoids its route.

use shearwater_site::{Route, Site};

use crate::Numbers;
use crate::served::{fixed, on_each_driver, route, site};

const SECRET: &str = "what is beneath the route";

/// Returns a path in a random spelling: encoded bytes, repeated slashes, dot segments.
fn spelled(numbers: &mut Numbers) -> String {
    const BETWEEN: [&str; 12] =
        ["/", "/", "/", "/", "//", "///", "/./", "/x/../", "/%2e/", "/%2E%2e/", "%2f", "/\\../"];
    let mut path = BETWEEN[numbers.below(BETWEEN.len())].to_owned();
    for segment in ["private", "deep", "secret.txt"] {
        for byte in segment.bytes() {
            match numbers.below(12) {
                0 => path.push_str(&format!("%{byte:02x}")),
                1 => path.push_str(&format!("%{byte:02X}")),
                2 if numbers.below(8) == 0 => path.push_str(&format!("%25{byte:02x}")),
                _ => path.push(char::from(byte)),
            }
        }
        path.push_str(BETWEEN[numbers.below(BETWEEN.len())]);
    }
    if numbers.below(8) > 0 {
        path.truncate(path.trim_end_matches(['/', '.', '\\']).len());
    }
    path
}

fn guarded() -> Site {
    Site { routes: vec![Route { content: Some(fixed(403, "guarded")), ..route("/private/*") }], ..site() }
}

#[test]
fn no_spelling_of_a_path_avoids_its_route() {
    let files = [
        ("one/private/deep/secret.txt", SECRET),
        ("one/private/index.html", SECRET),
        ("one/open.txt", "open"),
    ];
    on_each_driver(&files, &[guarded()], |served| {
        let mut numbers = Numbers(0x5eed);
        let mut seen = [0; 3];
        let mut client = served.connect();
        for _ in 0..3_000 {
            let path = spelled(&mut numbers);
            if !path.starts_with('/') {
                continue;
            }
            let response = client.request("GET", &path, &[]);
            assert!(!response.text().contains(SECRET), "{path}");
            match response.status {
                403 => seen[0] += 1,
                400 => seen[1] += 1,
                404 => seen[2] += 1,
                status => panic!("{path}: {status}"),
            }
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
        for path in
            ["/private", "/private/", "//private", "/%70rivate", "/private//", "http://localhost//private/"]
        {
            assert_eq!(client.request("GET", path, &[]).status, 403, "{path}");
        }
        for path in [
            "/x/../private/deep/secret.txt",
            "/./private/",
            "/private/../private/",
            "/..//private/deep/secret.txt",
        ] {
            assert_eq!(client.request("GET", path, &[]).status, 400, "{path}");
        }
        assert_eq!(client.request("GET", "/open.txt", &[]).text(), "open");
    });
}
