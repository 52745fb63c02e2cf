//! `shearwater check`: what is wrong with a configuration, or what it comes to.

use std::io::Write;

use shearwater_config::{Errors, Problem};

use crate::args::{Check, Serve};
use crate::banner;
use crate::configured::{self, Plan};
use crate::failure::Failure;
use crate::json::Json;
use crate::warnings::Warnings;
use crate::{print, unused_siblings};

/// Checks a file as far as it can be without binding anything.
pub(crate) fn check(check: &Check) -> Result<(), Failure> {
    let plan = configured::plan(&Serve::by(&check.file));
    match (plan, check.json) {
        (Ok(plan), true) => print(&format!("{}\n", right(check, &plan)))?,
        (Ok(plan), false) => {
            print(&described(check, &plan))?;
            let siblings = unused_siblings::as_text(&unused_siblings::look(plan.site.roots()));
            drop(write!(std::io::stderr(), "{}{siblings}", plan.warnings));
        }
        (Err(failure), true) => {
            print(&format!("{}\n", wrong(check, &failure)))?;
            return Err(Failure::said(failure.code));
        }
        (Err(failure), false) => return Err(failure),
    }
    Ok(())
}

fn described(check: &Check, plan: &Plan) -> String {
    let mut text = format!("{} is right. It would\n", check.file.display());
    for address in &plan.addresses {
        banner::line(&mut text, "listen on", address);
    }
    banner::line(&mut text, "serve", &plan.site.to_string());
    let workers = if plan.workers == 0 { "one per core".to_owned() } else { plan.workers.to_string() };
    banner::line(&mut text, "have workers", &workers);
    banner::line(&mut text, "hold", &banner::memory(plan.buffered_bytes_max));
    text
}

fn right(check: &Check, plan: &Plan) -> Json {
    Json::Object(vec![
        ("file", Json::text(check.file.display())),
        ("right", Json::Flag(true)),
        ("listen", Json::List(plan.addresses.iter().map(Json::text).collect())),
        ("serve", Json::text(&plan.site)),
        ("workers", Json::Number(u64::from(plan.workers))),
        ("buffered_bytes_max", Json::Number(plan.buffered_bytes_max as u64)),
        ("problems", Json::List(Vec::new())),
        ("warnings", warnings(&plan.warnings)),
        ("unused_siblings", unused_siblings::as_json(&unused_siblings::look(plan.site.roots()))),
    ])
}

fn warnings(warnings: &Warnings) -> Json {
    let mut list = problems(&warnings.of_file);
    list.extend(warnings.others.iter().map(|what| Json::Object(vec![("what", Json::text(what))])));
    Json::List(list)
}

fn problems(errors: &Errors) -> Vec<Json> {
    let problem = |problem: &Problem| {
        let mut members = vec![
            ("line", Json::Number(problem.line as u64)),
            ("column", Json::Number(problem.column as u64)),
            ("key", Json::text(&problem.key)),
            ("what", Json::text(&problem.what)),
        ];
        members.extend(problem.help.iter().map(|help| ("help", Json::text(help))));
        Json::Object(members)
    };
    errors.problems.iter().map(problem).collect()
}

fn wrong(check: &Check, failure: &Failure) -> Json {
    let (problems, left_out) = match failure.problems() {
        Some(errors) => (Json::List(problems(errors)), errors.left_out),
        None => {
            let what = failure.to_string();
            let what = what.trim_start_matches("shearwater: ").trim_end();
            (Json::List(vec![Json::Object(vec![("what", Json::text(what))])]), 0)
        }
    };
    Json::Object(vec![
        ("file", Json::text(check.file.display())),
        ("right", Json::Flag(false)),
        ("problems", problems),
        ("problems_left_out", Json::Number(left_out as u64)),
    ])
}
