//! A Rust file as rules see it: tokens with lines, comments, and which lines are test code.
//!
//! Words in strings and comments are not code: rules look at tokens, so they cannot be fooled by either, and they see
//! into macro calls, where a syntax tree ends.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ident,
    Punct,
    Literal,
    Open,
    Close,
}

/// A token with its place.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// Whether it stands under `#[cfg(test)]` or `#[test]`.
    pub(crate) test: bool,
}

impl Token {
    pub(crate) fn is_ident(&self, text: &str) -> bool {
        self.kind == Kind::Ident && self.text == text
    }

    pub(crate) fn is_punct(&self, text: &str) -> bool {
        self.kind == Kind::Punct && self.text == text
    }
}

/// A comment's line and text, markers included.
#[derive(Debug)]
pub(crate) struct Comment {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// A parsed Rust file.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) tokens: Vec<Token>,
    pub(crate) syntax: syn::File,
    pub(crate) comments: Vec<Comment>,
    test_lines: Vec<RangeInclusive<usize>>,
}

impl Code {
    /// Parses a file's text. The error is the line and the parser's message.
    pub(crate) fn parse(text: &str) -> Result<Self, (usize, String)> {
        let at = |error: &syn::Error| (error.span().start().line.max(1), error.to_string());
        let syntax = syn::parse_file(text).map_err(|error| at(&error))?;
        let stream: TokenStream = text.parse().map_err(|error| at(&syn::Error::from(error)))?;
        let mut flat = Flat::default();
        flat.stream(stream, false);
        let comments = comments(text, &flat.literals);
        Ok(Self { tokens: flat.tokens, syntax, comments, test_lines: flat.test_lines })
    }

    /// Whether the line stands under `#[cfg(test)]` or `#[test]`.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// Tokens where the path `segments`, joined by `::`, begins. `["Instant", "now"]` finds `std::time::Instant::now` too.
    pub(crate) fn paths(&self, segments: &[&str]) -> std::vec::IntoIter<&Token> {
        let starts = (0..self.tokens.len()).filter(|at| self.path_at(*at, segments));
        let found: Vec<&Token> = starts.map(|at| &self.tokens[at]).collect();
        found.into_iter()
    }

    fn path_at(&self, at: usize, segments: &[&str]) -> bool {
        // Each further segment stands three tokens on: two colons and the name.
        segments.iter().enumerate().all(|(index, segment)| {
            let place = at + 3 * index;
            let joined =
                index == 0 || (place >= 2 && self.is_punct(place - 2, ":") && self.is_punct(place - 1, ":"));
            joined && self.tokens.get(place).is_some_and(|token| token.is_ident(segment))
        })
    }

    /// Tokens that name a macro being called: `name!`.
    pub(crate) fn macros<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Token> {
        let called = move |at: &usize| self.tokens[*at].is_ident(name) && self.is_punct(at + 1, "!");
        (0..self.tokens.len()).filter(called).map(|at| &self.tokens[at])
    }

    /// Whether token `at` exists and is this punctuation.
    pub(crate) fn is_punct(&self, at: usize, text: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is_punct(text))
    }

    /// Index of the token that closes the group opened at `open`; the end where `open` opens none.
    pub(crate) fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match token.kind {
                Kind::Open => depth += 1,
                Kind::Close => depth = depth.saturating_sub(1),
                Kind::Ident | Kind::Punct | Kind::Literal => {}
            }
            if depth == 0 {
                return at;
            }
        }
        self.tokens.len()
    }
}

/// Collects the tokens of nested groups in reading order.
#[derive(Default)]
struct Flat {
    tokens: Vec<Token>,
    literals: Vec<std::ops::Range<usize>>,
    test_lines: Vec<RangeInclusive<usize>>,
}

impl Flat {
    fn stream(&mut self, stream: TokenStream, test: bool) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        // Trees before this index belong to an item that is test code.
        let mut test_until = 0;
        for (at, tree) in trees.iter().enumerate() {
            if at >= test_until && attribute(&trees, at).is_some_and(|content| is_test_attribute(&content)) {
                test_until = item_end(&trees, at);
                let last = trees[test_until - 1].span().end().line;
                self.test_lines.push(tree.span().start().line..=last);
            }
            self.tree(tree, test || at < test_until);
        }
    }

    fn tree(&mut self, tree: &TokenTree, test: bool) {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Group(group) => self.group(group, test),
            TokenTree::Ident(ident) => self.push(Kind::Ident, ident.to_string(), line, test),
            TokenTree::Punct(punct) => self.push(Kind::Punct, punct.as_char().to_string(), line, test),
            TokenTree::Literal(literal) => {
                self.literals.push(literal.span().byte_range());
                self.push(Kind::Literal, literal.to_string(), line, test);
            }
        }
    }

    fn group(&mut self, group: &Group, test: bool) {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => ("", ""),
        };
        self.push(Kind::Open, open.to_owned(), group.span_open().start().line, test);
        self.stream(group.stream(), test);
        self.push(Kind::Close, close.to_owned(), group.span_close().start().line, test);
    }

    fn push(&mut self, kind: Kind, text: String, line: usize, test: bool) {
        self.tokens.push(Token { kind, text, line, test });
    }
}

/// The content of the outer attribute whose `#` stands at `at`.
fn attribute(trees: &[TokenTree], at: usize) -> Option<TokenStream> {
    match (trees.get(at), trees.get(at + 1)) {
        (Some(TokenTree::Punct(hash)), Some(TokenTree::Group(group)))
            if hash.as_char() == '#' && group.delimiter() == Delimiter::Bracket =>
        {
            Some(group.stream())
        }
        _ => None,
    }
}

/// `test`, or a `cfg` that holds in tests only: it names `test` and neither `not` nor `any`.
fn is_test_attribute(attribute: &TokenStream) -> bool {
    let text = attribute.to_string();
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        ["test"] => true,
        ["cfg", rest @ ..] => rest.contains(&"test") && !rest.contains(&"not") && !rest.contains(&"any"),
        _ => false,
    }
}

/// One past the last tree of the item whose first attribute stands at `at`: its body in braces, or its semicolon.
fn item_end(trees: &[TokenTree], at: usize) -> usize {
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    };
    let rest = trees.iter().skip(at).position(ends);
    rest.map_or(trees.len(), |offset| at + offset + 1)
}

/// The comments of a file: what stands behind `//` or between `/*` and `*/`, outside of literals.
fn comments(text: &str, literals: &[std::ops::Range<usize>]) -> Vec<Comment> {
    let mut bytes = text.as_bytes().to_vec();
    for range in literals {
        // Documentation comes as a literal too: it stays.
        let literal = text.get(range.clone()).unwrap_or("");
        if !literal.starts_with('/') {
            bytes[range.clone()].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
    }
    let mut found = Vec::new();
    let mut in_block = false;
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        let start = if in_block { Some(0) } else { comment_start(&line) };
        let Some(start) = start else { continue };
        let comment = &line[start..];
        in_block = (in_block || comment.starts_with("/*")) && !comment.contains("*/");
        found.push(Comment { line: index + 1, text: comment.to_owned() });
    }
    found
}

fn comment_start(line: &str) -> Option<usize> {
    match (line.find("//"), line.find("/*")) {
        (Some(slashes), Some(block)) => Some(slashes.min(block)),
        (slashes, block) => slashes.or(block),
    }
}
