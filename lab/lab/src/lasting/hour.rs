//! Events of a handler of our own, one a second for an hour of the simulated kernel's clock: each has to arrive in its second.

use std::time::Duration;

use shearwater::testing::Tested;
use shearwater::{App, Call};

pub(super) const ABOUT: &str = "events of our own, an hour of the simulated clock";
const EVENTS: u64 = 3600;
const EVERY: Duration = Duration::from_secs(1);

fn event(number: u64) -> String {
    format!("data: {number}\n\n")
}

async fn events(call: &mut Call) {
    call.response().content_type("text/event-stream").field("Cache-Control", "no-store");
    for number in 0..EVENTS {
        call.sleep(EVERY).await;
        if call.send(event(number).as_bytes()).await.is_err() {
            return;
        }
    }
}

/// All events, in order and in time, on a connection that nothing else keeps open.
pub(super) fn run() -> Result<String, String> {
    let mut app = App::new();
    app.get_async("/events", events);
    let mut tested = Tested::new(app).map_err(|error| error.to_string())?;
    let mut client = tested.connect();
    client.send("GET /events HTTP/1.1\r\nHost: lab\r\n\r\n");
    tested.settle();
    for number in 0..EVENTS {
        tested.pass(EVERY);
        let wanted = event(number);
        if !client
            .unread()
            .windows(wanted.len())
            .rev()
            .take(wanted.len() * 2 + 16)
            .any(|at| at == wanted.as_bytes())
        {
            return Err(format!("event {number} did not come in its second"));
        }
    }
    tested.settle();
    let answer = client.answer().ok_or("the answer has no end")?;
    let wanted: String = (0..EVENTS).map(event).collect();
    if answer.status != 200 || answer.text() != wanted {
        return Err(format!(
            "a {} with {} bytes, not the {} wanted",
            answer.status,
            answer.body.len(),
            wanted.len()
        ));
    }
    Ok(format!("{EVENTS} events, {} ms of the clock", tested.now_ms()))
}
