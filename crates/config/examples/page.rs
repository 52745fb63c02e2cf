//! Prints the page of the documentation: `cargo run -p shearwater-config --example page > docs/configuration.md`.

fn main() {
    print!("{}", shearwater_config::page());
}
