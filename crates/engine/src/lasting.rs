//! Answers that last until the turn ends, so that its other requests for the same file find it open.

use std::rc::Rc;

use shearwater_io::Item;

use crate::limits::LASTING_ANSWERS_MAX;
use crate::prebuilt::Prebuilt;

/// Answers with a file that were sent in this turn, at most `LASTING_ANSWERS_MAX`. Whoever made one may keep it by a `Weak` and
/// needn't ask when to let go: a deleted file isn't held open any longer than this.
#[derive(Default)]
pub(crate) struct Lasting {
    answers: Vec<Rc<Prebuilt>>,
}

impl Lasting {
    /// Keeps an answer until the turn ends, if its body is a file, nobody else holds it, and there is room.
    #[inline]
    pub(crate) fn keep(&mut self, answer: Rc<Prebuilt>) {
        let is_held = Rc::strong_count(&answer) > 1;
        if matches!(answer.body(), Item::File(_)) && !is_held && self.answers.len() < LASTING_ANSWERS_MAX {
            self.answers.push(answer);
        }
    }

    /// The turn has ended.
    pub(crate) fn end_turn(&mut self) {
        self.answers.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::rc::Rc;

    use shearwater_io::{FileSlice, Item, Shared, SharedFile};

    use super::{LASTING_ANSWERS_MAX, Lasting};
    use crate::{FieldLines, Prebuilt};

    fn answer(body: Item) -> Rc<Prebuilt> {
        Rc::new(Prebuilt::new("text/plain", &FieldLines::new(), body).expect("a media type"))
    }

    fn file() -> Rc<Prebuilt> {
        let file = File::open(std::env::current_exe().expect("this program")).expect("it can be read");
        answer(Item::File(FileSlice { file: Rc::new(SharedFile::new(file)), offset: 0, len: 1 }))
    }

    #[test]
    fn a_file_lasts_until_the_turn_ends_and_memory_does_not() {
        let mut lasting = Lasting::default();
        let (file, memory) = (file(), answer(Item::Shared(Shared::Static(b"x"))));
        let weak = [Rc::downgrade(&file), Rc::downgrade(&memory)];
        lasting.keep(file);
        lasting.keep(memory);
        assert!(weak[0].upgrade().is_some() && weak[1].upgrade().is_none());
        lasting.end_turn();
        assert!(weak[0].upgrade().is_none());
    }

    #[test]
    fn a_bounded_number_of_files_lasts() {
        let mut lasting = Lasting::default();
        let one = file();
        let found = Rc::downgrade(&one);
        lasting.keep(one);
        for _ in 0..3 {
            lasting.keep(found.upgrade().expect("it is kept"));
        }
        assert_eq!(lasting.answers.len(), 1);
        let weak: Vec<_> = (0..2 * LASTING_ANSWERS_MAX)
            .map(|_| {
                let file = file();
                let weak = Rc::downgrade(&file);
                lasting.keep(file);
                weak
            })
            .collect();
        assert_eq!(weak.iter().filter(|weak| weak.upgrade().is_some()).count(), LASTING_ANSWERS_MAX - 1);
    }
}
