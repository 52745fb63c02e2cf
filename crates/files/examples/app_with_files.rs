//! An app and files side by side: `/hello/NAME` by a handler, everything else from a folder.
//! `cargo run --release -p shearwater-files --example app_with_files [FOLDER]`, then `curl http://127.0.0.1:8080/hello/you`.
use shearwater::{App, Request, Response, Server};
use shearwater_files::Folder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Folder::open(std::env::args().nth(1).unwrap_or_else(|| "public".to_owned()).as_ref())?;
    let mut app = App::new();
    app.get("/hello/{name}", |request: &Request, response: &mut Response| {
        match request.param_decoded("name") {
            Some(name) => response.text(&format!("Hello, {name}!\n")),
            None => response.status(400).text("This name is not percent-encoded UTF-8.\n"),
        };
    });
    // Each worker has its own view of the folder, with its own cache.
    app.mount("/", move |_worker| folder.files());
    Server::new("127.0.0.1:8080").run_app(app)?;
    Ok(())
}
