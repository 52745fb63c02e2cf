//! Helpful errors for arguments with an obvious meaning.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use shearwater::engine::written::folder_of;
use shearwater_config::{key_named, nearest, unsupported};

use crate::failure::Failure;
use crate::other_names::{self, SERVING};
use crate::other_servers;

/// The program's commands.
pub(crate) const COMMANDS: [&str; 14] = [
    "check",
    "validate",
    "config",
    "health",
    "help",
    "precompress",
    "reload",
    "serve",
    "certificates",
    "top",
    "upgrade",
    "init",
    "completions",
    "man",
];

/// Flags that became commands, each with its command.
const REPLACED: &[(&str, &str)] =
    &[("--print-default", "config default"), ("--print-effective", "config show FILE")];

/// Returns an error for a command line that clap can't parse; `None` if clap's message is the best.
pub(crate) fn of_unreadable(
    error: &clap::Error,
    arguments: &[OsString],
    program: &clap::Command,
) -> Option<Failure> {
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
    let command = first.and_then(|first| program.find_subcommand(first));
    let of_command = first.filter(|first| command.is_none() && !Path::new(first).exists());
    let of_command = of_command.and_then(|first| of_command_named(first, second.unwrap_or("FOLDER")));
    of_command.or_else(|| match error.kind() {
        ErrorKind::UnknownArgument => of_flag(error, command.unwrap_or(program)),
        ErrorKind::ArgumentConflict if command.is_none() => of_second(error, arguments),
        ErrorKind::TooManyValues => match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(flag)) => Some(without_value(flag)),
            _ => None,
        },
        _ => None,
    })
}

/// Handles an unknown flag: by its meaning elsewhere if the command serves, then by its spelling.
fn of_flag(error: &clap::Error, command: &clap::Command) -> Option<Failure> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = flag.trim_start_matches('-');
    if name == flag {
        return None;
    }
    let serves = command.get_arguments().any(|argument| argument.get_id() == "listen");
    let unexpected = format!("unexpected argument: `{flag}`");
    let meant = Some(name).filter(|_| serves).and_then(meaning);
    Some(match meant {
        Some((Some(what), help)) => Failure::usage_helped(format!("{unexpected}: {what}"), help),
        Some((None, help)) => Failure::usage_helped(unexpected, help),
        None => Failure::usage_helped(unexpected, of_spelling(name, command)),
    })
}

/// Returns help for the name of another program's flag, of a key or of a missing feature, which is described.
fn meaning(name: &str) -> Option<(Option<&'static str>, String)> {
    if let Some(help) = other_names::of_flag(name) {
        return Some((None, help.to_owned()));
    }
    // Before missing features, because of `proxy_protocol`.
    if let Some(key) = key_named(&name.replace('-', "_")) {
        return Some((None, format!("in a configuration file: {key}")));
    }
    unsupported(name).map(|feature| (Some(feature.what), feature.help.to_owned()))
}

/// Returns help for a misspelled flag of a command.
fn of_spelling(given: &str, command: &clap::Command) -> String {
    let names = command.get_arguments().flat_map(|argument| argument.get_long_and_visible_aliases());
    let names: Vec<String> = names.flatten().map(|name| name.replace('-', "_")).collect();
    match nearest(given, names.iter().map(String::as_str)) {
        Some(near) => format!("a flag with a similar name exists: `--{}`", near.replace('_', "-")),
        None => format!("`{} --help` lists the flags", command.get_bin_name().unwrap_or(command.get_name())),
    }
}

/// Returns the error of a flag with a value that takes none.
fn without_value(flag: &str) -> Failure {
    let help = match flag {
        "--cors" => {
            "for some origins only, write `cors = { origins = [\"…\"] }` into a site of a configuration file"
        }
        "--compress" => "it chooses coding and level itself; `shearwater precompress --level` has levels",
        _ => "leave the value out",
    };
    Failure::usage_helped(format!("`{flag}` takes no value"), help)
}

/// Handles a second folder, which clap takes for a command.
fn of_second(error: &clap::Error, arguments: &[OsString]) -> Option<Failure> {
    let Some(ContextValue::String(second)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let place = arguments.iter().position(|argument| argument == OsStr::new(second))?;
    let first = arguments.get(place.checked_sub(1)?)?.display();
    let error = format!("unexpected argument: `{second}`");
    if first.to_string().starts_with("--") {
        return Some(without_value(&first.to_string()));
    }
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
    other_servers::of_file(path).unwrap_or_else(|| {
        Failure::usage_helped(
            format!("{} is a file, not a folder", path.display()),
            format!("`shearwater {}` serves the folder that it is in", folder_of(path).display()),
        )
    })
}

/// Returns an error for an unknown command that another program has, or that is similar to one of ours.
fn of_command_named(given: &str, folder: &str) -> Option<Failure> {
    let help = match other_names::of_command(given) {
        Some(help) => help.to_owned(),
        None if SERVING.contains(&given) => format!("serving needs no command: `shearwater {folder}`"),
        None => format!("a command with a similar name exists: `shearwater {}`", nearest(given, COMMANDS)?),
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

#[cfg(test)]
mod tests {
    use super::{meaning, of_command_named};

    #[test]
    fn meaning_comes_before_spelling() {
        for (flag, expected) in [
            ("debug", "[logging]"),
            ("root", "`shearwater FOLDER`"),
            ("clean-urls", "`clean_urls` of [[site]]"),
            ("log-format", "`format` of [log]"),
            ("log-level", "`level` of [logging]"),
            ("add-header", "--header"),
            ("page404", "--error-page"),
            ("quit", "SIGTERM"),
            ("hidden", "`hidden` of [[site]]"),
            ("proxy-protocol", "`proxy_protocol` of [server]"),
            ("gzip", "`--compress`"),
            ("basic-auth", "`basic_auth` of [[site]]"),
            ("oauth", "authenticate in a proxy"),
            ("allow-upload", "files are only read"),
        ] {
            let (_, help) = meaning(flag).unwrap_or_else(|| panic!("{flag}"));
            assert!(help.contains(expected), "{flag}: {help}");
        }
        assert_eq!(["domian", "lisetn", "x"].map(meaning), [None, None, None]);
        for (word, expected) in
            [("stop", "SIGTERM"), ("restart", "reload"), ("status", "top"), ("tp", "top"), ("run", "DIR`")]
        {
            let help = of_command_named(word, "DIR").unwrap_or_else(|| panic!("{word}")).to_string();
            assert!(help.contains(expected), "{help}");
        }
        assert!(of_command_named("stopp", "DIR").is_none());
    }
}
