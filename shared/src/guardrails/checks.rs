//! The checks themselves, one idea a file. Each has a `compile`, which the table names.

pub mod add_prefix;
pub mod allowed_request_types;
pub mod character_count;
pub mod contains;
pub mod contains_code;
mod counted;
pub mod elsewhere;
pub mod ends_with;
#[cfg(test)]
mod every_check;
pub mod inline_images;
pub mod json_keys;
pub mod json_schema;
pub mod jwt;
pub mod letter_case;
mod listed;
pub mod log;
pub mod model_graded;
pub mod model_rules;
pub mod model_whitelist;
pub mod not_null;
pub mod pii;
pub mod placeholders;
mod redaction;
pub mod regex_match;
pub mod regex_replace;
pub mod request_parameters;
pub mod required_metadata_keys;
pub mod required_metadata_pairs;
pub mod secrets;
pub mod sentence_count;
pub mod valid_urls;
pub mod webhook;
pub mod word_count;
