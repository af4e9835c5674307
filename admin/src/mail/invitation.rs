//! The letter that brings an invitation's link to the person invited.

use super::Letter;
use crate::http::Time;

pub struct Invitation<'a> {
    pub email: &'a str,
    pub organisation: &'a str,
    pub link: &'a str,
    pub expires_at: Time,
}

impl Invitation<'_> {
    pub fn letter(&self) -> Letter {
        let Self { email, organisation, link, expires_at } = self;
        let until = expires_at.0.format("%-d %B %Y, %H:%M UTC");
        Letter {
            to: (*email).to_owned(),
            subject: format!("You are invited to {organisation}"),
            text: format!(
                "You are invited to join {organisation} on Portcullis.\n\nAccept the invitation here:\n{link}\n\n\
                 The link is yours alone and works once, until {until}.\n\
                 If you did not expect it, ignore this message.\n"
            ),
            kind: "invitation",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_letter_says_who_invites_where_to_go_and_until_when() {
        let expires_at = Time("2026-01-05T10:30:00Z".parse().unwrap());
        let invitation =
            Invitation { email: "ada@x.test", organisation: "Acme", link: "https://gw.test/i#token=t", expires_at };
        let letter = invitation.letter();
        assert_eq!((letter.to.as_str(), letter.subject.as_str()), ("ada@x.test", "You are invited to Acme"));
        for part in ["join Acme", "\nhttps://gw.test/i#token=t\n", "until 5 January 2026, 10:30 UTC"] {
            assert!(letter.text.contains(part), "{}", letter.text);
        }
    }
}
