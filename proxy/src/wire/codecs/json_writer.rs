//! JSON straight into a buffer, so that a long conversation is written once. Commas are kept here; that brackets match
//! is up to the caller and shown by the golden tests, which parse all that is written.

use super::json_text::write_text;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct JsonWriter<'o> {
    out: &'o mut Vec<u8>,
    /// Nothing stands in the current container yet.
    is_first: bool,
    is_after_key: bool,
}

impl<'o> JsonWriter<'o> {
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, is_first: true, is_after_key: false }
    }

    pub fn open_object(&mut self) {
        self.open(b'{');
    }

    pub fn close_object(&mut self) {
        self.close(b'}');
    }

    pub fn open_array(&mut self) {
        self.open(b'[');
    }

    pub fn close_array(&mut self) {
        self.close(b']');
    }

    pub fn key(&mut self, name: &str) {
        self.separate();
        write_text(name, self.out);
        self.out.push(b':');
        self.is_after_key = true;
    }

    pub fn object_field(&mut self, name: &str) {
        self.key(name);
        self.open_object();
    }

    pub fn array_field(&mut self, name: &str) {
        self.key(name);
        self.open_array();
    }

    pub fn string(&mut self, text: &str) {
        self.separate();
        write_text(text, self.out);
    }

    pub fn value(&mut self, value: &Value) {
        self.separate();
        self.serialize(value);
    }

    /// Text that is JSON already.
    pub fn raw(&mut self, json: &str) {
        self.separate();
        self.out.extend_from_slice(json.as_bytes());
    }

    pub fn string_field(&mut self, name: &str, text: &str) {
        self.key(name);
        self.string(text);
    }

    pub fn optional_string(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.string_field(name, text);
        }
    }

    pub fn value_field(&mut self, name: &str, value: &Value) {
        self.key(name);
        self.value(value);
    }

    pub fn null_field(&mut self, name: &str) {
        self.key(name);
        self.raw("null");
    }

    pub fn bool_field(&mut self, name: &str, value: bool) {
        self.key(name);
        self.raw(if value { "true" } else { "false" });
    }

    pub fn integer_field(&mut self, name: &str, value: u64) {
        self.key(name);
        self.separate();
        self.serialize(&value);
    }

    /// Whole numbers without `.0`: some vendors refuse it where they expect an integer.
    pub fn number_field(&mut self, name: &str, value: f64) {
        self.key(name);
        self.number(value);
    }

    pub fn number(&mut self, value: f64) {
        self.separate();
        if value.fract() == 0.0 && value.abs() < 1e15 {
            self.serialize(&(value as i64));
        } else {
            self.serialize(&value);
        }
    }

    pub fn fields<'f>(&mut self, fields: impl Iterator<Item = (&'f str, &'f Value)>) {
        for (name, value) in fields {
            self.value_field(name, value);
        }
    }

    fn open(&mut self, bracket: u8) {
        self.separate();
        self.out.push(bracket);
        self.is_first = true;
    }

    fn close(&mut self, bracket: u8) {
        self.out.push(bracket);
        // The container itself was an entry of the one around it.
        self.is_first = false;
        self.is_after_key = false;
    }

    fn separate(&mut self) {
        if self.is_after_key {
            self.is_after_key = false;
        } else if self.is_first {
            self.is_first = false;
        } else {
            self.out.push(b',');
        }
        self.is_first = false;
    }

    fn serialize<T: serde::Serialize + ?Sized>(&mut self, value: &T) {
        // A vector takes everything, and strings, numbers and values have string keys: this cannot fail.
        let _ = serde_json::to_writer(&mut *self.out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commas_stand_between_entries_only() {
        let mut out = Vec::new();
        let mut w = JsonWriter::new(&mut out);
        w.open_object();
        w.array_field("a");
        w.open_object();
        w.close_object();
        w.string("x\n\"");
        w.close_array();
        w.number_field("b", 1.0);
        w.object_field("c");
        w.integer_field("d", 2);
        w.number_field("e", 0.5);
        w.close_object();
        w.value_field("f", &json!([1, null]));
        w.close_object();
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"a":[{},"x\n\""],"b":1,"c":{"d":2,"e":0.5},"f":[1,null]}"#);
    }
}
