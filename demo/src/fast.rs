//! Native routes of the engine in front of the application.

use std::time::Duration;

use shearwater::{App, CoroutineCall, Fast};

use crate::routes::slow::WAIT_MS_MAX;
use crate::settings::Mode;

const JSON: &str = r#"{"message":"Hello, World!"}"#;
const PLAINTEXT: &str = "Hello, World!";

/// Adds `/slow`, and in performance mode prebuilt responses to `GET` of two paths. All other requests fall through to
/// the application.
pub(crate) fn in_front(mode: Mode) -> App {
    let mut app = App::new();
    app.get_coroutine("/slow", slow);
    if mode == Mode::Performance {
        app.fast("/json", Fast::json(JSON)).fast("/plaintext", Fast::text(PLAINTEXT));
    }
    app
}

/// Handles `/slow?ms=` as a coroutine, which waits while its worker serves other requests.
fn slow(line: &mut CoroutineCall<'_>) {
    let wanted = line.query().and_then(|query| query.strip_prefix("ms="));
    match wanted.and_then(|ms| ms.parse().ok()).filter(|ms| *ms <= WAIT_MS_MAX) {
        Some(ms) => {
            line.sleep(Duration::from_millis(ms));
            line.response().text(&format!("slept {ms} ms\n"));
        }
        None => {
            line.response().status(400).text(&format!("ms should be a number, {WAIT_MS_MAX} at most\n"));
        }
    }
}
