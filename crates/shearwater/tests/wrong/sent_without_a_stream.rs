//! A `Sent` without a stream.

use shearwater::{App, Call, Sent, get, later};

async fn nothing(_: &mut Call) -> Sent {
    Sent(())
}

fn main() {
    let _ = App::new().route("/", get(later(nothing)));
}
