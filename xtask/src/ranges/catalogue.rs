//! The requests that are sent to both servers, each with the arguments for what may differ in its answers.

use super::arguments::Argument::{
    self, AnnouncedCoded, Any, Coded, Date, Empty, Head, Huge, Invalid, List, Many, Overlap, OverlapWhole,
    TwoFields, Weights,
};
use super::case::Case;
use super::site::{LARGE, SMALL};

/// Values of `Range`, asked of each file; `LEN` and `LAST` stand for its length and its last byte.
const FORMS: &[(&str, &[Argument])] = &[
    ("bytes=0-0", &[]),
    ("bytes=0-", &[]),
    ("bytes=10-19", &[]),
    ("bytes=LAST-", &[]),
    ("bytes=LAST-LAST", &[]),
    ("bytes=0-LAST", &[]),
    ("bytes=1000-LEN", &[]),
    ("bytes=500-99999999999999", &[]),
    ("bytes=500-99999999999999999999999999", &[Huge]),
    ("bytes=007-0010", &[]),
    ("bytes=-1", &[]),
    ("bytes=-LEN", &[]),
    ("bytes=-99999999", &[]),
    ("bytes=-0", &[]),
    ("bytes=LEN-", &[]),
    ("bytes=LEN-99999999", &[]),
    ("bytes=99999999999999999999999999-", &[]),
    ("BYTES=0-1", &[]),
    ("bytes=0-1,4-5", &[]),
    ("bytes=0-1, 4-5 ,\t8-9", &[List]),
    ("bytes=100-199,0-99", &[]),
    ("bytes=0-1,LEN-,4-5", &[]),
    ("bytes=0-1,LEN-", &[]),
    ("bytes=LEN-,99999999-", &[]),
    ("bytes=0-99,100-199", &[]),
    ("bytes=0-0,-1", &[]),
    ("bytes=0-9,5-14", &[Overlap]),
    ("bytes=5-14,0-9", &[Overlap]),
    ("bytes=0-9,0-9", &[Overlap]),
    ("bytes=0-,0-", &[OverlapWhole]),
    ("bytes=0-,-1", &[OverlapWhole]),
    ("bytes=0-1,,4-5", &[List]),
    ("bytes=0-1,", &[List]),
    ("bytes=,0-1", &[List]),
    ("bytes=", &[]),
    ("bytes=,", &[Invalid]),
    ("bytes=-", &[Invalid]),
    ("bytes=2-1", &[Invalid]),
    ("bytes=0-1,2-1", &[Invalid]),
    ("bytes=a-b", &[Invalid]),
    ("bytes=1-b", &[Invalid]),
    ("bytes=1", &[Invalid]),
    ("bytes=0 - 1", &[Invalid]),
    ("bytes=--1", &[Invalid]),
    ("bytes=0-1;4-5", &[Invalid]),
    ("bytes =0-1", &[]),
    ("lines=0-1", &[]),
    ("bytes", &[]),
    ("0-1", &[]),
    ("MANY", &[]),
    ("TOO-MANY", &[Many]),
];

/// Other requests: target, fields.
const OTHERS: &[(&str, &str, &[&str], &[Argument])] = &[
    ("GET", "/small", &[], &[]),
    ("GET", "/large", &[], &[]),
    ("HEAD", "/small", &[], &[]),
    ("HEAD", "/small", &["Range: bytes=0-1"], &[Head]),
    ("HEAD", "/large", &["Range: bytes=0-1"], &[Head]),
    ("HEAD", "/small", &["Range: bytes=0-1,4-5"], &[Head]),
    ("HEAD", "/small", &["Range: bytes=99999-"], &[Head]),
    ("GET", "/empty", &["Range: bytes=0-"], &[]),
    ("GET", "/empty", &["Range: bytes=-5"], &[]),
    ("GET", "/empty", &["Range: bytes=5-"], &[Empty]),
    ("GET", "/none", &["Range: bytes=0-1"], &[]),
    ("GET", "/small", &["Range: bytes=0-1", "Range: bytes=4-5"], &[TwoFields]),
    // If-Range.
    ("GET", "/small", &["If-Range: TAG", "Range: bytes=0-1"], &[]),
    ("GET", "/large", &["If-Range: TAG", "Range: bytes=0-1,4-5"], &[]),
    ("GET", "/small", &["If-Range: TAG", "Range: bytes=99999-"], &[]),
    ("GET", "/small", &["If-Range: W/TAG", "Range: bytes=0-1"], &[]),
    ("GET", "/small", &["If-Range: \"a\"", "Range: bytes=0-1"], &[]),
    ("GET", "/small", &["If-Range: \"a\"", "Range: bytes=99999-"], &[]),
    ("GET", "/small", &["If-Range: DATE", "Range: bytes=0-1"], &[]),
    ("GET", "/large", &["If-Range: DATE", "Range: bytes=0-1"], &[]),
    ("GET", "/dated", &["If-Range: DATE", "Range: bytes=0-1"], &[Date]),
    ("GET", "/small", &["If-Range: Thu, 01 Jan 1970 00:00:00 GMT", "Range: bytes=0-1"], &[]),
    ("GET", "/small", &["If-Range: Fri, 01 Jan 2100 00:00:00 GMT", "Range: bytes=0-1"], &[]),
    ("GET", "/small", &["If-Range: yesterday", "Range: bytes=0-1"], &[]),
    ("GET", "/small", &["If-Range: TAG"], &[]),
    // Conditions come first.
    ("GET", "/small", &["If-None-Match: TAG", "Range: bytes=0-1"], &[]),
    ("GET", "/small", &["If-None-Match: TAG", "Range: bytes=99999-"], &[]),
    ("GET", "/small", &["If-None-Match: \"a\"", "Range: bytes=0-1"], &[]),
    ("GET", "/small", &["If-Match: \"a\"", "Range: bytes=0-1"], &[]),
    ("GET", "/small", &["If-Match: TAG", "Range: bytes=0-1"], &[]),
    ("GET", "/small", &["If-Match: TAG", "Range: bytes=99999-"], &[]),
    ("GET", "/small", &["If-Modified-Since: DATE", "Range: bytes=0-1"], &[]),
    ("GET", "/small", &["If-Unmodified-Since: DATE", "Range: bytes=0-1"], &[]),
    ("GET", "/small", &["If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT", "Range: bytes=0-1"], &[]),
    // A file that lies ready in gzip.
    ("GET", "/packed", &["Accept-Encoding: gzip"], &[AnnouncedCoded]),
    ("HEAD", "/packed", &["Accept-Encoding: gzip"], &[AnnouncedCoded]),
    ("GET", "/packed", &["Accept-Encoding: gzip, deflate, br"], &[AnnouncedCoded]),
    ("GET", "/packed", &["Accept-Encoding: gzip;q=0"], &[]),
    ("GET", "/packed", &["Accept-Encoding: *"], &[Any]),
    ("GET", "/packed", &["Accept-Encoding: identity, gzip;q=0.5"], &[Weights]),
    ("GET", "/packed", &["Accept-Encoding: identity"], &[]),
    ("GET", "/packed", &[], &[]),
    ("GET", "/packed.gz", &["Accept-Encoding: gzip"], &[]),
    ("GET", "/packed", &["Accept-Encoding: gzip", "Range: bytes=0-9"], &[Coded]),
    ("GET", "/packed", &["Accept-Encoding: gzip", "Range: bytes=0-9,20-29"], &[AnnouncedCoded]),
    ("GET", "/packed", &["Accept-Encoding: gzip", "Range: bytes=600-"], &[Coded]),
    ("GET", "/packed", &["Accept-Encoding: identity", "Range: bytes=600-"], &[]),
    ("GET", "/packed", &["Accept-Encoding: gzip", "If-None-Match: TAG"], &[]),
    ("GET", "/packed", &["Accept-Encoding: gzip", "If-Range: TAG", "Range: bytes=0-9"], &[Coded]),
];

/// All of them.
pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (target, len) in [("/small", SMALL), ("/large", LARGE)] {
        for &(form, arguments) in FORMS {
            let fields = vec![format!("Range: {}", filled(form, len))];
            cases.push(Case { method: "GET", target, fields, arguments });
        }
    }
    for &(method, target, fields, arguments) in OTHERS {
        let fields = fields.iter().map(|&field| field.to_owned()).collect();
        cases.push(Case { method, target, fields, arguments });
    }
    cases
}

fn filled(form: &str, len: usize) -> String {
    // As many as both take, and one more.
    const MANY: usize = 64;
    let many = |count: usize| {
        let ranges: Vec<_> = (0..count).map(|number| format!("{0}-{0}", number * 2)).collect();
        format!("bytes={}", ranges.join(","))
    };
    match form {
        "MANY" => many(MANY),
        "TOO-MANY" => many(MANY + 1),
        _ => form.replace("LEN", &len.to_string()).replace("LAST", &(len - 1).to_string()),
    }
}
