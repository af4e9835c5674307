//! Log lines as they are written.

use super::*;
use std::io::Write;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_json_line_is_one_object_with_time_level_service_message_and_fields() {
    let captured = Captured::default();
    let writer = captured.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .event_format(JsonLine::new("proxy"))
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let _request = tracing::info_span!("request", request_id = "r-1").entered();
        tracing::warn!(status = 502, "upstream \"failed\"\nbadly");
    });
    let bytes = captured.0.lock().unwrap().clone();
    let text = String::from_utf8(bytes).unwrap();
    let line: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    assert_eq!(line["service"], "proxy");
    assert_eq!(line["level"], "WARN");
    assert_eq!(line["message"], "upstream \"failed\"\nbadly");
    assert_eq!(line["status"], 502);
    assert_eq!(line["span"]["request_id"], "r-1");
    assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{text}");
}

#[test]
fn no_setting_makes_a_library_print_request_heads() {
    for (text, accepted) in [
        ("trace", true),
        ("info", true),
        ("info,pingora_core=debug", true),
        ("pingora_core=trace", false),
        ("info, h2::proto=TRACE", false),
    ] {
        match filter(text) {
            Ok(filter) => {
                assert!(accepted, "{text}");
                let filter = filter.to_string();
                assert!(text.contains("pingora") || filter.contains("pingora_core=warn"), "{text}: {filter}");
            }
            Err(error) => assert!(!accepted, "{text}: {error}"),
        }
    }
}

#[test]
fn a_malformed_filter_is_refused_by_name() {
    for text in ["proxy=loud=x", "verbos", "info,inof", "WARNING"] {
        let settings = Logs { log_level: text.into(), log_format: LogFormat::Json };
        let error = init(&settings, "proxy").err().unwrap().to_string();
        assert!(error.starts_with("LOG_LEVEL"), "{text}: {error}");
    }
    for text in ["INFO", "off", "3", "proxy=debug,info", "proxy::engine=debug", "info, h2=debug"] {
        assert!(filter(text).is_ok(), "{text}");
    }
}
