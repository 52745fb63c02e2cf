//! Which program a server was in a run: its version, and how old that is.

use std::path::Path;

use crate::binaries::{Binaries, root};
use crate::json::Json;
use crate::machine;
use crate::peers::lock;
use crate::release::{self, Day};
use crate::scenario::Scenario;
use crate::server::{Kind, ServerKind};
use crate::setup;

/// A server's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// What it says it is; for ours the checkout's commit.
    pub version: String,
    /// When that was released, where it is known.
    pub released: Option<Day>,
    /// Days since its file was written: for packages the day of their build.
    pub file_days: Option<u64>,
}

/// Looks at the server's program.
pub fn of(server: &ServerKind, scenario: &Scenario, binaries: &Binaries) -> Identity {
    let program = server.program_path(scenario, binaries);
    let version = version(server.kind, &program, binaries);
    Identity { released: release::day_of(&version), file_days: machine::age_days(&program), version }
}

fn version(kind: Kind, program: &Path, binaries: &Binaries) -> String {
    match kind {
        Kind::Shearwater | Kind::ShearwaterSite if binaries.are_guided() => {
            format!("{}, guided by {}", machine::commit(&root()), binaries.guidance())
        }
        Kind::Null
        | Kind::Shearwater
        | Kind::ShearwaterPlain
        | Kind::ShearwaterSite
        | Kind::ShearwaterAxum => machine::commit(&root()),
        Kind::Hyper => lock::versions(&["hyper", "tokio"]),
        Kind::Axum => lock::versions(&["axum", "hyper", "tokio"]),
        Kind::ServeDir | Kind::ServeDirOneThread => lock::versions(&["tower-http", "axum", "hyper", "tokio"]),
        Kind::Nginx | Kind::Lighttpd | Kind::H2o | Kind::StaticWebServer => setup::version_of(program),
    }
}

impl Identity {
    /// Version and age in one line.
    pub fn text(&self) -> String {
        let age = match (self.released, self.file_days) {
            (Some(day), _) => format!("released {}, {} days ago", day.text(), day.age_days()),
            (None, Some(days)) => format!("day of release unknown, built {days} days ago"),
            (None, None) => "day of release unknown".to_owned(),
        };
        format!("{} ({age})", self.version)
    }

    /// For the file of a run.
    pub fn json(&self) -> Json {
        Json::Map(vec![
            ("version", Json::text(self.version.as_str())),
            ("released", self.released.map_or(Json::Null, |day| Json::text(day.text()))),
            ("released_days_ago", self.released.map_or(Json::Null, |day| Json::Count(day.age_days()))),
            ("file_written_days_ago", self.file_days.map_or(Json::Null, Json::Count)),
        ])
    }
}
