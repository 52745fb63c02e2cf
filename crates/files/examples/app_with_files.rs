//! An app and files side by side: `/hello/NAME` by a handler, everything else from a folder.
//! `cargo run --release -p shearwater-files --example app_with_files [FOLDER]`, then `curl http://127.0.0.1:8080/hello/you`.
use shearwater::{App, Failure, Request, Server, get};
use shearwater_files::Folder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Folder::open(std::env::args().nth(1).unwrap_or_else(|| "public".to_owned()).as_ref())?;
    let app = App::new().route("/hello/{name}", get(hello)).mount("/", folder);
    Server::bind("127.0.0.1:8080").run(app)?;
    Ok(())
}

fn hello(request: &Request) -> Result<String, Failure> {
    Ok(format!("Hello, {}!\n", request.param::<String>("name")?))
}
