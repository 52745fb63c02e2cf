//! No path leads out of the folder.

use crate::site::{CANARY, Site};
use shearwater_files::CacheLimits;

/// Request targets, as bytes; `CANARY` is `outside/canary`, which is beside the folder.
const FORMS: &[&[u8]] = &[
    b"/../CANARY",
    b"/../../CANARY",
    b"/../../../../../../../../../../etc/passwd",
    b"/./../CANARY",
    b"/.././CANARY",
    b"/a/../../CANARY",
    b"/a/b/../../../CANARY",
    b"/a/b/../../../served/../CANARY",
    b"/../served/../CANARY",
    b"//../CANARY",
    b"/..//CANARY",
    b"///..///CANARY",
    b"/%2e%2e/CANARY",
    b"/%2E%2E/CANARY",
    b"/.%2e/CANARY",
    b"/%2e./CANARY",
    b"/a/%2e%2e/%2e%2e/CANARY",
    b"/..%2fCANARY",
    b"/..%2FCANARY",
    b"/%2e%2e%2fCANARY",
    b"/a%2f..%2f..%2fCANARY",
    b"/%2foutside%2fcanary",
    b"/%252e%252e/CANARY",
    b"/%252e%252e%252fCANARY",
    b"/%25252e%25252e/CANARY",
    b"/..%5cCANARY",
    b"/..\\CANARY",
    b"/..\\..\\outside\\canary",
    b"/%5c..%5c..%5coutside%5ccanary",
    b"/a\\..\\..\\CANARY",
    b"/..;/CANARY",
    b"/..;x=y/CANARY",
    b"/..%00/CANARY",
    b"/..%00CANARY",
    b"/f.txt%00/../../CANARY",
    b"/..%09/CANARY",
    b"/..%20/CANARY",
    b"/..%0d%0a/CANARY",
    b"/..?/CANARY",
    b"/a?/../../CANARY",
    b"/..#/CANARY",
    b"/%c0%ae%c0%ae/CANARY",
    b"/%c0%ae%c0%ae%c0%afCANARY",
    b"/..%c0%afCANARY",
    b"/..%c1%9cCANARY",
    b"/%e0%80%ae%e0%80%ae/CANARY",
    b"/%uff0e%uff0e/CANARY",
    b"/%u002e%u002e/CANARY",
    b"/%ef%bc%8e%ef%bc%8e/CANARY",
    b"/..%ef%bc%8fCANARY",
    b"/.../CANARY",
    b"/..../CANARY",
    b"/out/canary",
    b"/out/./canary",
    b"/out//canary",
    b"/o%75t/canary",
    b"/out_file",
    b"/absolute",
    b"/absolute_dir/canary",
    b"/up/CANARY",
    b"/a/out/canary",
    b"/proc/self/root/etc/passwd",
    b"/slash/proc/self/cwd",
    b"../CANARY",
    b"CANARY",
    b"/../CANARY/",
    b"/..",
    b"/../",
    b"/../../",
    b"/%2e%2e",
    b"/%2e%2e%2f",
    b"/%",
    b"/%2",
    b"/%zz/../CANARY",
    b"http://localhost/../CANARY",
    b"http://localhost/%2e%2e/CANARY",
    b"http://localhost/..%2fCANARY",
    b"http://localhost\\..\\CANARY",
    b"file:///etc/passwd",
    b"file://localhost/etc/passwd",
    b"/file:///etc/passwd",
    b"//etc/passwd",
    b"\\..\\CANARY",
    b"/\xff\xfe../CANARY",
    b"/..\x01/CANARY",
];

fn site(folder: &str) -> Site {
    let site = Site::serving(folder, CacheLimits::none());
    site.file("f.txt", "file").file("a/b/f.txt", "file");
    site.link("out", "../outside").link("out_file", "../outside/canary").link("up", "..").link("slash", "/");
    site.link("absolute", site.outside("canary")).link("absolute_dir", site.outside(""));
    site.link("a/out", "../../outside");
    site
}

fn target(form: &[u8]) -> Vec<u8> {
    let Some(at) = form.windows(6).position(|window| window == b"CANARY") else { return form.to_vec() };
    [&form[..at], b"outside/canary", &form[at + 6..]].concat()
}

/// Returns all bytes of the response to one request with this target.
fn raw_response(site: &Site, method: &str, target: &[u8]) -> String {
    let mut client = site.connect();
    let head =
        [method.as_bytes(), b" ", target, b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"]
            .concat();
    String::from_utf8_lossy(&client.send(head).end_sending().rest()).into_owned()
}

#[test]
fn no_form_gives_what_is_outside() {
    assert!(FORMS.len() >= 40);
    let site = site("served");
    for form in FORMS {
        for method in ["GET", "HEAD", "POST"] {
            let response = raw_response(&site, method, &target(form));
            let shown = format!("{method} {}: {response}", form.escape_ascii());
            assert!(!response.contains(CANARY) && !response.contains("root:"), "{shown}");
            let status: u16 = response.get(9..12).and_then(|status| status.parse().ok()).expect(&shown);
            let refused = matches!(status, 400 | 403 | 404 | 405 | 421);
            // A query isn't part of the name: this is a folder, inside.
            let inside = status == 301 && response.contains("\r\nLocation: /a/?/../../outside/canary\r\n");
            assert!(refused || inside, "{shown}");
        }
    }
    assert_eq!(site.get("/f.txt"), (200, b"file".to_vec()));
}

#[test]
fn the_canary_would_have_been_seen() {
    let site = site(".");
    assert!(raw_response(&site, "GET", b"/outside/canary").contains(CANARY));
    assert!(raw_response(&site, "GET", b"/served/out_file").contains(CANARY));
}
