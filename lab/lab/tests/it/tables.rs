//! The tables of scenarios and servers say nothing twice and nothing impossible.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime};

use lab::json::Json;
use lab::scenario::{self, Generator, SCENARIOS, Source};
use lab::server::{self, Kind, REFERENCE, SERVERS};
use lab::site::Site;
use lab::validity::{WAIT_PERCENT_MAX, WAIT_PERCENT_MAX_CHURN};

#[test]
fn names_are_found_and_unique() {
    let scenarios: BTreeSet<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    assert_eq!(scenarios.len(), SCENARIOS.len());
    assert!(SCENARIOS.iter().all(|scenario| scenario::find(scenario.name) == Ok(scenario)));
    let servers: BTreeSet<&str> = SERVERS.iter().map(|server| server.name).collect();
    assert_eq!(servers.len(), SERVERS.len());
    assert!(SERVERS.iter().all(|server| server::find(server.name) == Ok(server)));
    assert_eq!(REFERENCE.kind, Kind::Shearwater);
    assert!(scenario::find("nothing").is_err_and(|error| error.contains("plaintext-varied")));
}

#[test]
fn each_scenario_can_be_sent() {
    for scenario in SCENARIOS {
        let name = scenario.name;
        assert_eq!(scenario.body().len(), scenario.body_bytes, "{name}");
        assert!(scenario.connections > 0 && scenario.depth > 0, "{name}");
        assert!(scenario.target(0).starts_with('/'), "{name}");
        assert_eq!(scenario.varied, scenario.target(0) != scenario.target(63), "{name}");
        let ends = scenario.requests_per_connection;
        assert!(ends == 0 || ends % scenario.depth == 0, "{name} ends within a batch");
        let own = scenario.varied || ends > 0 || scenario.receive_buffer_bytes.is_some();
        assert_eq!(scenario.generator() == Generator::Own, own, "{name}");
    }
}

#[test]
fn a_path_has_one_length_wherever_it_is_served() {
    let files = SCENARIOS.iter().filter(|scenario| scenario.source == Source::File);
    let lengths: BTreeSet<(&str, usize)> = files.map(|file| (file.path, file.body_bytes)).collect();
    let paths: BTreeSet<&str> = lengths.iter().map(|(path, _)| *path).collect();
    assert_eq!(paths.len(), lengths.len());
}

#[test]
fn every_shape_asked_for_is_there() {
    let any = |wanted: fn(&&scenario::Scenario) -> bool| SCENARIOS.iter().find(wanted).is_some();
    assert!(any(|scenario| scenario.depth == 16));
    assert!(any(|scenario| scenario.requests_per_connection == 10));
    assert!(any(|scenario| scenario.varied));
    for connections in [64, 500, 10_000] {
        assert!(SCENARIOS.iter().any(|scenario| scenario.connections == connections), "{connections}");
    }
}

#[test]
fn large_files_are_asked_for_through_windows_of_each_kind() {
    let of = |name| scenario::find(name).expect("it is in the table");
    for (name, bytes) in [("1m", Some(4_000_000)), ("1m-narrow", Some(65_536)), ("1m-auto", None)] {
        let large = of(name);
        assert_eq!((large.receive_buffer_bytes, large.body_bytes), (bytes, 1_048_576), "{name}");
        assert_eq!(large.path, of("1m").path, "{name}");
    }
    let sized = SCENARIOS.iter().filter(|scenario| scenario.receive_buffer_bytes.is_some());
    assert_eq!(sized.count(), 2, "all others have what the kernel gives");
}

#[test]
fn large_files_have_to_be_left_alone_first_and_nothing_else() {
    let site = Site::create().expect("a temporary folder");
    let in_seconds = |name: &str, seconds: u64| {
        let scenario = scenario::find(name).expect("it is in the table");
        let file = site.public().join(scenario.path.trim_start_matches('/'));
        let written = fs::metadata(file).and_then(|meta| meta.modified()).expect("it was written");
        site.settles_in(scenario, written + Duration::from_secs(seconds)).expect("it is there").as_secs()
    };
    for name in ["1m", "1m-narrow", "1m-auto", "100k"] {
        let left = [0, 4, 10, 11, 3_600].map(|age_s| in_seconds(name, age_s));
        assert_eq!(left, [11, 7, 1, 0, 0], "{name}");
    }
    assert_eq!(["1k", "6.4k"].map(|name| in_seconds(name, 0)), [0, 0]);
    let plaintext = scenario::find("plaintext").expect("it is in the table");
    assert_eq!(site.settles_in(plaintext, SystemTime::UNIX_EPOCH).expect("no file"), Duration::ZERO);
    let large = scenario::find("1m").expect("it is in the table");
    let past = site.settles_in(large, SystemTime::UNIX_EPOCH).expect("it is there");
    assert_eq!(past, Duration::from_secs(11), "a clock that was put back makes no longer wait");
}

#[test]
fn only_where_connections_end_may_the_kernel_keep_a_server_waiting() {
    for scenario in SCENARIOS {
        let wanted =
            if scenario.requests_per_connection > 0 { WAIT_PERCENT_MAX_CHURN } else { WAIT_PERCENT_MAX };
        assert!((scenario.wait_percent_max() - wanted).abs() < f64::EPSILON, "{}", scenario.name);
    }
}

#[test]
fn json_escapes_and_never_writes_what_is_no_number() {
    let json = Json::Map(vec![
        ("text", Json::text("a\"b\\c\nd\u{1}é")),
        ("figures", Json::List(vec![Json::Number(1.5), Json::Number(f64::NAN), Json::Count(u64::MAX)])),
        ("nothing", Json::List(Vec::new())),
    ]);
    let expected = "{\n  \"text\": \"a\\\"b\\\\c\\nd\\u0001é\",\n  \"figures\": [\n    1.5,\n    null,\n    \
                    18446744073709551615\n  ],\n  \"nothing\": []\n}";
    assert_eq!(json.to_string(), expected);
}
