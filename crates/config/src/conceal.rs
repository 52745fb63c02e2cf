//! Messages of those who use a configuration, without what the variables in it hold.

use crate::config::Config;

impl Config {
    /// A message on one table of the file, such as `site[0]`, in which each text of that table stands as it was written: with the names of its
    /// variables, and not with what they hold.
    #[must_use]
    pub fn conceal(&self, table: &str, message: &str) -> String {
        let of_table = |key: &str| key.strip_prefix(table).is_some_and(|rest| rest.starts_with(['.', '[']));
        let written = self.origin.written.iter().filter(|(key, _)| of_table(key)).map(|(_, text)| text);
        let mut texts: Vec<Text<'_>> =
            written.flat_map(|(written, whole)| Text::forms(written, whole)).collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.whole.len()));
        conceal(message, &texts)
    }
}

/// A text that held variables.
struct Text<'a> {
    written: &'a str,
    /// What became of it, as a message may have it.
    whole: String,
}

impl<'a> Text<'a> {
    /// By itself, and as it stands in quotes.
    fn forms(written: &'a str, whole: &str) -> Vec<Self> {
        let quoted = format!("{whole:?}");
        let forms = [whole.to_owned(), quoted[1..quoted.len() - 1].to_owned()];
        forms.into_iter().filter(|whole| !whole.is_empty()).map(|whole| Self { written, whole }).collect()
    }
}

/// Puts what was written in the place of what became of it, where that stands by itself: an `a` is no part of a word.
fn conceal(message: &str, texts: &[Text<'_>]) -> String {
    let mut concealed = String::with_capacity(message.len());
    let mut rest = message;
    let mut before = None;
    while let Some(next) = rest.chars().next() {
        let stands = |text: &&Text<'_>| {
            rest.strip_prefix(&*text.whole).is_some_and(|after| {
                let is_apart =
                    |one: Option<char>, other: Option<char>| !(is_of_word(one) && is_of_word(other));
                is_apart(before, Some(next)) && is_apart(text.whole.chars().next_back(), after.chars().next())
            })
        };
        let length = match texts.iter().find(stands) {
            Some(text) => {
                concealed.push_str(text.written);
                text.whole.len()
            }
            None => {
                concealed.push(next);
                next.len_utf8()
            }
        };
        before = rest[..length].chars().next_back();
        rest = &rest[length..];
    }
    concealed
}

fn is_of_word(sign: Option<char>) -> bool {
    sign.is_some_and(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::{Text, conceal};

    #[test]
    fn what_was_written_stands_where_its_whole_text_does() {
        for (written, whole, message, concealed) in [
            ("/${S}/*", "/hunter2/*", "redirect of /hunter2/* has it", "redirect of /${S}/* has it"),
            ("${S}", "a", "a has a day: \"a\", /a", "${S} has ${S} day: \"${S}\", /${S}"),
            ("${S}", "aa", "aaa aa", "aaa ${S}"),
            ("${S}", "\u{e9}\"\n", "\"\u{e9}\\\"\\n\": no", "\"${S}\": no"),
            ("${S}", "", "nothing", "nothing"),
            ("${S}", "hunter2", "hunter2", "${S}"),
        ] {
            assert_eq!(conceal(message, &Text::forms(written, whole)), concealed);
        }
    }
}
