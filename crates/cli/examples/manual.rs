//! Writes the manual pages and the shells' completions into a folder: `cargo run -p shearwater-cli --example manual -- FOLDER`.

#![expect(dead_code, reason = "of the program only the definitions of its arguments are needed")]

#[path = "../src/args.rs"]
mod args;
#[path = "../src/failure.rs"]
mod failure;
#[path = "../src/intent.rs"]
mod intent;
#[path = "../src/other_names.rs"]
mod other_names;
#[path = "../src/other_servers.rs"]
mod other_servers;
#[path = "../src/values.rs"]
mod values;

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
    lay_out_examples(&folder.join("shearwater.1"))?;
    let manual = shearwater_config::manual(env!("CARGO_PKG_VERSION"));
    fs::write(folder.join("shearwater.toml.5"), manual)?;
    for shell in SHELLS {
        generate_to(shell, &mut args::CommandLine::command(), "shearwater", folder)?;
    }
    Ok(())
}

/// Keeps the lines of the text after the options as they are, and points to the other pages.
fn lay_out_examples(page: &Path) -> io::Result<()> {
    let text = fs::read_to_string(page)?;
    let begun = text.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES, SIGNALS AND EXIT CODES\n.nf\n");
    let others = ".fi\n.SH SEE ALSO\nshearwater.toml(5), shearwater\\-check(1), shearwater\\-upgrade(1)\n.SH VERSION\n";
    fs::write(page, begun.replace(".SH VERSION\n", others))
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
        let page = fs::read_to_string(folder.at("shearwater.1")).expect("a page");
        let positions = [".SH EXAMPLES", "\n.nf\n", "\n.fi\n.SH SEE ALSO\n"].map(|part| page.find(part));
        assert!(positions.is_sorted() && positions[0].is_some(), "{positions:?}");
    }
}
