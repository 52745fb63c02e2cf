//! Keys that this build reads but doesn't act on: they are refused where they say something other than the default, for a key without
//! effect would mislead.

use shearwater_config::Config;

use crate::failure::Failure;

/// Their names. `listen.unix` stands for an address that begins with `unix:`.
const NOT_IN_THIS_BUILD: &[&str] = &[
    "listen.mode",
    "listen.unix",
    "server.accept",
    "server.tcp_keepalive",
    "server.tcp_nodelay",
    "site.cache_control",
    "site.clean_urls",
    "site.error_pages",
    "site.headers",
    "site.hidden",
    "site.hosts",
    "site.index",
    "site.listing",
    "site.mime",
    "site.precompressed",
    "site.redirect",
    "site.route",
    "site.spa",
    "site.symlinks",
    "site.try_files",
];

const WHY: &str = "this is not in this build";

/// Refuses a configuration that says something of such a key.
pub(crate) fn refuse(config: &Config) -> Result<(), Failure> {
    let changed = config.changed();
    let missing = changed.into_iter().filter(|changed| NOT_IN_THIS_BUILD.contains(&changed.name.as_str()));
    let problems: Vec<_> = missing.map(|missing| (missing.key, WHY.to_owned())).collect();
    if problems.is_empty() { Ok(()) } else { Err(config.refuse_all(problems).into()) }
}

/// Refuses a socket of the file system.
pub(crate) fn unix(config: &Config, index: usize) -> Failure {
    config.refuse(&format!("listen[{index}].address"), WHY).into()
}

#[cfg(test)]
mod tests {
    use shearwater_config::Config;

    use super::{NOT_IN_THIS_BUILD, refuse};

    /// Something other than the default for each of them.
    const SAID: &[(&str, &str)] = &[
        ("listen.mode", "[[listen]]\naddress = \"unix:/x\"\nmode = \"0600\"\n"),
        ("server.accept", "[server]\naccept = \"dispatch\"\n"),
        ("server.tcp_keepalive", "[server]\ntcp_keepalive = true\n"),
        ("server.tcp_nodelay", "[server]\ntcp_nodelay = false\n"),
        (
            "site.cache_control",
            "[[site]]\nroot = \".\"\ncache_control = [{ path = \"/*\", value = \"x\" }]\n",
        ),
        ("site.clean_urls", "[[site]]\nroot = \".\"\nclean_urls = true\n"),
        ("site.error_pages", "[[site]]\nroot = \".\"\nerror_pages = { 404 = \"/404.html\" }\n"),
        ("site.headers", "[[site]]\nroot = \".\"\nheaders = { remove = [\"Server\"] }\n"),
        ("site.hidden", "[[site]]\nroot = \".\"\nhidden = \"serve\"\n"),
        ("site.hosts", "[[site]]\nroot = \".\"\nhosts = [\"a\"]\n"),
        ("site.index", "[[site]]\nroot = \".\"\nindex = []\n"),
        ("site.listing", "[[site]]\nroot = \".\"\nlisting = true\n"),
        ("site.mime", "[[site]]\nroot = \".\"\nmime = { a = \"b/c\" }\n"),
        ("site.precompressed", "[[site]]\nroot = \".\"\nprecompressed = []\n"),
        ("site.redirect", "[[site]]\nroot = \".\"\n[[site.redirect]]\nfrom = \"/a\"\nto = \"/b\"\n"),
        ("site.route", "[[site]]\nroot = \".\"\n[[site.route]]\npath = \"/a\"\n"),
        ("site.spa", "[[site]]\nroot = \".\"\nspa = \"/index.html\"\n"),
        ("site.symlinks", "[[site]]\nroot = \".\"\nsymlinks = \"deny\"\n"),
        ("site.try_files", "[[site]]\nroot = \".\"\ntry_files = [\"{path}\"]\n"),
    ];

    #[test]
    fn what_has_no_effect_is_refused() {
        for (name, text) in SAID {
            let config = Config::parse("x.toml".as_ref(), text, |_| None).expect(text);
            assert!(config.changed().iter().any(|changed| changed.name == *name), "{name}");
            let failure = refuse(&config).expect_err(name).to_string();
            assert!(failure.contains(": this is not in this build\n"), "{failure}");
        }
        let named: Vec<&str> = SAID.iter().map(|(name, _)| *name).collect();
        let listed: Vec<&str> =
            NOT_IN_THIS_BUILD.iter().copied().filter(|name| *name != "listen.unix").collect();
        assert_eq!(named, listed, "the list and what is tried of it");
    }
}
