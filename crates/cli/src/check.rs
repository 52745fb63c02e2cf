//! `shearwater check` and `shearwater config`: errors in a configuration file, and its text.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};
use shearwater_config::{Diagnostics, Findings, Problem, print_default, print_effective};
use shearwater_files::{LeavingLink, LeavingLinks};

use crate::admin::PlannedAdmin;
use crate::args::{Check, ConfigText, Serve};
use crate::failure::{Failure, Reason};
use crate::plan::{Plan, read_config};
use crate::precompress::{find_unused, unused_as_json, unused_as_text};
use crate::report::{self, print};
use crate::site::Root;
use crate::tls::{SiteCertificate, TlsPlan};

/// Checks a configuration file as far as possible without binding.
pub(crate) fn check(check: &Check) -> Result<(), Failure> {
    let file = &check.file;
    match (Plan::new(&Serve::by(file)), check.json) {
        (Ok(plan), true) => print(&format!("{}\n", valid_json(file, &plan))),
        (Ok(plan), false) => {
            print(&summary(file, &plan))?;
            let siblings = unused_as_text(&find_unused(&plan.site.roots));
            let links: String = find_leaving(&plan.site.roots)
                .iter()
                .map(|message| format!("warning: {message}\nhelp: {FOLLOW_HELP}\n"))
                .collect();
            drop(write!(std::io::stderr(), "{}{siblings}{links}", plan.warnings()));
            Ok(())
        }
        (Err(failure), true) => {
            print(&format!("{}\n", invalid_json(file, &failure)))?;
            Err(Failure::reported(failure.code))
        }
        (Err(failure), false) => Err(failure),
    }
}

const FOLLOW_HELP: &str = "`symlinks = \"follow\"` serves them, if all files that they lead to may be public";

/// Returns a message for each folder that has links that lead out of it.
fn find_leaving(roots: &[Root]) -> Vec<String> {
    let mut messages = BTreeMap::new();
    for Root { path, folder, .. } in roots {
        let LeavingLinks { count, example, is_whole } = folder.leaving_links();
        if let Some(LeavingLink { link, target }) = example {
            let (more, root) = (if is_whole { "" } else { " or more" }, path.display());
            let what = match (count, is_whole) {
                (1, true) => format!("1 link in {root} leads out of it and gets a 403"),
                _ => format!("{count}{more} links in {root} lead out of it and get a 403"),
            };
            messages.insert(path, format!("{what}, such as {link:?} to {target:?}"));
        }
    }
    messages.into_values().collect()
}

/// Prints the default configuration, or the one in effect.
pub(crate) fn config(text: &ConfigText) -> Result<(), Failure> {
    match text {
        ConfigText::Default => print(&print_default()),
        ConfigText::Show { file } => {
            let head = format!("# {} with defaults filled in.\n\n", file.display());
            let (config, _) = read_config(file, |_| Findings::default())?;
            print(&(head + &print_effective(&config)))
        }
    }
}

/// Returns the addresses with TLS, as in the plan's list.
fn encrypted(plan: &Plan) -> Vec<String> {
    plan.tls.iter().flat_map(|tls| &tls.addresses).map(ToString::to_string).collect()
}

/// Returns the certificates of the sites.
fn certificates_json(tls: &TlsPlan) -> Vec<Value> {
    let of_site = |certificate: &SiteCertificate| {
        let facts = certificate.facts.as_ref();
        json!({
            "hosts": certificate.hosts,
            "source": tls.describe(certificate),
            "names": facts.map(|facts| &facts.names),
            "not_after": facts.map(|facts| facts.not_after),
        })
    };
    tls.certificates.iter().map(of_site).collect()
}

fn summary(file: &Path, plan: &Plan) -> String {
    let mut text = format!("{} is valid. The server would use:\n", file.display());
    let encrypted: Vec<String> = encrypted(plan);
    for address in &plan.addresses {
        let by_tls = if encrypted.contains(address) { " (TLS)" } else { "" };
        report::line(&mut text, "address", &format!("{address}{by_tls}"));
    }
    report::serves(&mut text, &plan.site, usize::MAX);
    plan.site.guarded.iter().for_each(|guarded| report::line(&mut text, "guarded", guarded));
    let workers = if plan.workers == 0 { "one per core".to_owned() } else { plan.workers.to_string() };
    report::line(&mut text, "workers", &workers);
    report::line(&mut text, "memory", &report::memory(plan.buffered_bytes_max));
    if let Some(tls) = &plan.tls {
        tls.lines().iter().for_each(|line| report::line(&mut text, "certificate", line));
    }
    if let Some(log) = &plan.log {
        report::line(&mut text, "log", &log.description);
    }
    if let Some(admin) = &plan.admin {
        report::line(&mut text, "admin", &admin.address());
    }
    text
}

fn valid_json(file: &Path, plan: &Plan) -> Value {
    let mut warnings = plan.file_warnings.as_ref().map(problems_json).unwrap_or_default();
    warnings.extend(plan.site.warnings.iter().map(|message| json!({ "message": message })));
    let links = find_leaving(&plan.site.roots).into_iter();
    warnings.extend(links.map(|message| json!({ "message": message, "help": FOLLOW_HELP })));
    json!({
        "file": file.to_string_lossy(),
        "valid": true,
        "addresses": plan.addresses,
        "encrypted": encrypted(plan),
        "certificates": plan.tls.as_ref().map(certificates_json).unwrap_or_default(),
        "serves": plan.site.description,
        "guarded": plan.site.guarded,
        "workers": plan.workers,
        "buffered_bytes_max": plan.buffered_bytes_max,
        "admin": plan.admin.as_ref().map(PlannedAdmin::address),
        "log": plan.log.as_ref().map(|log| &log.description),
        "errors": [],
        "warnings": warnings,
        "unused_siblings": unused_as_json(&find_unused(&plan.site.roots)),
    })
}

fn invalid_json(file: &Path, failure: &Failure) -> Value {
    let (errors, left_out) = match &failure.reason {
        Reason::Config(errors) => (problems_json(errors), errors.left_out),
        Reason::Error { message, help } => (vec![json!({ "message": message, "help": help })], 0),
        Reason::Reported => (Vec::new(), 0),
    };
    json!({
        "file": file.to_string_lossy(),
        "valid": false,
        "errors": errors,
        "errors_left_out": left_out,
    })
}

fn problems_json(diagnostics: &Diagnostics) -> Vec<Value> {
    let problem = |Problem { line, column, key, message, help, .. }: &Problem| json!({ "line": line, "column": column, "key": key, "message": message, "help": help });
    diagnostics.problems.iter().map(problem).collect()
}
