//! Serving by a configuration file: where its paths begin, what wins over it, and that nothing is bound before it is right. The effect of
//! each key stands in `keys` and `sites`.

use std::net::TcpListener;

use crate::folder::Temporary;
use crate::keys::{SITE, folder};
use crate::process::{Serving, run};

#[test]
fn a_site_is_served_from_the_folder_of_the_file() {
    let folder = Temporary::new();
    folder.file("conf/www/f.txt", "content").file("conf/site.toml", SITE);
    let serving = Serving::start(folder.path(), &["--config", "conf/site.toml"]);
    assert_eq!(serving.line("serves"), folder.path().join("conf/www").to_str());
    assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "content");
    // Without a site: a folder of a certain name beside the file, or the command line's.
    folder.file("conf/public/f.txt", "public").file("conf/none.toml", "").file("other/f.txt", "other");
    let serving = Serving::start(folder.path(), &["--config", "conf/none.toml"]);
    assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "public");
    let serving = Serving::start(folder.path(), &["other", "--config", "conf/none.toml"]);
    assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "other");
    let (code, _, stderr) = run(folder.path(), &["other", "--config", "conf/site.toml"]);
    assert_eq!(code, 2);
    let told = "shearwater: the folder other and the sites of conf/site.toml contradict each other: name one of both\n";
    assert_eq!(stderr, told);
}

#[test]
fn flags_win_over_the_file_and_say_so() {
    let folder = folder(&format!("[server]\nworkers = 3\ndrain_s = 5\n{SITE}"));
    let serving = Serving::start(folder.path(), &["--config", "site.toml", "--workers", "2"]);
    assert_eq!(
        (serving.line("workers"), serving.line("flag")),
        (Some("2"), Some("--workers 2 in place of server.workers = 3"))
    );
    // What the file says nothing of, or says the same of, is no news.
    let serving =
        Serving::start(folder.path(), &["--config", "site.toml", "--workers", "3", "--drain", "5", "--pin"]);
    assert_eq!((serving.line("workers"), serving.line("flag")), (Some("3"), None));
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_bound() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = held.local_addr().expect("an address");
    for (wrong, told) in [
        ("[cache]\nenabld = true\n", "site.toml:4:1: cache.enabld: unknown key; the nearest is `enabled`"),
        ("[[site]]\nroot = \"none\"\n", "site.toml:4:8: site[0].root: there is no folder "),
    ] {
        let folder = folder(&format!("[[listen]]\naddress = \"{address}\"\n{wrong}"));
        let (code, stdout, stderr) = run(folder.path(), &["--config", "site.toml"]);
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(stderr.starts_with(told) && !stderr.contains("is taken"), "{stderr}");
        assert!(stderr.ends_with("shearwater: site.toml has 1 problem; nothing was started\n"), "{stderr}");
    }
}
