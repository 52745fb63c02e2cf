//! `shearwater check`: what is wrong with a configuration, or what it comes to.

use std::io::Write;

use shearwater_config::{Errors, Problem};

use crate::args::{Check, Serve};
use crate::banner;
use crate::configured::{self, Plan};
use crate::failure::Failure;
use crate::json::Json;
use crate::{say, unused_siblings};

/// Checks a file as far as it can be without binding anything.
pub(crate) fn check(check: &Check) -> Result<(), Failure> {
    let plan = configured::plan(&Serve::by(&check.file));
    match (plan, check.json) {
        (Ok(plan), true) => say(&format!("{}\n", right(check, &plan))),
        (Ok(plan), false) => {
            say(&described(check, &plan));
            let siblings = unused_siblings::as_text(&unused_siblings::look(plan.site.roots()));
            drop(write!(std::io::stderr(), "{}{siblings}", warned(&plan.warnings)));
        }
        (Err(failure), true) => {
            say(&format!("{}\n", wrong(check, &failure)));
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
    text
}

/// What can be served, but is hardly meant, with its places; nothing where there is nothing.
fn warned(warnings: &Errors) -> String {
    match warnings.problems.len() + warnings.left_out {
        0 => String::new(),
        1 => format!("{warnings}\nshearwater: this is a warning: it can be served\n"),
        count => format!("{warnings}\nshearwater: these are {count} warnings: it can be served\n"),
    }
}

fn right(check: &Check, plan: &Plan) -> Json {
    Json::Object(vec![
        ("file", Json::text(check.file.display())),
        ("right", Json::Flag(true)),
        ("listen", Json::List(plan.addresses.iter().map(Json::text).collect())),
        ("serve", Json::text(&plan.site)),
        ("workers", Json::Number(u64::from(plan.workers))),
        ("problems", Json::List(Vec::new())),
        ("warnings", problems(&plan.warnings)),
        ("unused_siblings", unused_siblings::as_json(&unused_siblings::look(plan.site.roots()))),
    ])
}

fn problems(errors: &Errors) -> Json {
    let problem = |problem: &Problem| {
        Json::Object(vec![
            ("line", Json::Number(problem.line as u64)),
            ("column", Json::Number(problem.column as u64)),
            ("key", Json::text(&problem.key)),
            ("what", Json::text(&problem.what)),
        ])
    };
    Json::List(errors.problems.iter().map(problem).collect())
}

fn wrong(check: &Check, failure: &Failure) -> Json {
    let (problems, left_out) = match failure.problems() {
        Some(errors) => (problems(errors), errors.left_out),
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
