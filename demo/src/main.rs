//! An axum application to try Shearwater with: pages, JSON, a database, tokens, events, a chat, uploads.
//!
//! Everything but `serve.rs` is ordinary axum. Settings come from the environment, see `settings.rs`.
#![forbid(unsafe_code)]

mod app;
mod benchmarks;
mod chat;
mod database;
mod routes;
mod serve;
mod settings;
mod sign_in;

use std::process::ExitCode;

use crate::app::State;
use crate::database::Database;
use crate::settings::Settings;
use crate::sign_in::Keys;

/// Exit status for errors outside of the program, such as invalid settings.
const EXIT_WRONG_SETTING: u8 = 2;

fn main() -> ExitCode {
    let settings = match Settings::from_environment() {
        Ok(settings) => settings,
        Err(wrong) => return refuse(&wrong.to_string()),
    };
    match run(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => refuse(&why),
    }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("demo: {why}");
    ExitCode::from(EXIT_WRONG_SETTING)
}

/// Opens what the application needs, then serves until a signal ends it. Errors are one sentence.
fn run(settings: Settings) -> Result<(), String> {
    let Settings { mode, address, database, secret } = settings;
    let opened = Database::open(&database).map_err(|error| format!("cannot open {database}: {error}"))?;
    let keys = Keys::new(&secret.bytes).map_err(|error| format!("cannot use JWT_SECRET: {error}"))?;
    let ready = |address| {
        println!("demo: http://{address}/welcome (SERVER_MODE={mode}, DATABASE_URL={database})");
        if let Some(note) = secret.note {
            println!("demo: {note}");
        }
    };
    serve::run(address, State::new(opened, keys), mode, ready)
}
