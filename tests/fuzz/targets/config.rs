//! Any JSON is a config or is refused with faults, and a mask takes the place of every secret that was found.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use shared::config::{self, Strictness, credentials};
use shared::settings::config_limits::ConfigLimits;

fuzz_target!(|data: &[u8]| {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let limits = ConfigLimits::default();
    for strictness in [Strictness::Saved, Strictness::Inline] {
        if let Err(faults) = config::parse_config(&value, strictness, &limits) {
            assert!(!faults.is_empty());
        }
    }
    let hidden = credentials::secrets(&value).len();
    assert_eq!(credentials::secrets(&credentials::masked(value)).len(), hidden);
});
