//! A scope that does not return its app.

use shearwater::{App, get};

fn main() {
    let _ = App::new().scope("/api", |api| {
        api.route("/", get("hello"));
    });
}
