//! Reports on standard error while it serves: files that can't be sent.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::folder::Temporary;
use crate::process::Serving;

#[test]
fn files_that_can_not_be_sent_are_reported_with_path_and_count() {
    for driver in ["epoll", "uring"] {
        let folder = Temporary::new();
        folder.file("public/index.html", "index").file("public/dir/x", "x");
        let public = folder.path().join("public");
        let made = Command::new("mkfifo").arg(public.join("pipe")).status().expect("mkfifo is of POSIX");
        assert!(made.success());
        symlink("/", public.join("out\nshearwater: forged")).expect("a link");
        symlink("../../../etc/passwd", public.join("dir/index.html")).expect("a link");
        let mut serving = Serving::start(folder.path(), &["--workers", "1", "--driver", driver]);
        let mut client = serving.connect();
        for (target, status) in [
            ("/none", 404),
            ("/pipe", 403),
            ("/pipe", 403),
            ("/pipe?query", 403),
            ("/.hidden", 404),
            ("/out%0Ashearwater:%20forged/etc/passwd", 403),
            ("/dir/", 403),
            ("/", 200),
        ] {
            assert_eq!(client.request("GET", target, &[]).status, status, "{target}");
        }
        let public = public.display();
        let line = |path: &str, error: &str, more: &str| {
            format!(
                "shearwater: worker 0: can't send \"{public}/{path}\": {error}; its client got a 403{more}\n"
            )
        };
        let not_plain = "neither a file nor a directory";
        assert_eq!(serving.hear(), line("pipe", not_plain, ""));
        let out = line("out\\nshearwater: forged/etc/passwd", "leaves the root", "");
        assert_eq!(serving.hear(), out);
        let later = [
            line("pipe", not_plain, " (1 more like it)"),
            line("dir/index.html", "leaves the root", ""),
        ];
        assert_eq!([serving.hear(), serving.hear()], later);
    }
}
