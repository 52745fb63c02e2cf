//! A status document of a server, and figures from two of them. The status page has the same functions.

use serde_json::Value;

use crate::top::format::{self, NO_VALUE};

/// The version of the schema that this program reads.
const SCHEMA: u64 = 1;

/// Age of the document that rates are computed from, in seconds.
pub(crate) const RATE_SECONDS: f64 = 5.0;

/// Age of the document that checks are made with, in seconds.
pub(crate) const CHECK_SECONDS: f64 = 60.0;

/// A status document. All counts are since the server's start.
#[derive(Debug, Clone)]
pub(crate) struct Document(Value);

impl Document {
    /// Parses a document. The error is a message about it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| format!("the response is not JSON: {error}"))?;
        match value.get("schema").and_then(Value::as_u64) {
            Some(SCHEMA) => Ok(Self(value)),
            Some(schema) => Err(format!("the status has schema {schema}, and this program reads {SCHEMA}")),
            None => Err("the response is not a server's status".to_owned()),
        }
    }

    pub(crate) fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(&self.0, |value, name| value.get(name)).filter(|value| !value.is_null())
    }

    pub(crate) fn number(&self, path: &[&str]) -> Option<f64> {
        self.at(path).and_then(Value::as_f64)
    }

    pub(crate) fn text(&self, path: &[&str]) -> Option<&str> {
        self.at(path).and_then(Value::as_str)
    }

    pub(crate) fn is_true(&self, path: &[&str]) -> bool {
        self.at(path) == Some(&Value::Bool(true))
    }

    /// Returns the entries of a list; none if it is unknown.
    pub(crate) fn list(&self, name: &str) -> &[Value] {
        self.0.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Returns how often each limit was reached.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (&str, f64)> {
        let entries = self.list("limits_hit").iter();
        entries.filter_map(|entry| Some((entry.get("name")?.as_str()?, entry.get("count")?.as_f64()?)))
    }

    /// Removes what is large and of no use later.
    pub(crate) fn shrink(&mut self) {
        if let Some(members) = self.0.as_object_mut() {
            members.remove("sites");
            members.remove("messages");
        }
    }

    /// Returns whether `later` is of the same process, and not older.
    pub(crate) fn is_continued_by(&self, later: &Self) -> bool {
        let member = |name| self.at(&["server", name]) == later.at(&["server", name]);
        member("pid") && member("started_unix_seconds") && seconds(self, later) >= 0.0
    }
}

/// Returns the seconds between two documents.
pub(crate) fn seconds(before: &Document, now: &Document) -> f64 {
    let uptime = |document: &Document| document.number(&["server", "uptime_seconds"]).unwrap_or(0.0);
    uptime(now) - uptime(before)
}

/// Returns the growth of a count. `None` if either is unknown or the count was reset.
pub(crate) fn growth(before: Option<f64>, now: Option<f64>) -> Option<f64> {
    let (before, now) = (before?, now?);
    (now >= before).then_some(now - before)
}

/// Returns the growth of a count between two documents.
pub(crate) fn increase(before: &Document, now: &Document, path: &[&str]) -> Option<f64> {
    growth(before.number(path), now.number(path))
}

/// Returns the growth of a count per second.
pub(crate) fn rate(before: &Document, now: &Document, path: &[&str]) -> Option<f64> {
    per_second(increase(before, now, path), seconds(before, now))
}

pub(crate) fn per_second(count: Option<f64>, over: f64) -> Option<f64> {
    count.filter(|_| over > 0.0).map(|count| count / over)
}

/// Returns the document to compare the last one with: the newest that is `age` seconds old, or the oldest.
pub(crate) fn reference<'a>(
    history: impl DoubleEndedIterator<Item = &'a Document>,
    age: f64,
) -> &'a Document {
    let mut newest_first = history.rev();
    let now = newest_first.next().expect("a history has at least one document");
    let mut last = now;
    for document in newest_first {
        last = document;
        if seconds(document, now) >= age - 0.5 {
            break;
        }
    }
    last
}

/// A quantile, as far as a histogram tells: its estimate, and the bucket that it is in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantile {
    /// Linear interpolation in the bucket, in seconds.
    pub(crate) value: f64,
    /// Lower bound of the bucket, in seconds.
    pub(crate) low: f64,
    /// Upper bound of the bucket in seconds; `None` for the last one.
    pub(crate) high: Option<f64>,
}

impl Quantile {
    /// Estimates a quantile of what two cumulative histograms differ by.
    pub(crate) fn of(before: &Document, now: &Document, name: &str, part: f64) -> Option<Self> {
        let buckets = |document: &Document| -> Option<Vec<(Option<f64>, f64)>> {
            let bucket = |bucket: &Value| Some((bucket.get("le")?.as_f64(), bucket.get("count")?.as_f64()?));
            document.at(&[name, "buckets"])?.as_array()?.iter().map(bucket).collect()
        };
        let (old, fresh) = (buckets(before)?, buckets(now)?);
        if old.len() != fresh.len() {
            return None;
        }
        let counts = old
            .iter()
            .zip(&fresh)
            .map(|(old, fresh)| growth(Some(old.1), Some(fresh.1)).filter(|_| old.0 == fresh.0));
        let counts = counts.collect::<Option<Vec<f64>>>()?;
        let total = counts.last().copied().filter(|total| *total > 0.0)?;
        let rank = part * total;
        let index = counts.iter().position(|count| *count >= rank && *count > 0.0)?;
        let (low, below) = match index.checked_sub(1) {
            Some(previous) => (fresh[previous].0?, counts[previous]),
            None => (0.0, 0.0),
        };
        let high = fresh[index].0;
        let value = high.map_or(low, |high| low + (high - low) * (rank - below) / (counts[index] - below));
        Some(Self { value, low, high })
    }

    /// Formats the estimate, or the bound of a bucket that is open on one side.
    pub(crate) fn format(found: Option<Self>) -> String {
        match found {
            None => NO_VALUE.to_owned(),
            Some(Self { low, high: None, .. }) => format!("> {}", format::duration(low)),
            Some(Self { low: 0.0, high: Some(high), .. }) => format!("< {}", format::duration(high)),
            Some(Self { value, .. }) => format::duration(value),
        }
    }
}
