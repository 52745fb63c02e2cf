//! A folder of which the kernel has nothing in memory, as far as the server knows: each request waits for another thread.
//! `cargo lab gate` counts its instructions. `cargo run --release -p shearwater-files --example slow_disk ADDRESS FOLDER`.
use shearwater::{DriverChoice, Server};
use shearwater_files::{CacheLimits, Folder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(listen), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: slow_disk ADDRESS FOLDER".into());
    };
    let folder = Folder::open(folder.as_ref())?.with_slow_disk(|_| ());
    // A file is read into the cache, and evicted by the next one.
    let cache = CacheLimits { cached_files_max: 1, ..CacheLimits::default() };
    let server = Server::bind(listen).workers(1).driver(DriverChoice::Epoll).handle_signals();
    server.start_service(move |_worker| folder.files_with(cache))?.wait()?;
    Ok(())
}
