//! Open streams while a server ends, by a signal or because another process replaces it.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use testkit::http2::Http2Client;
use testkit::{Error, Signal, random};

use super::{Origins, client_tls};
use crate::context::CaseContext;
use crate::report::{CaseReport, exit, success};

/// Length of a download: more than sockets and windows hold.
const LARGE_BYTES: usize = 16 * 1024 * 1024;
/// Downloads of a connection.
const STREAMS: usize = 8;
const CONNECTIONS: usize = 10;
/// Limit of a drain, the default.
const DRAIN: Duration = Duration::from_secs(30);

/// Downloads of one connection, of whose responses the heads have arrived.
#[derive(Debug)]
pub(crate) struct Downloads<S> {
    client: Http2Client<S>,
    streams: Vec<u32>,
}

impl<S: Read + Write> Downloads<S> {
    /// Begins as many downloads.
    pub(crate) fn begin(mut client: Http2Client<S>, target: &str, count: usize) -> Result<Self, Error> {
        let mut streams = Vec::new();
        for _ in 0..count {
            streams.push(client.send("GET", target, &[], b"")?);
        }
        for stream in &streams {
            let head = client.head(*stream)?;
            if head.status != 200 {
                return Err(Error::Malformed(format!("a download: {head:?}")));
            }
        }
        Ok(Self { client, streams })
    }

    /// Reads the rest of all of them up to the orderly end of the connection, which a GOAWAY must announce. Returns the
    /// number of right bytes.
    pub(crate) fn finish(mut self, is_right: impl Fn(usize, &[u8]) -> bool) -> Result<usize, Error> {
        let mut received = 0;
        for stream in self.streams {
            let mut at = 0;
            loop {
                let data = self.client.data(stream)?;
                if data.is_empty() {
                    break;
                }
                if !is_right(at, &data) {
                    return Err(Error::Malformed(format!("wrong content of stream {stream} from byte {at}")));
                }
                at += data.len();
            }
            received += at;
        }
        match self.client.end()? {
            Some((_, 0)) => Ok(received),
            other => Err(Error::Malformed(format!("the end is announced by {other:?}"))),
        }
    }
}

/// Drains a server by `SIGTERM` while streams are open, in clear and by TLS.
pub(crate) fn drain(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let content = random::bytes(&mut context.random(0), LARGE_BYTES);
    context.write_file("public/large.bin", &content)?;
    let origins = Origins::new()?;
    let mut server = origins.serve(context, "")?;
    let tls = client_tls()?;
    let mut downloads = Vec::new();
    for number in 0..CONNECTIONS {
        let client =
            if number % 2 == 0 { origins.connect_by_tls(&tls)? } else { origins.connect_in_clear()? };
        downloads.push(Downloads::begin(client, "/large.bin", STREAMS).context("a download")?);
    }
    let mut idle = origins.connect_by_tls(&tls)?;
    let signalled = Instant::now();
    server.signal(Signal::TERM)?;
    let end = idle.end();
    let idle_s = signalled.elapsed().as_secs_f64();
    let (mut received, mut errors) = (0, Vec::new());
    for one in downloads {
        match one.finish(|at, data| content.get(at..at + data.len()) == Some(data)) {
            Ok(bytes) => received += bytes,
            Err(error) => errors.push(error),
        }
    }
    let status = server.wait(DRAIN);
    report.check(
        "end of an idle connection",
        format!("{end:?}"),
        "GOAWAY NO_ERROR",
        matches!(end, Ok(Some((_, 0)))),
    );
    report.at_most("end of an idle connection after", idle_s, 5.0, "s");
    report.none(format!("{CONNECTIONS} connections with {STREAMS} downloads: errors"), &errors);
    report.equal("bytes of the downloads", received, CONNECTIONS * STREAMS * LARGE_BYTES);
    report.check("exit", exit(status), "exit status: 0", success(status));
    Ok(())
}
