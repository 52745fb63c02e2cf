//! Middleware of another state.

use shearwater::{App, Middleware, Request, Response};

struct Sign;

impl Middleware<String> for Sign {
    fn response(&self, request: &Request<String>, response: &mut Response) {
        response.field("X-Sign", request.state());
    }
}

fn main() {
    let _ = App::new().with(Sign);
}
