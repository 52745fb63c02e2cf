//! The text of the defaults: every key with what it means, to be copied and changed.

use crate::manual::{Key, Kind, Section, sections};

/// Characters of a line of comments.
const LINE_CHARS: usize = 100;

const HEAD: &str = "\
The configuration of shearwater: every key with its default. `shearwater check FILE` says what a file comes to; \
`shearwater config --print-effective FILE` prints all that is in effect. A key that isn't there, a value that may not \
stand there and keys that contradict each other are refused, with their place, before anything is bound.

Texts may hold variables of the environment: ${NAME}, or ${NAME:-otherwise} where it may be missing or empty; a plain \
${ is written $${. Relative paths begin in the folder of this file. Without a [[site]], the folder `public` beside this \
file is served, or a welcome page.";

/// A configuration that says what is so anyway: every key with its default and what it means. What has no default, and sections that may stand any
/// number of times, are there as comments without a space after their `#`.
#[must_use]
pub fn print_default() -> String {
    let mut text = String::new();
    for paragraph in HEAD.split("\n\n") {
        comment(&mut text, paragraph);
        text.push_str("#\n");
    }
    text.truncate(text.len() - "#\n".len());
    for section in sections().iter().filter(|section| section.kind != Kind::Inside) {
        text.push('\n');
        comment(&mut text, section.means);
        match section.kind {
            Kind::Often => text.push_str(&format!("#[[{}]]\n", section.heading)),
            _ => text.push_str(&format!("[{}]\n", section.heading)),
        }
        for key in &section.keys {
            line(&mut text, section, key);
        }
    }
    text
}

/// One key: what it means, what may stand there, and the key itself.
fn line(text: &mut String, section: &Section, key: &Key) {
    let Key { name, means, allowed, is_required, default, example } = key;
    text.push('\n');
    comment(text, means);
    match (section.kind, default, example) {
        (Kind::Once, Some(default), _) => {
            comment(text, &format!("Allowed: {allowed}."));
            text.push_str(&format!("{name} = {default}\n"));
        }
        (_, default, example) => {
            let default = match default {
                Some(default) => format!(" Default: {default}."),
                None if *is_required => " It has to be there.".to_owned(),
                None => String::new(),
            };
            comment(text, &format!("Allowed: {allowed}.{default}"));
            if let Some(example) = example {
                text.push_str(&format!("#{name} = {example}\n"));
            }
        }
    }
}

fn comment(text: &mut String, paragraph: &str) {
    let mut line = String::new();
    for word in paragraph.split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() + 3 > LINE_CHARS {
            text.push_str(&format!("# {line}\n"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    text.push_str(&format!("# {line}\n"));
}
