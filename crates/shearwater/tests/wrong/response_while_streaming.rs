//! A change of the response while its body is streamed.

use shearwater::{App, Call, Head, Sent, get, later};

async fn stream(call: &mut Call) -> Sent {
    let body = call.begin(Head::ok("text/plain"));
    call.response().status(201);
    body.end()
}

fn main() {
    let _ = App::new().route("/", get(later(stream)));
}
