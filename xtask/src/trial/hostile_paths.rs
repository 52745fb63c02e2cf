//! The hostile request targets of `traversal`, and the folder they are aimed at.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::folder::Folder;
use crate::harness::trouble::{During, Outcome};

/// What a target may get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// 400, 403 or 404.
    Refused,
    /// Not a request at all: 400 and the end of the connection.
    Malformed,
    /// It may stay inside the root: a refusal, the file inside, or a redirect inside.
    Inside,
}

/// A target, byte for byte as it goes into the request line.
#[derive(Debug, Clone)]
pub(super) struct Hostile {
    /// The bytes.
    pub(super) target: Vec<u8>,
    /// What it may get.
    pub(super) claim: Claim,
}

/// Targets that try to climb out with dots, in every spelling.
const CLIMBS: [&[u8]; 50] = [
    b"/../outside/canary.txt",
    b"/../../outside/canary.txt",
    b"/../../../../../../../../../../etc/passwd",
    b"/./../outside/canary.txt",
    b"/sub/../../outside/canary.txt",
    b"/sub/./../../outside/canary.txt",
    b"/no-such/../../outside/canary.txt",
    b"/ok.txt/../../outside/canary.txt",
    b"/sub//../../outside/canary.txt",
    b"//../outside/canary.txt",
    b"///../outside/canary.txt",
    b"//outside/canary.txt",
    b"/../public-beside/canary.txt",
    b"/%2e%2e/public-beside/canary.txt",
    b"/%2e%2e/outside/canary.txt",
    b"/%2E%2E/outside/canary.txt",
    b"/.%2e/outside/canary.txt",
    b"/%2e./outside/canary.txt",
    b"/sub/%2e%2e/%2e%2e/outside/canary.txt",
    b"/..%2foutside%2fcanary.txt",
    b"/..%2Foutside%2Fcanary.txt",
    b"/%2e%2e%2foutside%2fcanary.txt",
    b"/%2f..%2foutside%2fcanary.txt",
    b"/sub%2f..%2f..%2foutside%2fcanary.txt",
    b"/%252e%252e/outside/canary.txt",
    b"/%252e%252e%252foutside%252fcanary.txt",
    b"/..\\outside\\canary.txt",
    b"/\\..\\outside\\canary.txt",
    b"/..%5coutside%5ccanary.txt",
    b"/..%5Coutside%5Ccanary.txt",
    b"/%5c..%5coutside%5ccanary.txt",
    b"/%2e%2e%5coutside%5ccanary.txt",
    b"/%c0%ae%c0%ae/outside/canary.txt",
    b"/%c0%ae%c0%ae%c0%afoutside%c0%afcanary.txt",
    b"/..%c0%afoutside%c0%afcanary.txt",
    b"/..%c1%9coutside%c1%9ccanary.txt",
    b"/%e0%80%ae%e0%80%ae/outside/canary.txt",
    b"/%f0%80%80%ae%f0%80%80%ae/outside/canary.txt",
    b"/\xc0\xae\xc0\xae/outside/canary.txt",
    b"/%ef%bc%8e%ef%bc%8e/outside/canary.txt",
    b"/%uff0e%uff0e/outside/canary.txt",
    b"/%u002e%u002e/outside/canary.txt",
    b"/..;/outside/canary.txt",
    b"/..;x=y/outside/canary.txt",
    b"/.../outside/canary.txt",
    b"/....//outside/canary.txt",
    b"/..././outside/canary.txt",
    b"/..%20/outside/canary.txt",
    b"http://trial.test/../outside/canary.txt",
    b"http://trial.test/%2e%2e/outside/canary.txt",
];

/// Targets with bytes that end a C string, are cut off, or belong to no path.
const ODD_BYTES: [&[u8]; 20] = [
    b"/%00",
    b"/ok.txt%00",
    b"/ok.txt%00.html",
    b"/../outside/canary.txt%00.html",
    b"/sub%00/../../outside/canary.txt",
    b"/%",
    b"/%2",
    b"/%zz",
    b"/%2e%2",
    b"/ok.txt%",
    b"/%ff%fe",
    b"/\xff\xfe",
    b"/%0d%0aX-Injected:%20yes",
    b"/sub%0d%0aX-Injected:%20yes/",
    b"/sub%0aX-Injected:%20yes",
    b"/%09",
    b"/%7f",
    b"/ok.txt/",
    b"/ok.txt/index.html",
    b"/no-such/",
];

/// Targets that name something in the root that must not be served: links out, loops, what is not a file.
const TRAPS: [&[u8]; 21] = [
    b"/absolute-link",
    b"/relative-link",
    b"/chained-link",
    b"/folder-link",
    b"/folder-link/",
    b"/folder-link/canary.txt",
    b"/folder-link/../outside/canary.txt",
    b"/sub/deep-link",
    b"/root-link",
    b"/root-link/etc/passwd",
    b"/loop-a",
    b"/loop-a/x",
    b"/self-loop",
    b"/dangling",
    b"/pipe",
    b"/pipe/",
    b"/device",
    b"/device-link",
    b"/socket",
    b"/environment-link",
    b"/index-trap/",
];

/// Request lines that are none.
const MALFORMED: [&[u8]; 9] = [
    b"",
    b"..",
    b"../outside/canary.txt",
    b"outside/canary.txt",
    b"\\..\\outside\\canary.txt",
    b"/ok.txt\0",
    b"/\0/../outside/canary.txt",
    b"/ok.txt /../outside/canary.txt",
    b"/ok.txt\r/../outside/canary.txt",
];

/// Targets that a server may resolve inside its root, but not beyond it, and not to another host.
const INSIDE: [&[u8]; 11] = [
    b"/sub/../ok.txt",
    b"/sub/%2e%2e/ok.txt",
    b"/./ok.txt",
    b"/sub%2fpage.txt",
    b"//ok.txt",
    b"//sub",
    b"//sub/..",
    b"/sub",
    b"/?/../../outside/canary.txt",
    b"/ok.txt?../../outside/canary.txt",
    b"/inside-link",
];

/// Every hostile target; some name the canary by its absolute path, so they depend on the folder.
pub(super) fn targets(folder: &Folder) -> Vec<Hostile> {
    let canary = folder.path().join("outside/canary.txt").to_string_lossy().into_owned();
    let encoded = canary.replace('/', "%2f");
    let made = [
        canary.clone(),
        format!("/{canary}"),
        format!("/{encoded}"),
        format!("/sub/{canary}"),
        format!("file://{canary}"),
        format!("/{}outside/canary.txt", "../".repeat(1_000)),
        format!("/{}outside/canary.txt", "sub/../../".repeat(400)),
        format!("/{}", "n".repeat(300)),
        format!("/{}", "n/".repeat(3_000)),
        format!("/{}etc/passwd", "%2e%2e/".repeat(500)),
    ];
    let made: Vec<&[u8]> = made.iter().map(String::as_bytes).collect();
    let groups: [(&[&[u8]], Claim); 6] = [
        (&CLIMBS, Claim::Refused),
        (&ODD_BYTES, Claim::Refused),
        (&TRAPS, Claim::Refused),
        (&made, Claim::Refused),
        (&MALFORMED, Claim::Malformed),
        (&INSIDE, Claim::Inside),
    ];
    let with_claim = |(group, claim): (&[&[u8]], Claim)| {
        group.iter().map(move |target| Hostile { target: target.to_vec(), claim }).collect::<Vec<_>>()
    };
    groups.into_iter().flat_map(with_claim).collect()
}

/// What the good file holds.
pub(super) const OK_BODY: &[u8] = b"this file may be served\n";

/// Builds `public`, `outside` and `public-beside`; every file beyond `public` holds `canary`. Gives what could not be made.
pub(super) fn lay_out(folder: &Folder, canary: &str) -> Outcome<Vec<&'static str>> {
    let secret = format!("{canary}\n");
    for place in ["outside/canary.txt", "outside/index.html", "public-beside/canary.txt"] {
        folder.write(place, secret.as_bytes())?;
    }
    // A listing of the folder would show this name.
    folder.write(&format!("outside/{canary}.txt"), b"")?;
    folder.write("public/index.html", b"<!doctype html><title>inside</title>\n")?;
    folder.write("public/ok.txt", OK_BODY)?;
    folder.write("public/sub/page.txt", b"a page inside\n")?;
    folder.make("public/index-trap")?;
    lay_links(folder)?;
    Ok(lay_specials(&folder.path().join("public")))
}

fn lay_links(folder: &Folder) -> Outcome<()> {
    let root = folder.path().join("public");
    let canary = folder.path().join("outside/canary.txt");
    let links: [(&Path, &str); 15] = [
        (&canary, "absolute-link"),
        (Path::new("../outside/canary.txt"), "relative-link"),
        (Path::new("relative-link"), "chained-link"),
        (Path::new("../outside"), "folder-link"),
        (Path::new("../../outside/canary.txt"), "sub/deep-link"),
        (Path::new("/"), "root-link"),
        (Path::new("loop-b"), "loop-a"),
        (Path::new("loop-a"), "loop-b"),
        (Path::new("self-loop"), "self-loop"),
        (Path::new("no-such"), "dangling"),
        (Path::new("/dev/zero"), "device-link"),
        (Path::new("/proc/self/environ"), "environment-link"),
        (&canary, "index-trap/index.html"),
        (Path::new("ok.txt"), "inside-link"),
        (Path::new("sub"), "inside-folder-link"),
    ];
    for (aim, name) in links {
        symlink(aim, root.join(name)).during("making a symbolic link")?;
    }
    Ok(())
}

/// A pipe, a device and a socket in the root; making a device takes rights that not everyone has.
fn lay_specials(root: &Path) -> Vec<&'static str> {
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(root).args(arguments).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let made = [
        ("pipe", run("mkfifo", &["pipe"])),
        ("device", run("mknod", &["device", "c", "1", "5"])),
        ("socket", UnixListener::bind(root.join("socket")).is_ok()),
    ];
    made.into_iter().filter(|(_, done)| !done).map(|(name, _)| name).collect()
}
