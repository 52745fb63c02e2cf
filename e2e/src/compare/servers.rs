//! The servers, and the sites that each is configured for.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use testkit::versions::content;
use testkit::{Program, free_address};

use crate::context::CaseContext;
use crate::report::CaseReport;
use crate::runner::workspace;

const SITES: &str = include_str!("../../data/compare/sites.conf");
/// Files whose bytes are generated: name, length, and the form that tells them apart.
const GENERATED: [(&str, usize, u32); 5] = [
    ("ranges/small.bin", 1024, 1),
    ("ranges/large.bin", 1024 * 1024, 2),
    ("ranges/packed.bin", 1024, 3),
    ("ranges/packed.bin.gz", 512, 4),
    ("ranges/dated.bin", 1024, 5),
];
/// Sun, 06 Nov 1994 08:49:37 GMT, at which no file here was written.
const DATED_S: u64 = 784_111_777;
/// nginx takes a date as a strong validator once its second is over, Shearwater two seconds later.
const SETTLED: Duration = Duration::from_secs(3);

/// A server to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Peer {
    Nginx,
    StaticWebServer,
}

/// A site with its configurations.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Site {
    name: String,
    shearwater: String,
    nginx: String,
    static_web_server: Option<String>,
}

/// All sites with the files below their root.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sites {
    site: Vec<Site>,
    files: BTreeMap<String, String>,
    #[serde(skip)]
    root: PathBuf,
}

/// Returns the length of the generated file that a request names.
pub(super) fn generated_len(line: &str) -> Option<usize> {
    GENERATED.iter().find(|(name, ..)| line.contains(name)).map(|(_, len, _)| *len)
}

impl Sites {
    /// Parses the data file.
    pub(super) fn parse() -> Result<Self> {
        toml::from_str(SITES).context("sites.conf")
    }

    /// Writes the files.
    pub(super) fn lay_out(context: &CaseContext<'_>) -> Result<Self> {
        let sites = Self { root: context.folder.join("root"), ..Self::parse()? };
        let date = |path: &Path| {
            File::options().write(true).open(path)?.set_modified(UNIX_EPOCH + Duration::from_secs(DATED_S))
        };
        for (name, text) in &sites.files {
            date(&context.write_file(&format!("root/{name}"), text.as_bytes())?)?;
        }
        for (name, len, form) in GENERATED {
            context.write_file(&format!("root/{name}"), &generated(len, form))?;
        }
        context.write_file("root/ranges/empty.bin", b"")?;
        date(&sites.root.join("ranges/dated.bin"))?;
        context.write_file("outside.txt", b"outside\n")?;
        symlink("small.txt", sites.root.join("link-in.txt"))?;
        symlink("../outside.txt", sites.root.join("link-out.txt"))?;
        thread::sleep(SETTLED);
        Ok(sites)
    }

    /// Returns the name of a file by its content.
    pub(super) fn name_of(&self, content: &[u8]) -> Option<&str> {
        let is_file = |(_, text): &(&String, &String)| !text.is_empty() && text.as_bytes() == content;
        let generated_file = || {
            let is_file = |(_, len, form): &&(&str, usize, u32)| {
                *len == content.len() && generated(*len, *form) == content
            };
            GENERATED.iter().find(is_file).map(|(name, ..)| *name)
        };
        self.files.iter().find(is_file).map(|(name, _)| name.as_str()).or_else(generated_file)
    }
}

fn generated(len: usize, form: u32) -> Vec<u8> {
    content(form, 0, len)
}

impl Peer {
    pub(super) const ALL: [Self; 2] = [Self::Nginx, Self::StaticWebServer];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::StaticWebServer => "static-web-server",
        }
    }

    /// The program: the one that the lab has built, else the system's.
    fn program(self) -> PathBuf {
        let built = workspace().join("target/peers/tools/bin").join(self.name());
        if built.exists() { built } else { PathBuf::from(self.name()) }
    }

    /// Its version; `None` if it isn't installed.
    pub(super) fn version(self) -> Option<String> {
        let option = if self == Self::Nginx { "-v" } else { "--version" };
        let output = Command::new(self.program()).arg(option).output().ok()?;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let version = |word: &str| {
            word.rsplit('/')
                .next()
                .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
                .map(str::to_owned)
        };
        text.split_whitespace().find_map(version)
    }
}

/// The servers of one program, one for each site.
pub(super) struct Servers(BTreeMap<String, Program>);

impl Servers {
    /// Starts Shearwater.
    pub(super) fn ours(context: &CaseContext<'_>, sites: &Sites) -> Result<Self> {
        Self::start(sites, |site| {
            let path = context.folder.join(format!("{}.toml", site.name));
            fs::write(&path, &site.shearwater)?;
            let mut command = Command::new(&context.programs.server);
            command.arg("--config").arg(path);
            context.with_one_worker().start_server(command).map(Some)
        })
    }

    /// Starts another server, on the sites that it has.
    pub(super) fn of(peer: Peer, context: &CaseContext<'_>, sites: &Sites) -> Result<Self> {
        Self::start(sites, |site| {
            let address = free_address()?;
            let place = context.folder.join(format!("{}-{}", peer.name(), site.name));
            fs::create_dir(&place)?;
            let path = place.join("configuration.toml");
            let mut command = Command::new(peer.program());
            let text = match peer {
                Peer::Nginx => {
                    command.arg("-p").arg(&place).arg("-c").arg(&path).args(["-e", "stderr"]);
                    nginx(&sites.root, address, &site.nginx)?
                }
                Peer::StaticWebServer => {
                    let Some(text) = &site.static_web_server else { return Ok(None) };
                    command.arg("--config-file").arg(&path);
                    command.args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
                    static_web_server(&sites.root, text)
                }
            };
            fs::write(&path, text)?;
            let log = place.join("log");
            Program::start(command, address, &log).context(peer.name()).map(Some)
        })
    }

    fn start(sites: &Sites, start: impl Fn(&Site) -> Result<Option<Program>>) -> Result<Self> {
        let mut servers = BTreeMap::new();
        for site in &sites.site {
            servers.extend(start(site)?.map(|server| (site.name.clone(), server)));
        }
        Ok(Self(servers))
    }

    /// The address of a site.
    pub(super) fn address(&self, site: &str) -> Option<SocketAddr> {
        self.0.get(site).map(Program::address)
    }

    /// Stops all of them.
    pub(super) fn stop(&mut self, report: &mut CaseReport) {
        self.0.values_mut().for_each(|server| report.stop(server));
    }
}

/// The configuration of nginx as one process, with the media types that it comes with.
fn nginx(root: &Path, address: SocketAddr, site: &str) -> Result<String> {
    let about = Command::new(Peer::Nginx.program()).arg("-V").output()?;
    let about = String::from_utf8_lossy(&about.stderr).into_owned();
    let file = about.split_whitespace().find_map(|word| word.strip_prefix("--conf-path="));
    let types = Path::new(file.context("nginx -V has no --conf-path")?).with_file_name("mime.types");
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = temporary.iter().map(|kind| format!("    {kind}_temp_path {kind};\n")).collect();
    Ok(format!(
        "daemon off;\nmaster_process off;\npid nginx.pid;\nevents {{}}\nhttp {{\n{temporary}    access_log off;\n    \
         include \"{}\";\n    default_type application/octet-stream;\n    charset utf-8;\n    \
         charset_types text/css text/plain text/x-note application/javascript;\n    gzip_static on;\n    gzip_vary on;\n    \
         disable_symlinks if_not_owner from=$document_root;\n    absolute_redirect off;\n    server {{\n        \
         listen {address};\n        root \"{}\";\n        location ~ /\\.(?!well-known/) {{ return 404; }}\n{site}    }}\n}}\n",
        types.display(),
        root.display()
    ))
}

fn static_web_server(root: &Path, site: &str) -> String {
    let general = "[general]\nroot = \"ROOT\"\nlog-level = \"error\"\nthreads-multiplier = 1\ncompression = false\n\
        compression-static = true\ncache-control-headers = false\nsecurity-headers = false\nignore-hidden-files = true\n\
        redirect-trailing-slash = true\n";
    format!("{general}{site}").replace("ROOT", &root.display().to_string())
}
