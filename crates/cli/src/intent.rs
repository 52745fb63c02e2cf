//! Helpful errors for arguments with an obvious meaning.

use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use shearwater::engine::written::folder_of;
use shearwater_config::{nearest, parse_duration, unsupported};

use crate::failure::Failure;

const COMMANDS: [&str; 8] = ["check", "config", "health", "precompress", "reload", "serve", "top", "upgrade"];

/// Commands of other programs for serving.
const SERVING: [&str; 4] = ["start", "run", "server", "http"];

/// Flags of other programs, each with the alternative.
const FLAGS: &[(&[&str], &str)] = &[
    (
        &["--root", "--dir", "--directory", "--folder", "--path"],
        "name the folder without a flag: `shearwater FOLDER`",
    ),
    (&["--list"], "`shearwater FOLDER --listing` lists folders that have no index"),
    (&["--host"], "give address and port together: `shearwater --listen 0.0.0.0:8080`"),
    (
        &["--https", "--tls", "--ssl", "--letsencrypt", "--acme", "--certbot", "--auto-https", "--certs"],
        "`--domain NAME` gets a certificate by itself, `--cert FILE --key FILE` names your own, `--self-signed` is for trying",
    ),
    (
        &["--hosts", "--hostname", "--server-name"],
        "`--domain NAME` serves HTTPS for a name; other keys of sites are in a file",
    ),
    (
        &["--certificate", "--ssl-cert", "--tls-cert", "--ssl-key", "--tls-key", "--private-key"],
        "`--cert FILE --key FILE`",
    ),
    (&["--hsts", "--email"], "set it in a configuration file: `shearwater config default > site.toml`"),
    (&["--metrics", "--prometheus", "--status"], "`--admin 127.0.0.1:9180` serves metrics and a status page"),
    (
        &["--cors", "--cache", "--index"],
        "set it in a configuration file: `shearwater config default > site.toml`",
    ),
];

/// Flags that became commands, each with its command.
const REPLACED: &[(&str, &str)] =
    &[("--print-default", "config default"), ("--print-effective", "config show FILE")];

/// Returns an error for a command line that clap can't parse; `None` if clap's message is the best.
pub(crate) fn of_unreadable(error: &clap::Error, arguments: &[OsString]) -> Option<Failure> {
    let given = arguments.iter().filter_map(|argument| argument.to_str());
    let mut given = given.filter(|text| !text.starts_with('-'));
    let (first, second) = (given.next(), given.next());
    if first == Some("config")
        && let Some((flag, command)) =
            REPLACED.iter().find(|(flag, _)| arguments.iter().any(|given| given == flag))
    {
        return Some(Failure::usage_helped(
            format!("`{flag}` was replaced by a command"),
            format!("`shearwater {command}`"),
        ));
    }
    if first.is_some_and(|first| COMMANDS.contains(&first)) {
        return None;
    }
    let of_command = first.filter(|first| !Path::new(first).exists());
    let of_command = of_command.and_then(|first| of_command_named(first, second.unwrap_or("FOLDER")));
    of_command.or_else(|| match error.kind() {
        ErrorKind::UnknownArgument => of_flag(error),
        ErrorKind::ArgumentConflict => of_second(error, arguments),
        _ => None,
    })
}

fn of_flag(error: &clap::Error) -> Option<Failure> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    if let Some(feature) = unsupported(flag.trim_start_matches('-')) {
        let error = format!("unexpected argument: `{flag}`: {}", feature.what);
        return Some(Failure::usage_helped(error, feature.help));
    }
    let (_, help) = FLAGS.iter().find(|(names, _)| names.contains(&flag.as_str()))?;
    Some(Failure::usage_helped(format!("unexpected argument: `{flag}`"), *help))
}

/// Handles a second folder, which clap takes for a command.
fn of_second(error: &clap::Error, arguments: &[OsString]) -> Option<Failure> {
    let Some(ContextValue::String(second)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let place = arguments.iter().position(|argument| argument == OsStr::new(second))?;
    let first = arguments.get(place.checked_sub(1)?)?.display();
    let error = format!("unexpected argument: `{second}`");
    Some(match port_of(second) {
        Some(port) => Failure::usage_helped(error, format!("`shearwater {first} --port {port}`")),
        None => Failure::usage_helped(
            error,
            "to serve several folders, write a configuration with sites or routes: `shearwater config default`",
        ),
    })
}

/// Returns an error for a folder that doesn't exist, if it looks like something else.
pub(crate) fn of_missing(path: &Path) -> Option<Failure> {
    let given = path.to_str()?;
    if is_config(path) {
        return Some(Failure::usage_helped(
            format!("no such file: {given}"),
            format!("`shearwater config default > {given}` writes one to start with"),
        ));
    }
    if let Some(port) = port_of(given) {
        return Some(Failure::usage_helped(
            format!("`{given}` is an address, not a folder"),
            format!(
                "`shearwater --port {port}` listens on 127.0.0.1, `shearwater --listen 0.0.0.0:{port}` on all addresses"
            ),
        ));
    }
    of_command_named(given, "FOLDER")
}

/// Returns an error for a file given instead of a folder.
pub(crate) fn of_file(path: &Path) -> Failure {
    Failure::usage_helped(
        format!("{} is a file, not a folder", path.display()),
        format!("`shearwater {}` serves the folder that it is in", folder_of(path).display()),
    )
}

/// Returns an error for an unknown command, if a similar one exists.
fn of_command_named(given: &str, folder: &str) -> Option<Failure> {
    let help = match given {
        "help" | "version" => format!("`shearwater --{given}`"),
        _ if SERVING.contains(&given) => format!("serving needs no command: `shearwater {folder}`"),
        _ => format!("a command with a similar name exists: `shearwater {}`", nearest(given, COMMANDS)?),
    };
    Some(Failure::usage_helped(format!("no such command or folder: `{given}`"), help))
}

/// Returns whether a path looks like a configuration file.
pub(crate) fn is_config(path: &Path) -> bool {
    path.extension().and_then(OsStr::to_str).is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// Returns the port of an address: `8000`, `:8000`, `localhost:8000`, `http://localhost:8000/`.
fn port_of(given: &str) -> Option<u16> {
    let authority = given.strip_prefix("http://").unwrap_or(given).trim_end_matches('/');
    let (host, port) = authority.rsplit_once(':').unwrap_or(("", authority));
    port.parse().ok().filter(|_| !host.contains('/'))
}

/// Parses the address of `--listen`. A port without an address is on 127.0.0.1.
pub(crate) fn listen_address(given: &str) -> Result<String, String> {
    if let Ok(port) = given.parse::<u16>() {
        return Ok(format!("127.0.0.1:{port}"));
    }
    if let Some(port) = given.strip_prefix(':').and_then(|port| port.parse::<u16>().ok()) {
        return Err(format!(
            "the address is missing: 127.0.0.1:{port} is local only, 0.0.0.0:{port} is all addresses"
        ));
    }
    let is_host = given.parse::<IpAddr>().is_ok() || !given.contains(':') || given.ends_with(']');
    match is_host && !given.is_empty() {
        true if given.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()) => {
            Err(format!("the port is missing, as in [{given}]:8080"))
        }
        true => Err(format!("the port is missing, as in {given}:8080")),
        false => Ok(given.to_owned()),
    }
}

/// Parses a duration.
pub(crate) fn duration(given: &str) -> Result<Duration, String> {
    parse_duration(given).ok_or_else(|| "expected a duration, such as 10s or 500ms".to_owned())
}
