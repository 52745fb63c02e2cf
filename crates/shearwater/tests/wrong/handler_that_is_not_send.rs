//! A handler that shares a value of one thread.

use std::rc::Rc;

use shearwater::{App, Request, get};

fn main() {
    let text = Rc::new("text".to_owned());
    let _ = App::new().route("/", get(move |_: &Request| text.to_string()));
}
