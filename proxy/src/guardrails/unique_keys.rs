//! A body read into values, if it says everything once. Of a field that is there twice one reader takes the first and another the
//! last: what a check judged would not be what the provider reads.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The error says which field is there twice, or why it is no JSON.
pub fn parse_unique(body: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice::<Unique>(body).map(|read| read.0)
}

struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values).map(Self)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if fields.contains_key(&key) {
                return Err(A::Error::custom(format_args!("`{key}` is there twice")));
            }
            let Unique(value) = map.next_value()?;
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Unique(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_there_twice_is_found_however_deep() {
        for (body, is_repeated) in [
            (r#"{"a":1,"b":[{"a":null},{"a":"x"}],"c":{"a":1.5,"b":true}}"#, false),
            (r#"{"a":1,"a":1}"#, true),
            (r#"{"a":1,"\u0061":1}"#, true),
            (r#"{"messages":[{"content":"bad","content":"good"}]}"#, true),
            (r#"{"a":"\"a\":1,\"a\":1 is there twice"}"#, false),
        ] {
            let read = parse_unique(body.as_bytes());
            assert_eq!(read.is_err(), is_repeated, "{body}");
            assert_eq!(read.err().is_some_and(|error| error.to_string().contains("is there twice")), is_repeated);
        }
    }

    #[test]
    fn everything_else_is_read_as_it_always_is() {
        for body in [
            r#"{"z":1,"a":[-1,0.5,1e300,18446744073709551615,true,false,null,"é\n\u0000",{}],"":{}}"#,
            "[]",
            r#""text""#,
            "{",
            "",
            "{} x",
            "[1,]",
        ] {
            let (ours, usual) = (parse_unique(body.as_bytes()), serde_json::from_str::<Value>(body));
            assert_eq!(ours.is_ok(), usual.is_ok(), "{body}");
            assert_eq!(ours.ok().map(|value| value.to_string()), usual.ok().map(|value| value.to_string()));
        }
        let deep = "[".repeat(100_000);
        assert!(parse_unique(deep.as_bytes()).is_err(), "as deep as readers go");
    }
}
