//! Both text formats: valid, the same values, and bounded whatever clients send.

use shearwater::Timeouts;

use crate::parser::Exposition;
use crate::served::on_each_driver;

#[test]
fn both_formats_are_valid_and_have_the_same_values() {
    on_each_driver(Timeouts::default(), |served| {
        served.connect().get("/one");
        let mut admin = served.admin();
        let older = admin.get("/metrics");
        assert_eq!(older.field("Content-Type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        let newer = admin.request("GET", "/metrics", &["Accept: application/openmetrics-text;version=1.0.0"]);
        let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert_eq!(newer.field("Content-Type"), Some(media_type));
        for response in [&older, &newer] {
            assert_eq!((response.status, response.field("Vary")), (200, Some("Accept")));
        }
        let (older, newer) = (Exposition::parse_older(older.text()), Exposition::parse(newer.text()));
        assert_eq!(older.keys(), newer.keys());
        assert!(newer.families.contains_key("shearwater_build"));
        assert_eq!(newer.sum("shearwater_build_info{version=\"1.2.3\",driver="), 1.0);
    });
}

#[test]
fn clients_add_no_series() {
    on_each_driver(Timeouts::default(), |served| {
        let before = served.scrape().keys();
        for number in 0..100 {
            let method = format!("M{number}");
            let host = format!("Host: h{number}.example");
            served.connect().send(format!("{method} /{number} HTTP/1.1\r\n{host}\r\n\r\n")).response("GET");
        }
        // Malformed: a method of its own each time.
        for number in 0..20 {
            served.connect().send(format!("\u{1}{number} / HTTP/1.1\r\n\r\n")).response("GET");
        }
        let scraped = served.until(|scraped| scraped.sum("shearwater_requests_total") >= 120.0);
        assert_eq!(scraped.keys(), before);
        assert_eq!(scraped.requests("other", "5xx") + scraped.requests("other", "4xx"), 120.0);
    });
}

#[test]
fn a_document_before_the_start_has_no_unknown_counts() {
    let metrics = shearwater_metrics::Metrics::new("0");
    let mut text = String::new();
    shearwater_metrics::write_text(
        &metrics.snapshot(),
        shearwater_metrics::TextFormat::OpenMetrics,
        &mut text,
    );
    let read = Exposition::parse(&text);
    assert_eq!(read.value("shearwater_ready"), 0.0);
    assert!(!read.keys().contains("shearwater_connections"));
    assert!(!text.contains("driver=\"\""), "{text}");
    let status = shearwater_metrics::document::Status::from(&metrics.snapshot());
    let json = serde_json::to_value(&status).expect("plain data");
    assert_eq!((&json["server"]["state"], json.get("bytes")), (&"starting".into(), None));
    assert!(json["cache"].is_null() && json["log"].is_null());
}
