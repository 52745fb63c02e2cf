//! Where a service's future lies while it is polled, or the body of its answer: it moves no more, and its memory is used again.

use std::cell::RefCell;
use std::pin::Pin;

use crate::limits::SPARE_SEATS_BYTES_MAX;

/// Seats of little or no size count as many bytes as this.
const SEAT_BYTES_MIN: usize = 64;

/// A place with something in it.
pub(crate) struct Seat<T>(Pin<Box<Option<T>>>);

impl<T> Seat<T> {
    /// What lies there.
    pub(crate) fn get(&mut self) -> Pin<&mut T> {
        self.0.as_mut().as_pin_mut().expect("it is taken with something in it")
    }
}

/// One worker's spare ones, of one kind.
pub(crate) struct Seats<T> {
    spare: RefCell<Vec<Seat<T>>>,
}

impl<T> Seats<T> {
    /// As many of them are kept.
    const KEPT_MAX: usize = {
        let bytes = size_of::<Option<T>>();
        SPARE_SEATS_BYTES_MAX / if bytes < SEAT_BYTES_MIN { SEAT_BYTES_MIN } else { bytes }
    };

    pub(crate) fn new() -> Self {
        Self { spare: RefCell::default() }
    }

    /// A place with this in it.
    pub(crate) fn take(&self, value: T) -> Seat<T> {
        let spare = self.spare.borrow_mut().pop();
        match spare {
            Some(mut seat) => {
                seat.0.set(Some(value));
                seat
            }
            None => Seat(Box::pin(Some(value))),
        }
    }

    /// Drops what lies there, and keeps the place for the next.
    pub(crate) fn put(&self, mut seat: Seat<T>) {
        seat.0.set(None);
        let mut spare = self.spare.borrow_mut();
        if spare.len() < Self::KEPT_MAX {
            spare.push(seat);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::{SEAT_BYTES_MIN, SPARE_SEATS_BYTES_MAX, Seats};

    #[test]
    fn what_was_put_back_is_dropped_and_its_place_used_again() {
        let seats = Seats::new();
        let value = Rc::new(17);
        let mut seat = seats.take(Rc::clone(&value));
        let place = std::ptr::from_ref(&*seat.get());
        seats.put(seat);
        assert_eq!(Rc::strong_count(&value), 1);
        let mut again = seats.take(Rc::new(18));
        assert_eq!(std::ptr::from_ref(&*again.get()), place);
        assert_eq!(**again.get(), 18);
    }

    #[test]
    fn so_many_bytes_of_them_are_kept() {
        fn kept<T: Clone>(value: &T) -> usize {
            let seats = Seats::new();
            let taken: Vec<_> = (0..SPARE_SEATS_BYTES_MAX)
                .step_by(SEAT_BYTES_MIN / 2)
                .map(|_| seats.take(value.clone()))
                .collect();
            taken.into_iter().for_each(|seat| seats.put(seat));
            seats.spare.borrow().len()
        }
        assert_eq!(kept(&()), SPARE_SEATS_BYTES_MAX / SEAT_BYTES_MIN);
        let kilobyte = kept(&[0u8; 1024]);
        assert!(kilobyte > 0 && kilobyte * 1024 <= SPARE_SEATS_BYTES_MAX, "{kilobyte}");
    }
}
