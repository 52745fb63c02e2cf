//! Builds nginx in `target/peers` of the working directory, without what the lab doesn't need.

#![forbid(unsafe_code)]

fn main() -> std::io::Result<()> {
    std::fs::create_dir_all("target/peers/nginx")?;
    std::fs::create_dir_all("target/peers/tools/bin")?;
    // nginx builds in a folder of its own source, so the path must be absolute.
    let (_source, built) = nginx_src::build(std::fs::canonicalize("target/peers/nginx")?)?;
    std::fs::copy(built.join("nginx"), "target/peers/tools/bin/nginx-1.28").map(drop)
}
