//! Writes the manual pages and the shells' completions into a folder: `cargo run -p shearwater-cli --example manual -- FOLDER`.

#![expect(dead_code, reason = "of the program only the definitions of its arguments are needed")]

#[path = "../src/args.rs"]
mod args;
#[path = "../src/failure.rs"]
mod failure;
#[path = "../src/intent.rs"]
mod intent;

use std::fs;
use std::io::{self, Error};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::{Shell, generate_to};

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

fn main() -> io::Result<()> {
    let folder = std::env::args_os().nth(1).ok_or_else(|| Error::other("name a folder to write to"))?;
    write(Path::new(&folder))
}

/// Writes everything into a folder.
fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(args::CommandLine::command(), folder)?;
    let manual = shearwater_config::manual(env!("CARGO_PKG_VERSION"));
    fs::write(folder.join("shearwater.toml.5"), manual)?;
    for shell in SHELLS {
        generate_to(shell, &mut args::CommandLine::command(), "shearwater", folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::CommandFactory;
    use testkit::TestFolder;

    #[test]
    fn pages_and_completions_have_every_flag() {
        let folder = TestFolder::new();
        super::write(folder.path()).expect("written");
        let command = super::args::CommandLine::command();
        let flags = command.get_arguments().filter_map(|flag| flag.get_long());
        let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
        let names: Vec<&str> = commands.map(|command| command.get_name()).chain(flags).collect();
        assert!(names.contains(&"listen") && names.contains(&"precompress"), "{names:?}");
        for file in ["shearwater.1", "shearwater.bash", "_shearwater", "shearwater.fish"] {
            let text = fs::read_to_string(folder.at(file)).expect(file).replace('\\', "");
            for name in &names {
                assert!(text.contains(name), "{file} lacks {name}");
            }
        }
        for file in ["shearwater-check.1", "shearwater-precompress.1", "shearwater.toml.5"] {
            assert!(folder.at(file).exists(), "{file}");
        }
        assert!(!folder.at("shearwater-serve.1").exists(), "a hidden command has no page");
    }
}
