//! The program. Exit codes: 0 served and stopped, 1 the system prevents it, or a worker or the process that took over
//! failed, 2 a wrong command line or configuration.

#![forbid(unsafe_code)]

#[cfg(not(panic = "unwind"))]
compile_error!("build with `panic = \"unwind\"`: a panicking handler costs one request, not the server");

mod access_log;
mod admin;
mod args;
mod check;
mod control;
mod diagnostics;
mod failure;
mod flag_site;
mod guards;
mod health;
mod http_client;
mod init;
mod intent;
mod manual;
mod other_names;
mod other_servers;
mod pid_file;
mod plan;
mod precompress;
mod proxies;
mod reload;
mod report;
mod running_server;
mod settings;
mod signal;
mod site;
mod sites;
mod style;
mod tls;
mod top;
mod upgrade;
mod values;
mod watch;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use shearwater::Running;
use shearwater_metrics::{Admin, Metrics};

use crate::args::{Command, CommandLine, Serve};
use crate::control::Reply;
use crate::control::server::{Commands, ControlServer};
use crate::failure::Failure;
use crate::pid_file::{PidFile, PreparedPidFile};
use crate::plan::Plan;
use crate::reload::Reloader;
use crate::style::Style;
use crate::tls::{RunningTls, TlsPlan};
use crate::upgrade::Upgrader;
use crate::watch::WatchedPaths;

/// Returns memory to the system when a worker becomes idle (see `docs/decisions/0002-allocator.md`).
#[global_allocator]
static ALLOCATOR: shearwater_allocator::MiMalloc = shearwater_allocator::MiMalloc;

fn main() -> ExitCode {
    shearwater::engine::set_signals_for_program();
    let arguments: Vec<_> = std::env::args_os().collect();
    let command_line = match CommandLine::try_parse_from(&arguments) {
        Ok(command_line) => command_line,
        Err(error) => return exit_unparsed(&error, &arguments[1.min(arguments.len())..]),
    };
    let result = match &command_line.command {
        None => serve(&command_line.serve),
        Some(Command::Serve(arguments)) => serve(arguments),
        Some(Command::Check(check)) => check::check(check),
        Some(Command::Config(config)) => check::config(&config.text),
        Some(Command::Completions(arguments)) => manual::completions(arguments.shell),
        Some(Command::Health(arguments)) => health::check(arguments),
        Some(Command::Init(arguments)) => init::init(arguments.folder.as_deref()),
        Some(Command::Man(arguments)) => manual::man(arguments.to.as_deref()),
        Some(Command::Precompress(precompress)) => precompress::run(precompress),
        Some(Command::Certificates(arguments)) => tls::certificates::list(arguments),
        Some(Command::Reload(arguments)) => signal::reload(arguments),
        Some(Command::Top(arguments)) => top::run(arguments),
        Some(Command::Upgrade(running)) => signal::upgrade(running),
    };
    exit(result)
}

/// Returns freed memory to the system: Rust's, and that of libraries in C, such as that of TLS.
fn give_back() {
    shearwater_allocator::give_back();
    shearwater::engine::give_back_heap();
}

/// Starts the server, prints the start report, and serves until it is stopped.
fn serve(arguments: &Serve) -> Result<(), Failure> {
    shearwater::engine::claim_inherited_sockets();
    let arguments = arguments.expanded()?;
    let mut plan = Plan::new(&arguments)?;
    let metrics = plan.admin.as_ref().map(|_| admin::metrics(&arguments));
    plan.site.count_by(metrics.as_ref());
    let pid_file = arguments.pid_file.as_deref().map(PidFile::prepare).transpose()?;
    let for_upgrade = arguments.clone();
    diagnostics::install(plan.messages);
    let tls = start_tls(&mut plan, metrics.as_ref())?;
    let watched = WatchedPaths::default();
    let reloader = Arc::new(Reloader::new(arguments, &plan, tls.clone(), metrics.clone(), watched.clone()));
    diagnostics::warn_of_configuration(&plan.warnings());
    let certificates = plan.tls.as_ref().map(TlsPlan::lines).unwrap_or_default();
    let Plan { mut server, mut site, overridden, log, admin, .. } = plan;
    server = tls.iter().fold(server, |server, tls| server.tls(tls.shared()));
    let print_report = report::printer(for_upgrade.quiet, log.as_ref());
    let log_line = log.as_ref().map(|log| log.description.clone());
    let mut opened = None;
    if let Some(planned) = log {
        let destination = planned.destination();
        let (with_log, log) = access_log::attach(server, planned, metrics.clone())?;
        metrics.iter().for_each(|metrics| admin::count_log(metrics, &log, &destination));
        (server, opened) = (with_log, Some(log));
    }
    let mut admin_server = None;
    if let (Some(planned), Some(metrics)) = (admin, &metrics) {
        let (observed, admin) = admin::start(planned, server, metrics)?;
        (server, admin_server) = (observed, Some(admin));
    }
    let admin_line = admin_server.as_ref().map(report::admin);
    // The configuration as parsed takes ten times the memory of the sites that were made of it.
    shearwater_allocator::give_back();
    let upgrader = Upgrader::new(&for_upgrade, admin_server.as_ref().map(Admin::control), tls.clone());
    let of_signals = Arc::clone(&reloader);
    let server = server.handle_signals().on_reload(move |control| of_signals.reload(control));
    let server = server.take_over().on_upgrade(move |control| upgrader.upgrade(control));
    let server = server.notify_manager().serves(&site.description).at_rest(give_back);
    let running = site.start(server)?;
    metrics.iter().for_each(|metrics| metrics.serving(&running));
    // From now on signals are handled and connections accepted.
    let commands = commands(&running, reloader, tls.clone());
    // Before the PID file, which a command may wait for.
    let beside = for_upgrade.pid_file.as_deref();
    let control_server =
        beside.and_then(|pid_file| ControlServer::beside(pid_file, running.predecessor(), commands));
    let mut pid_file = pid_file.and_then(PreparedPidFile::write);
    let lines = report::Lines {
        certificates: &certificates,
        log: log_line.as_deref(),
        admin: admin_line.as_deref(),
        overridden: &overridden,
        is_verbose: for_upgrade.verbose,
    };
    print_report(&report::start(&site, running.start_report(), &lines));
    follow_start(&for_upgrade, &running, watched);
    precompress::warn_in_background(std::mem::take(&mut site.roots));
    // A reload replaces the sites.
    drop(site);
    let control = running.control();
    let summary = running.wait();
    tls.iter().for_each(RunningTls::stop);
    let has_failed_successor = matches!(&summary, Err(shearwater::Error::SuccessorFailed { .. }));
    let is_succeeded = control.has_passed_listeners() && !has_failed_successor;
    control_server.into_iter().for_each(|server| server.end(is_succeeded));
    if is_succeeded {
        pid_file.iter_mut().for_each(PidFile::leave);
    }
    admin_server.into_iter().for_each(Admin::end);
    opened.into_iter().for_each(|log| {
        log.end();
    });
    print_report(&report::end(&summary?));
    Ok(())
}

/// Does what `--watch` and `--open` ask for once the server serves.
fn follow_start(arguments: &Serve, running: &Running, watched: WatchedPaths) {
    if arguments.watch
        && let Err(error) = watch::start(watched, running.operator())
    {
        tracing::warn!(target: "shearwater", kind = "watch_failed", "can't start a thread for `--watch`: {error}");
    }
    // An upgrade has its predecessor's flags.
    if arguments.open && running.predecessor().is_none() {
        let url = report::first_url(running.start_report());
        if url.as_ref().is_none_or(|url| open::that_detached(url).is_err()) {
            let url = url.unwrap_or_else(|| "an address: the server listens on a socket only".to_owned());
            tracing::warn!(target: "shearwater", kind = "browser_failed", "there is no browser to open {url}");
        }
    }
}

/// Returns the commands of the control socket.
fn commands(running: &Running, reloader: Arc<Reloader>, tls: Option<RunningTls>) -> Commands {
    let control = running.control();
    Commands::of(running.operator(), running.control())
        .with("check", move |_| Reply::of(reloader.check(&control), None))
        .with("certificates", move |request| tls::certificates::reply(tls.as_ref(), request))
}

/// Begins to get certificates, and has the sites serve their challenges.
fn start_tls(plan: &mut Plan, metrics: Option<&Metrics>) -> Result<Option<RunningTls>, Failure> {
    let tls = plan.tls.clone().map(RunningTls::start).transpose()?;
    if let Some(tls) = &tls {
        // Before the sites are shared with reloads.
        plan.site.sites.answer_challenges(tls.find_challenge());
        metrics.into_iter().for_each(|metrics| tls.show_in(metrics));
    }
    Ok(tls)
}

/// Prints the failure, if there is one, and returns its exit code.
fn exit(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // If standard error is closed, the exit code remains.
            let text = Style::of_stderr().diagnostics(&failure.to_string());
            drop(io::stderr().write_all(text.as_bytes()));
            ExitCode::from(failure.code)
        }
    }
}

/// Handles a command line that can't be parsed or that asks for help, and returns the exit code.
fn exit_unparsed(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let mut program = CommandLine::command();
    // Its commands get their full names, which messages have.
    program.build();
    match intent::of_unreadable(error, arguments, &program) {
        Some(failure) => exit(Err(failure)),
        None if error.use_stderr() => {
            drop(error.print());
            ExitCode::from(2)
        }
        None => exit(report::printed(error.print().and_then(|()| io::stdout().flush()))),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::args::CommandLine;
    use crate::intent::COMMANDS;

    #[test]
    fn suggests_every_command() {
        let mut program = CommandLine::command();
        program.build();
        let commands = program.get_subcommands();
        let names: Vec<_> =
            commands.flat_map(|command| command.get_visible_aliases().chain([command.get_name()])).collect();
        assert!(names.iter().all(|name| COMMANDS.contains(name)), "{names:?}");
        assert_eq!(names.len(), COMMANDS.len());
    }
}
