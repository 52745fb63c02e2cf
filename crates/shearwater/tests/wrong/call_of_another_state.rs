//! An async handler of another state.

use shearwater::{App, Call, get, later};

async fn hello(_: &mut Call<String>) -> &'static str {
    "hello"
}

fn main() {
    let _ = App::with_state(|_| 1).route("/", get(later(hello)));
}
