//! A piece after the end of a stream.

use shearwater::{App, Call, Head, Sent, get, later};

async fn stream(call: &mut Call) -> Sent {
    let mut body = call.begin(Head::ok("text/plain"));
    let sent = body.end();
    body.push("more");
    sent
}

fn main() {
    let _ = App::new().route("/", get(later(stream)));
}
