//! The files that are served and changed, and what is known of each.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::history::{History, State};
use super::target::Target;
use crate::harness::answer::opaque;

/// A file with its forms: itself, and perhaps a packed sibling.
#[derive(Debug)]
pub(super) struct Changing {
    /// What it is called in the report.
    pub(super) what: &'static str,
    pub(super) path: &'static str,
    pub(super) forms: Vec<Form>,
}

/// One form of a file.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) target: Target,
    pub(super) history: History,
    /// Of what each entity tag was, in whole answers.
    tags: Mutex<HashMap<String, State>>,
}

/// What is said of a file, its path, its length, and whether it has a sibling.
const FILES: [(&str, &str, usize, bool); 4] = [
    ("1 KiB", "/small.bin", 1024, false),
    ("100 KiB", "/middle.bin", 100 * 1024, false),
    ("100 KiB and its sibling", "/packed.bin", 100 * 1024, true),
    ("3 MiB", "/large.bin", 3 * 1024 * 1024, false),
];

/// The files in their first generation.
pub(super) fn lay_out(root: &Path) -> io::Result<Vec<Changing>> {
    let lay_out = |(what, path, len, has_sibling): (_, &'static str, _, _)| {
        let at = |extension| root.join(format!("{}{extension}", &path[1..]));
        let mut forms = vec![Form::new(Target { path: at(""), len, form: 0 })];
        if has_sibling {
            forms.push(Form::new(Target { path: at(".gz"), len: len / 2, form: 1 }));
        }
        forms.iter().try_for_each(|form| form.replace(1))?;
        Ok(Changing { what, path, forms })
    };
    FILES.into_iter().map(lay_out).collect()
}

impl Form {
    fn new(target: Target) -> Self {
        Self { target, history: History::default(), tags: Mutex::default() }
    }

    pub(super) fn replace(&self, generation: u32) -> io::Result<()> {
        self.lead_to(Some((generation, self.target.len as u64)), || self.target.replace(generation))
    }

    pub(super) fn rewrite(&self, generation: u32) -> io::Result<()> {
        self.lead_to(Some((generation, self.target.len as u64)), || self.target.rewrite(generation))
    }

    /// Cuts it to its half.
    pub(super) fn truncate(&self, generation: u32) -> io::Result<()> {
        let len = self.target.len as u64 / 2;
        self.lead_to(Some((generation, len)), || self.target.truncate(len))
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        self.lead_to(None, || self.target.remove())
    }

    fn lead_to(&self, state: State, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.history.begin(state);
        change()?;
        self.history.done();
        Ok(())
    }

    /// Notes of what this tag was; what it was of before, if that was something else.
    pub(super) fn note_tag(&self, tag: &str, state: State) -> Option<State> {
        let mut tags = self.tags.lock().unwrap_or_else(PoisonError::into_inner);
        let known = *tags.entry(opaque(tag).to_owned()).or_insert(state);
        (known != state).then_some(known)
    }

    /// Of what this tag was.
    pub(super) fn state_of(&self, tag: &str) -> Option<State> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner).get(opaque(tag)).copied()
    }

    /// Entity tags of whole answers so far.
    pub(super) fn tags(&self) -> u64 {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }
}
