//! `forward_headers`: the client's headers that a config sends on.

use super::fault::{Code, Reading};
use super::object::ConfigObject;
use crate::headers::forwarded_headers;

pub fn parse(reading: &mut Reading<'_>, node: &mut ConfigObject<'_, '_>) -> Option<Vec<String>> {
    let names = node.texts(reading, "forward_headers")?;
    let path = node.path.key("forward_headers");
    let mut valid = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        match forwarded_headers::parse(name) {
            Ok(name) => valid.push(name.as_str().to_owned()),
            Err(why) => reading.fault(&path.index(index), Code::BadHeader, why.to_string()),
        }
    }
    Some(valid)
}
