//! Takes the usage out of a stream whose client did not ask for it: the gateway did, to know what the call costs.

use super::steps::{ResponseStep, Unusable};
use crate::limits::usage::stream_options::without_usage;
use bytes::Bytes;

pub struct StripUsage;

impl ResponseStep for StripUsage {
    fn events(&mut self, events: Bytes) -> Result<Bytes, Unusable> {
        Ok(without_usage(events))
    }
}
