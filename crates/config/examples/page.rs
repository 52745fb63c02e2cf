//! Prints docs/configuration.md: `cargo run -p shearwater-config --example page > docs/configuration.md`.

fn main() {
    print!("{}", shearwater_config::page());
}
