//! What a provider says of its usage, as it stands in its JSON: borrowed from it, in the order it was written. Such
//! objects are short, so that looking through one costs less than a map.

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Words<'w> {
    Count(u64),
    /// A number that is no count.
    Number(f64),
    Text(Cow<'w, str>),
    List(Vec<Self>),
    Object(Vec<(Cow<'w, str>, Self)>),
    /// `null`, `true` or `false`.
    Other,
}

impl<'w> Words<'w> {
    /// None when it is no JSON.
    pub fn parse(text: &'w str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// A field of an object; the last one should it stand there twice.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        fields.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    pub fn count(&self) -> Option<u64> {
        if let Self::Count(count) = self { Some(*count) } else { None }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}

impl<'de> Deserialize<'de> for Words<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

/// The name of a field, borrowed where nothing in it is escaped.
struct Name<'n>(Cow<'n, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<Words<'de>, E> {
        Ok(Words::Count(count))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Words<'de>, E> {
        Ok(u64::try_from(number).map_or(Words::Number(number as f64), Words::Count))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Words<'de>, E> {
        Ok(Words::Number(number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Words<'de>, E> {
        Ok(Words::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Words<'de>, E> {
        Ok(Words::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Words<'de>, E> {
        Ok(Words::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Words<'de>, E> {
        Ok(Words::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Words::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Words<'de>, A::Error> {
        // As many as most have.
        let mut fields = Vec::with_capacity(6);
        while let Some((Name(name), value)) = object.next_entry()? {
            fields.push((name, value));
        }
        Ok(Words::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn words_say_what_the_json_says() {
        let text = r#"{"a":1,"b":[1.5,-2,"x\n",{"c":null}],"\u0061":7,"d":true,"e":18446744073709551616}"#;
        let words = Words::parse(text).unwrap();
        assert_eq!(words.get("a").and_then(Words::count), Some(7), "the last of two");
        let items = words.get("b").unwrap().items();
        assert_eq!((items[0].number(), items[0].count()), (Some(1.5), None));
        assert_eq!((items[1].number(), items[1].count()), (Some(-2.0), None));
        assert_eq!((items[2].text(), items[3].get("c")), (Some("x\n"), Some(&Words::Other)));
        assert_eq!((words.get("d"), words.get("f")), (Some(&Words::Other), None));
        for text in ["", "{", "{]", "not JSON", "{} x"] {
            assert_eq!(Words::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_and_its_text_are_the_same_words() {
        let value: Value = json!({ "a": { "b": [1, 2.5, "x"] }, "c": -3 });
        let text = value.to_string();
        assert_eq!(Words::deserialize(&value).ok(), Words::parse(&text));
    }
}
