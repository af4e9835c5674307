//! Any JSON is a config or is refused with faults, and a mask takes the place of every secret that was found.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use shared::config::{self, Limits, Strictness, credentials};

fuzz_target!(|data: &[u8]| {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let limits = Limits::default();
    for strictness in [Strictness::Saved, Strictness::Inline] {
        if let Err(faults) = config::read(&value, strictness, &limits) {
            assert!(!faults.is_empty());
        }
    }
    let hidden = credentials::secrets(&value).len();
    assert_eq!(credentials::secrets(&credentials::masked(value)).len(), hidden);
});
