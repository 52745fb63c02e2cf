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
use testkit::{Program, coded, free_address};

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
struct ComparedSite {
    name: String,
    shearwater: String,
    nginx: String,
    static_web_server: Option<String>,
}

/// All sites with the files below their root.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComparedSites {
    site: Vec<ComparedSite>,
    files: BTreeMap<String, String>,
    #[serde(skip)]
    root: PathBuf,
}

/// Returns the length of the generated file that a request names.
pub(super) fn generated_len(line: &str) -> Option<usize> {
    GENERATED.iter().find(|(name, ..)| line.contains(name)).map(|(_, len, _)| *len)
}

impl ComparedSites {
    /// Parses the data file.
    pub(super) fn parse() -> Result<Self> {
        toml::from_str(SITES).context("sites.conf")
    }

    /// Writes the files.
    pub(super) fn lay_out(context: &CaseContext<'_>) -> Result<Self> {
        let sites = Self { root: context.folder.join("root"), ..Self::parse()? };
        let date = |path: &Path| {
            // With a fraction of a second: a date without one may be that of every version.
            File::options().write(true).open(path)?.set_modified(UNIX_EPOCH + Duration::new(DATED_S, 500))
        };
        for (name, text) in &sites.files {
            date(&context.write_file(&format!("root/{name}"), &sites.content_of(name, text))?)?;
        }
        for (name, len, form) in GENERATED {
            context.write_file(&format!("root/{name}"), &generated(name, len, form))?;
        }
        context.write_file("root/ranges/empty.bin", b"")?;
        date(&sites.root.join("ranges/dated.bin"))?;
        context.write_file("outside.txt", b"outside\n")?;
        symlink("small.txt", sites.root.join("link-in.txt"))?;
        symlink("../outside.txt", sites.root.join("link-out.txt"))?;
        thread::sleep(SETTLED);
        Ok(sites)
    }

    /// Returns the content of a file: siblings begin as their codings do.
    fn content_of(&self, name: &str, text: &str) -> Vec<u8> {
        match name.rsplit_once('.').map(|(plain, extension)| (self.files.get(plain), extension)) {
            Some((Some(plain), extension)) => coded(extension, text, plain.len()),
            _ => text.as_bytes().to_vec(),
        }
    }

    /// Returns the name of a file by its content.
    pub(super) fn name_of(&self, content: &[u8]) -> Option<&str> {
        let is_file =
            |(name, text): &(&String, &String)| !text.is_empty() && self.content_of(name, text) == content;
        let generated_file = || {
            let is_file = |(name, len, form): &&(&str, usize, u32)| {
                *len == content.len() && generated(name, *len, *form) == content
            };
            GENERATED.iter().find(is_file).map(|(name, ..)| *name)
        };
        self.files.iter().find(is_file).map(|(name, _)| name.as_str()).or_else(generated_file)
    }
}

fn generated(name: &str, len: usize, form: u32) -> Vec<u8> {
    let mut bytes = content(form, 0, len);
    if name.ends_with(".gz") {
        // Its magic number, and the length of `ranges/packed.bin`.
        bytes[..3].copy_from_slice(&[0x1f, 0x8b, 8]);
        bytes[len - 4..].copy_from_slice(&1024_u32.to_le_bytes());
    }
    bytes
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
    pub(super) fn ours(context: &CaseContext<'_>, sites: &ComparedSites) -> Result<Self> {
        Self::start(sites, |site| {
            let path = context.folder.join(format!("{}.toml", site.name));
            fs::write(&path, &site.shearwater)?;
            let mut command = Command::new(&context.programs.server);
            command.arg("--config").arg(path);
            context.with_one_worker().start_server(command).map(Some)
        })
    }

    /// Starts another server, on the sites that it has.
    pub(super) fn of(peer: Peer, context: &CaseContext<'_>, sites: &ComparedSites) -> Result<Self> {
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

    fn start(
        sites: &ComparedSites,
        start: impl Fn(&ComparedSite) -> Result<Option<Program>>,
    ) -> Result<Self> {
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
    let text = include_str!("../../data/compare/nginx.conf").replace("TYPES", &types.display().to_string());
    let text = text.replace("LISTEN", &address.to_string()).replace("ROOT", &root.display().to_string());
    Ok(text.replace("SITE", site))
}

fn static_web_server(root: &Path, site: &str) -> String {
    let general = include_str!("../../data/compare/static-web-server.toml");
    format!("{general}{site}").replace("ROOT", &root.display().to_string())
}
