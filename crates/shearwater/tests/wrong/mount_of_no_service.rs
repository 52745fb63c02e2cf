//! A mount that makes no service.

use shearwater::App;

fn main() {
    let _ = App::new().mount("/files", "public");
}
