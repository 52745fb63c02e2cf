//! An async handler that reads a body that it does not get.

use shearwater::{App, Call, later, post};

async fn read(call: &mut Call) {
    while call.read().await.is_some() {}
}

fn main() {
    let _ = App::new().route("/", post(later(read)));
}
