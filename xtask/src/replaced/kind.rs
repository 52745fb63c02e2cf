//! The ways in which a file changes, each from one generation to the next.

use std::io;
use std::thread;
use std::time::Duration;

use super::site::Form;

/// One way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Renamed,
    Truncated,
    Rewritten,
    Deleted,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Renamed, Self::Truncated, Self::Rewritten, Self::Deleted];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Renamed => "renamed over",
            Self::Truncated => "truncated",
            Self::Rewritten => "rewritten in place",
            Self::Deleted => "deleted",
        }
    }

    /// Whether the file that is being sent changes itself, and none takes its place.
    pub(super) fn is_in_place(self) -> bool {
        matches!(self, Self::Truncated | Self::Rewritten)
    }

    /// Leads the forms of a file to this generation, with `pause` between two steps.
    pub(super) fn change(self, forms: &[Form], generation: u32, pause: Duration) -> io::Result<()> {
        match self {
            Self::Renamed => forms.iter().try_for_each(|form| form.replace(generation)),
            Self::Rewritten => forms.iter().try_for_each(|form| form.rewrite(generation)),
            Self::Truncated => {
                forms.iter().try_for_each(|form| form.replace(generation))?;
                thread::sleep(pause);
                forms.iter().try_for_each(|form| form.truncate(generation))
            }
            Self::Deleted => {
                forms.iter().try_for_each(Form::remove)?;
                thread::sleep(pause);
                forms.iter().try_for_each(|form| form.replace(generation))
            }
        }
    }
}
