//! Spellings of one path.

use super::*;
use proptest::prelude::*;

#[test]
fn spellings_that_mean_the_same_become_one() {
    for (written, meant) in [
        ("/chat/completions", "/chat/completions"),
        ("/%63hat/complet%69ons", "/chat/completions"),
        ("//chat///completions/", "/chat/completions"),
        ("/chat/completions//", "/chat/completions"),
        ("/a%2fb", "/a%2fb"),
        ("/%E6%9D%B1/é", "/%E6%9D%B1/é"),
        ("/%", "/%"),
        ("/%7", "/%7"),
        ("/%zz", "/%zz"),
        ("/%2e%2E/x", "/../x"),
        ("/", "/"),
        ("//", "/"),
    ] {
        assert_eq!(canonical(written), meant, "{written}");
    }
}

#[test]
fn the_loosest_reading_finds_what_a_forgiving_server_would_serve() {
    for written in [
        "/Chat/Completions",
        "/chat%2Fcompletions",
        "/chat%252fcompletions",
        "/chat\\completions",
        "/x/../chat/./completions",
        "/x/%2e%2e/chat/completions",
        "/chat;v=1/completions",
        "/chat/completions%00",
        "/chat/completions%20",
        "/chat/completions%3fa=b",
    ] {
        assert_eq!(loosest(written).as_deref(), Some("/chat/completions"), "{written}");
    }
    assert_eq!(loosest("/chat/completions"), None);
}

proptest! {
    #[test]
    fn no_path_is_too_strange(path in "(/|%|\\.|;|[a-zA-Z0-9%é\\\\]){0,24}") {
        let once = canonical(&path).into_owned();
        // An escape may appear once its own escapes are gone; plain text stays.
        if !once.contains('%') {
            prop_assert_eq!(canonical(&once), &*once);
        }
        let _ = loosest(&path);
    }
}
