//! Parses the status document of a server.

use serde_json::Value;
use shearwater_metrics::document::{SCHEMA, Status};

/// Parses a document. The error is a message about it.
pub(crate) fn parse(bytes: &[u8]) -> Result<Status, String> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("the response is not JSON: {error}"))?;
    match value.get("schema").and_then(Value::as_u64) {
        Some(schema) if schema == u64::from(SCHEMA) => {
            serde_json::from_value(value).map_err(|error| format!("the status can't be read: {error}"))
        }
        Some(schema) => Err(format!("the status has schema {schema}, and this program reads {SCHEMA}")),
        None => Err("the response is not a server's status".to_owned()),
    }
}
