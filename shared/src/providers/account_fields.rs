//! The fields of an account, wherever they stand: an integration's `configurations`, a target of a config, headers of a
//! request. Who reads them need not know, and where several say the same field the first one counts.

use serde_json::{Map, Value};

pub trait AccountFields {
    fn text(&self, name: &str) -> Option<&str>;

    /// What is more than a text, such as a key file that was not sent as one.
    fn object(&self, name: &str) -> Option<&Map<String, Value>>;
}

impl AccountFields for Map<String, Value> {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.get(name).and_then(Value::as_object)
    }
}

/// An object's.
impl AccountFields for Value {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Self::as_str)
    }

    fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.get(name).and_then(Self::as_object)
    }
}

/// The strongest first.
#[derive(Clone, Copy)]
pub struct LayeredFields<'f>(pub &'f [&'f dyn AccountFields]);

impl AccountFields for LayeredFields<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|layer| layer.text(name))
    }

    fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.0.iter().find_map(|layer| layer.object(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_layer_that_says_a_field_counts() {
        let (above, below) = (json!({ "a": "x" }), json!({ "a": "y", "b": "z", "c": {}, "d": 1 }));
        let fields = LayeredFields(&[&above, &below]);
        assert_eq!((fields.text("a"), fields.text("b"), fields.text("d")), (Some("x"), Some("z"), None));
        assert!(fields.object("c").is_some() && fields.object("a").is_none());
    }
}
