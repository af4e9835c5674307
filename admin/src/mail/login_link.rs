//! The letter that brings a one-time link.

use super::Letter;

pub struct LoginLink<'a> {
    pub email: &'a str,
    pub organisation: &'a str,
    pub link: &'a str,
    pub minutes: i32,
}

impl LoginLink<'_> {
    pub fn letter(&self) -> Letter {
        let Self { email, organisation, link, minutes } = self;
        Letter {
            to: (*email).to_owned(),
            subject: format!("Sign in to {organisation}"),
            text: format!(
                "Sign in to {organisation} on Portcullis:\n{link}\n\n\
                 The link is yours alone and works once, for {minutes} minutes.\n\
                 If you did not ask for it, ignore this message.\n"
            ),
            kind: "login link",
        }
    }
}
