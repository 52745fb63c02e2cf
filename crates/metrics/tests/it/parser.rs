//! A strict reader of both text formats: anything that isn't as the specification has it is a panic.

use std::collections::{BTreeMap, BTreeSet};

/// Metrics as read.
pub(crate) struct Exposition {
    /// Kinds by name of the family.
    pub(crate) families: BTreeMap<String, String>,
    /// Values by name and labels as written.
    samples: BTreeMap<String, f64>,
}

impl Exposition {
    /// Reads OpenMetrics 1.0.
    #[track_caller]
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.strip_suffix("# EOF\n").expect("the mark of the end");
        let read = Self::lines(text, |name, kind| match kind {
            "counter" => vec![format!("{name}_total")],
            "info" => vec![format!("{name}_info")],
            "histogram" => ["_bucket", "_sum", "_count"].map(|suffix| format!("{name}{suffix}")).to_vec(),
            "gauge" => vec![name.to_owned()],
            _ => panic!("{kind}"),
        });
        read.check_histograms();
        read
    }

    /// Reads the text format of Prometheus, 0.0.4.
    #[track_caller]
    pub(crate) fn parse_older(text: &str) -> Self {
        assert!(!text.contains("# EOF") && !text.contains("# UNIT"));
        let read = Self::lines(text, |name, kind| match kind {
            "histogram" => ["_bucket", "_sum", "_count"].map(|suffix| format!("{name}{suffix}")).to_vec(),
            "counter" => {
                assert!(name.ends_with("_total"), "{name}");
                vec![name.to_owned()]
            }
            "gauge" => vec![name.to_owned()],
            _ => panic!("{kind}"),
        });
        read.check_histograms();
        read
    }

    fn lines(text: &str, names: impl Fn(&str, &str) -> Vec<String>) -> Self {
        assert!(text.ends_with('\n') && !text.contains("\n\n") && !text.contains('\r'));
        let mut read = Self { families: BTreeMap::new(), samples: BTreeMap::new() };
        let (mut help, mut family, mut allowed) = (String::new(), String::new(), Vec::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, text) = rest.split_once(' ').expect("a text");
                assert!(text.ends_with('.') && !text.contains('\\'), "{line}");
                name.clone_into(&mut help);
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a kind");
                assert_eq!(name, help, "HELP and TYPE are of one family");
                assert!(read.families.insert(name.to_owned(), kind.to_owned()).is_none(), "twice: {name}");
                name.clone_into(&mut family);
                allowed = names(name, kind);
            } else if let Some(rest) = line.strip_prefix("# UNIT ") {
                let (name, unit) = rest.split_once(' ').expect("a unit");
                assert!(name == family && name.ends_with(&format!("_{unit}")), "{line}");
            } else {
                let (key, value) = line.rsplit_once(' ').expect("a value");
                let name = key.split('{').next().expect("a name");
                assert!(allowed.iter().any(|allowed| allowed == name), "{line} is in {family}");
                assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{line}");
                check_labels(&key[name.len()..]);
                let value: f64 = value.parse().expect("a number");
                assert!(value >= 0.0 && value.is_finite(), "{line}");
                assert!(read.samples.insert(key.to_owned(), value).is_none(), "twice: {key}");
            }
        }
        read
    }

    fn check_histograms(&self) {
        for (name, _) in self.families.iter().filter(|(_, kind)| *kind == "histogram") {
            let prefix = format!("{name}_bucket{{le=\"");
            let buckets = self.samples.iter().filter_map(|(key, count)| {
                let bound = key.strip_prefix(&prefix)?.strip_suffix("\"}").expect("only one label");
                assert!(bound == "+Inf" || bound.contains('.'), "{bound} is a float in OpenMetrics");
                Some((bound.replace("+Inf", "inf").parse::<f64>().expect("a bound"), *count))
            });
            let mut buckets: Vec<_> = buckets.collect();
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(buckets.is_sorted_by_key(|bucket| bucket.1), "{name} is cumulative: {buckets:?}");
            let last = buckets.last().expect("a bucket");
            assert_eq!((last.0, last.1), (f64::INFINITY, self.value(&format!("{name}_count"))));
        }
    }

    /// Returns a value by its name and labels as written.
    #[track_caller]
    pub(crate) fn value(&self, key: &str) -> f64 {
        *self.samples.get(key).unwrap_or_else(|| panic!("no {key}"))
    }

    /// Returns the names with labels of all values.
    pub(crate) fn keys(&self) -> BTreeSet<String> {
        self.samples.keys().cloned().collect()
    }

    /// Returns the sum of all values that begin with a text.
    pub(crate) fn sum(&self, prefix: &str) -> f64 {
        self.samples.iter().filter(|(key, _)| key.starts_with(prefix)).map(|(_, value)| value).sum()
    }

    /// Returns the count of requests of a method and class.
    #[track_caller]
    pub(crate) fn requests(&self, method: &str, class: &str) -> f64 {
        self.value(&format!("shearwater_requests_total{{method=\"{method}\",class=\"{class}\"}}"))
    }
}

/// Checks `{a="b",c="d"}`, or nothing.
fn check_labels(labels: &str) {
    let Some(mut rest) = labels.strip_prefix('{') else { return assert_eq!(labels, "") };
    let mut names = BTreeSet::new();
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label");
        assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        assert!(names.insert(name), "{labels} has {name} twice");
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next().expect("the end of a value") {
                (at, '"') => break at,
                (_, '\\') => assert!(matches!(letters.next(), Some((_, '\\' | '"' | 'n'))), "{labels}"),
                (_, letter) => assert!(letter != '\n'),
            }
        };
        match &after[end + 1..] {
            "}" => return,
            more => rest = more.strip_prefix(',').expect("another label"),
        }
    }
}
