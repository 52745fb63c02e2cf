//! An async function without `later`.

use shearwater::{App, Call, get};

async fn hello(_: &mut Call) -> &'static str {
    "hello"
}

fn main() {
    let _ = App::new().route("/", get(hello));
}
