//! The letter to all owners when somebody becomes an owner of the organisation, or is none any more.

use super::Letter;

pub const KIND: &str = "owner";

/// What happened, to the person of this address.
pub enum OwnerNews<'a> {
    IsOwner(&'a str),
    IsOwnerNoMore(&'a str),
}

pub fn letter(to: String, organisation: &str, news: &OwnerNews<'_>, by: &str) -> Letter {
    let what = match news {
        OwnerNews::IsOwner(email) => format!("{email} is now an owner of {organisation}"),
        OwnerNews::IsOwnerNoMore(email) => format!("{email} is no longer an owner of {organisation}"),
    };
    let text = format!(
        "{what} on Portcullis.\n{by} did this. Owners may do everything in the organisation, sign-in settings included.\n\
         If you did not expect it, look into the audit trail and sign {by} out everywhere.\n"
    );
    Letter { to, subject: what, text, kind: KIND }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_read_who_became_one_and_who_made_them() {
        let letter = letter("a@x.test".into(), "Acme", &OwnerNews::IsOwner("ada@x.test"), "eve@x.test");
        assert_eq!(letter.subject, "ada@x.test is now an owner of Acme");
        assert!(letter.text.contains("eve@x.test did this"), "{}", letter.text);
        let news = OwnerNews::IsOwnerNoMore("ada@x.test");
        assert!(super::letter("a@x.test".into(), "Acme", &news, "").subject.contains("no longer"));
    }
}
