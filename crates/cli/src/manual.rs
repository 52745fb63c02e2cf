//! `shearwater completions` and `shearwater man`: made from the definitions of arguments and keys.

use std::io::{self, Error};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::CommandLine;
use crate::failure::Failure;
use crate::report::print;

/// Files of the completions, by shell.
const COMPLETIONS: [(Shell, &str); 3] =
    [(Shell::Bash, "shearwater.bash"), (Shell::Zsh, "_shearwater"), (Shell::Fish, "shearwater.fish")];

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    print(&String::from_utf8_lossy(&completions_of(shell)))
}

/// Prints the manual page, or writes all pages and completions into a folder.
pub(crate) fn man(folder: Option<&Path>) -> Result<(), Failure> {
    match folder {
        None => print(&page().map_err(|error| Failure::output(&error))?),
        Some(folder) => write(folder).map_err(|error| {
            Failure::system(format!("can't write the manual to {}: {error}", folder.display()), None)
        }),
    }
}

fn completions_of(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "shearwater", &mut text);
    text
}

/// Returns `shearwater(1)`. Lines of the text after the options stay as they are, and it points to other pages.
fn page() -> io::Result<String> {
    let mut text = Vec::new();
    Man::new(CommandLine::command().disable_help_subcommand(true)).render(&mut text)?;
    let text = String::from_utf8(text).map_err(Error::other)?;
    let begun = text.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES, SIGNALS AND EXIT CODES\n.nf\n");
    let others = ".fi\n.SH SEE ALSO\nshearwater.toml(5), shearwater\\-check(1), shearwater\\-upgrade(1)\n.SH VERSION\n";
    Ok(begun.replace(".SH VERSION\n", others))
}

/// Writes all pages and completions into a folder.
fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(CommandLine::command(), folder)?;
    std::fs::write(folder.join("shearwater.1"), page()?)?;
    let manual = shearwater_config::manual(env!("CARGO_PKG_VERSION"));
    std::fs::write(folder.join("shearwater.toml.5"), manual)?;
    COMPLETIONS.iter().try_for_each(|&(shell, name)| std::fs::write(folder.join(name), completions_of(shell)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::CommandFactory;
    use testkit::TestFolder;

    use super::{COMPLETIONS, CommandLine, write};

    #[test]
    fn pages_and_completions_have_every_flag() {
        let folder = TestFolder::new();
        write(folder.path()).expect("written");
        let command = CommandLine::command();
        let flags = command.get_arguments().filter_map(|flag| flag.get_long());
        let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
        let names: Vec<&str> = commands.map(|command| command.get_name()).chain(flags).collect();
        assert!(names.contains(&"listen") && names.contains(&"precompress"), "{names:?}");
        for file in COMPLETIONS.map(|(_, name)| name).into_iter().chain(["shearwater.1"]) {
            let text = fs::read_to_string(folder.at(file)).expect(file).replace('\\', "");
            for name in &names {
                assert!(text.contains(name), "{file} lacks {name}");
            }
        }
        for file in ["shearwater-check.1", "shearwater-precompress.1", "shearwater.toml.5"] {
            assert!(folder.at(file).exists(), "{file}");
        }
        for hidden in ["shearwater-serve.1", "shearwater-help.1"] {
            assert!(!folder.at(hidden).exists(), "{hidden}");
        }
        let page = fs::read_to_string(folder.at("shearwater.1")).expect("a page");
        let positions = [".SH EXAMPLES", "\n.nf\n", "\n.fi\n.SH SEE ALSO\n"].map(|part| page.find(part));
        assert!(positions.is_sorted() && positions[0].is_some(), "{positions:?}");
    }
}
