//! The documents of the last minute and the rates of the last minutes.

use std::collections::VecDeque;

use crate::top::document::{CHECK_SECONDS, Document, rate, seconds};

/// Maximum number of documents that are kept.
pub(crate) const STATUS_HISTORY_MAX: usize = 90;

/// Rates kept for the chart: five minutes of one each second.
const RATES_MAX: usize = 300;

/// Newest documents that are kept whole; of older ones only counts are of use.
const WHOLE_MAX: usize = 8;

/// Documents of one server, the newest one last.
#[derive(Debug)]
pub(crate) struct Session {
    /// Never empty.
    history: VecDeque<Document>,
    rates: VecDeque<Option<f64>>,
}

impl Session {
    /// Begins with a document.
    pub(crate) fn new(first: Document) -> Self {
        Self { history: VecDeque::from([first]), rates: VecDeque::new() }
    }

    /// Adds a document. One of another process begins a new session.
    pub(crate) fn keep(&mut self, now: Document) {
        let last = self.now();
        if !last.is_continued_by(&now) {
            *self = Self::new(now);
            return;
        }
        let between = seconds(last, &now);
        if between <= 0.0 {
            return;
        }
        let newest = rate(last, &now, &["requests", "total"]);
        // Seconds in which the server didn't respond.
        let missed = (between.round() as usize).saturating_sub(1).min(RATES_MAX);
        self.rates.extend((0..missed).map(|_| None).chain([newest]));
        self.rates.drain(..self.rates.len().saturating_sub(RATES_MAX));
        let is_old = |old: &Document| seconds(old, &now) > CHECK_SECONDS + 5.0;
        let old = self.history.iter().take_while(|old| is_old(old)).count();
        let old = old.max((self.history.len() + 1).saturating_sub(STATUS_HISTORY_MAX));
        self.history.drain(..old);
        if let Some(aged) = self.history.len().checked_sub(WHOLE_MAX) {
            self.history[aged].shrink();
        }
        self.history.push_back(now);
    }

    pub(crate) fn now(&self) -> &Document {
        self.history.back().expect("a session has at least one document")
    }

    /// Returns the documents of the last minute, the newest one last.
    pub(crate) fn history(&self) -> impl DoubleEndedIterator<Item = &Document> + Clone {
        self.history.iter()
    }

    /// Returns requests per second, the newest ones last; `None` for seconds without a document.
    pub(crate) fn rates(&self) -> impl DoubleEndedIterator<Item = Option<f64>> + ExactSizeIterator {
        self.rates.iter().copied()
    }
}
