//! How a version of a prompt or of a partial is named: `slug`, `slug@12`, `slug@latest`, `slug@staging`.

use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionName<'a> {
    /// The one that was published.
    Default,
    /// The newest one, published or not.
    Latest,
    Number(i32),
    Id(Uuid),
    Label(&'a str),
}

impl<'a> VersionName<'a> {
    /// A number that no version can have names version 0, which does not exist.
    pub fn parse(written: &'a str) -> Self {
        match written {
            "default" => Self::Default,
            "latest" => Self::Latest,
            digits if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Self::Number(digits.parse().unwrap_or_default())
            }
            other => match Uuid::parse_str(other) {
                Ok(id) if other.len() == 36 => Self::Id(id),
                _ => Self::Label(other),
            },
        }
    }
}

/// The name, and the version after its `@`, if there is one.
pub fn split_reference(written: &str) -> (&str, Option<VersionName<'_>>) {
    match written.split_once('@') {
        Some((name, version)) => (name, Some(VersionName::parse(version))),
        None => (written, None),
    }
}
