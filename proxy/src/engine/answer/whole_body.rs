//! Holds a plain answer until it is whole, where its head is to tell what it cost.

use super::steps::ResponseStep;
use pingora_http::ResponseHeader;

pub struct WholeBody;

impl ResponseStep for WholeBody {
    fn takes_body(&self, head: &ResponseHeader) -> bool {
        head.status.is_success()
    }
}
