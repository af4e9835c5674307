//! What a batch says about itself: a few short pairs of texts.

use super::object::BatchError;
use serde_json::Value;

const MAX_PAIRS: usize = 16;
/// In characters.
const MAX_KEY: usize = 64;
const MAX_VALUE: usize = 512;

/// Absent metadata is no metadata.
pub fn check_metadata(metadata: &Value) -> Result<(), BatchError> {
    let pairs = match metadata {
        Value::Null => return Ok(()),
        Value::Object(pairs) => pairs,
        _ => return Err(wrong("it must be an object")),
    };
    if pairs.len() > MAX_PAIRS {
        return Err(wrong("it may have 16 pairs at most"));
    }
    for (key, value) in pairs {
        if key.chars().count() > MAX_KEY {
            return Err(wrong("its keys may have 64 characters at most"));
        }
        match value.as_str() {
            None => return Err(wrong("its values must be texts")),
            Some(value) if value.chars().count() > MAX_VALUE => {
                return Err(wrong("its values may have 512 characters at most"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn wrong(why: &str) -> BatchError {
    BatchError::new("invalid_metadata", format!("metadata: {why}")).about("metadata")
}
