//! Case `http2/clients`: clients of other people get the right bodies, in clear and by TLS.
//!
//! `e2e/data/http2/clients.sh` has a try for each. What isn't installed is skipped.

use std::fs;

use anyhow::Result;

use super::Origins;
use crate::context::CaseContext;
use crate::programs::{Try, run_all, run_script};
use crate::report::CaseReport;
use crate::runner::workspace;

const SCRIPT: &str = include_str!("../../data/http2/clients.sh");
const FOLDER: &str = "e2e/data/http2";
/// Small files, named by their numbers.
const FILES: u64 = 40;
/// Length of the large file: many windows.
const LARGE_BYTES: usize = 8_000_000;

/// Runs every client against a server of its own.
pub(crate) fn run(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let mut random = context.random(0);
    for number in 0..FILES {
        let length = 1 + random.usize(..20_000);
        let content = testkit::random::bytes(&mut random, length);
        context.write_file(&format!("public/{number}.txt"), &content)?;
    }
    context.write_file("public/line.txt", b"one line\n")?;
    context.write_file("public/large.bin", &testkit::random::bytes(&mut random, LARGE_BYTES))?;
    run_all(&Try::all(SCRIPT), report, |report, name| {
        let origins = Origins::new()?;
        let mut server = origins.serve(context, "")?;
        let folder = context.folder.join(name);
        fs::create_dir(&folder)?;
        let (clear, tls) = (format!("http://{}", origins.clear), format!("https://{}", origins.tls));
        let (site, data) = (context.folder.join("public"), workspace().join(FOLDER));
        let variables = [
            ("CLEAR", clear.as_ref()),
            ("TLS", tls.as_ref()),
            ("SITE", site.as_os_str()),
            ("DATA", data.as_os_str()),
        ];
        let log = context.folder.join(format!("{name}.log"));
        let result = run_script(&format!("{FOLDER}/clients.sh"), name, &folder, &log, &variables);
        report.stop(&mut server);
        result
    })
}
