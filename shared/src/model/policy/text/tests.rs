//! Names of groups, in their bounds.

use super::*;
use crate::model::policy::PolicyTarget;
use std::borrow::Cow;

struct Sent(&'static [(&'static str, &'static str)]);

impl Facts for Sent {
    fn target(&self) -> PolicyTarget {
        PolicyTarget::Llm
    }

    fn value(&self, key: &PolicyKey) -> Option<Cow<'_, str>> {
        let name = key.to_string();
        self.0.iter().find(|(one, _)| *one == name).map(|(_, value)| Cow::Borrowed(*value))
    }
}

fn keys(names: &[&str]) -> Vec<PolicyKey> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn named(names: &[&str], sent: &'static [(&'static str, &'static str)]) -> Option<String> {
    value_key(&keys(names), &Sent(sent))
}

#[test]
fn a_group_is_named_by_its_keys_and_values_in_order() {
    let sent: &[(&str, &str)] = &[("metadata._user", "alice"), ("api_key", "k-1")];
    assert_eq!(named(&["metadata._user"], sent).as_deref(), Some("metadata._user:alice"));
    assert_eq!(named(&["api_key", "metadata._user"], sent).as_deref(), Some("api_key:k-1|metadata._user:alice"));
    assert_eq!(named(&["api_key", "metadata.team"], sent), None, "a request that lacks a value is in no group");
    let mut behind = "policy/".to_owned();
    assert!(push_value_key(&mut behind, &keys(&["api_key"]), &Sent(sent), false));
    assert_eq!(behind, "policy/api_key:k-1");
    let mut none = String::new();
    assert!(push_value_key(&mut none, &keys(&["metadata.team", "api_key"]), &Sent(sent), true));
    assert_eq!(none, "metadata.team|api_key:k-1", "unless it is asked for");
}

#[test]
fn no_value_can_look_like_two() {
    let names = ["metadata.a", "metadata.b"];
    let one = named(&names, &[("metadata.a", "x|metadata.b:y"), ("metadata.b", "z")]);
    let two = named(&names, &[("metadata.a", "x"), ("metadata.b", "y|metadata.b:z")]);
    assert_ne!(one, two);
    assert_ne!(
        named(&names, &[("metadata.a", "x\\"), ("metadata.b", "y")]),
        named(&names, &[("metadata.a", "x"), ("metadata.b", "\\y")])
    );
}

#[test]
fn a_long_value_stands_by_its_hash() {
    static LONG: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "x".repeat(1 << 16));
    struct Long;
    impl Facts for Long {
        fn target(&self) -> PolicyTarget {
            PolicyTarget::Llm
        }

        fn value(&self, _: &PolicyKey) -> Option<Cow<'_, str>> {
            Some(Cow::Borrowed(LONG.as_str()))
        }
    }
    let name = value_key(&keys(&["metadata.x"]), &Long).unwrap();
    assert!(name.starts_with("metadata.x:sha256:") && name.len() == 18 + 64, "{name}");
    let many: Vec<String> = (0..8).map(|n| format!("metadata.{}{n}", "y".repeat(100))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let name = value_key(&keys(&many), &Long).unwrap();
    assert!(name.starts_with("sha256:") && name.len() == 7 + 64, "{name}");
}
