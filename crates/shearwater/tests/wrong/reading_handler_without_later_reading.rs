//! A reading handler made by `later`.

use shearwater::{App, Call, Reading, later, post};

async fn read(call: &mut Call<(), Reading>) {
    while call.read().await.is_some() {}
}

fn main() {
    let _ = App::new().route("/", post(later(read)));
}
