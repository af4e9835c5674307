//! Where the model and the key of a session stand.

use super::*;

#[test]
fn the_model_is_read_from_the_query_of_a_session_alone() {
    for (path, query, found) in [
        ("/realtime", Some("model=%40prod%2Fgpt-realtime&x=1"), Some("@prod/gpt-realtime")),
        ("/realtime", Some("x=1&model=@prod/m"), Some("@prod/m")),
        ("/realtime", Some("mod%65l=m"), Some("m")),
        ("/real%74ime/", Some("model=m"), Some("m")),
        ("/realtime", Some("model"), Some("")),
        ("/realtime", Some("xmodel=a"), None),
        ("/realtime", None, None),
        ("/models", Some("model=@prod/m&model=b"), None),
    ] {
        assert_eq!(model(path, query).unwrap().as_deref(), found, "{path} {query:?}");
    }
}

#[test]
fn a_model_that_could_be_read_in_two_ways_is_refused() {
    for query in ["model=a&model=b", "model=a&mod%65l=b", "model=a&model", "model=%ff"] {
        let refusal = model("/realtime", Some(query)).expect_err(query);
        assert_eq!((refusal.status, refusal.code.as_str()), (400, "invalid_query"), "{query}");
    }
}

#[test]
fn another_model_changes_nothing_else_of_the_query() {
    for (before, after) in [
        ("/realtime?model=%40p%2Fm&x=%20&y", "/realtime?model=new/m%20odd&x=%20&y"),
        ("/realtime?mod%65l=m", "/realtime?model=new/m%20odd"),
        ("/realtime?x=1", "/realtime?x=1&model=new/m%20odd"),
        ("/realtime", "/realtime?model=new/m%20odd"),
    ] {
        assert_eq!(asking(before, "new/m odd"), after);
    }
}

#[test]
fn a_key_is_found_among_the_subprotocols_and_left_out() {
    for (sent, found, left) in [
        (
            "realtime, openai-insecure-api-key.pk_1, openai-beta.realtime-v1",
            Some("pk_1"),
            Some("realtime, openai-beta.realtime-v1"),
        ),
        ("openai-insecure-api-key.pk_1", Some("pk_1"), None),
        ("realtime", None, Some("realtime")),
    ] {
        let value = HeaderValue::from_static(sent);
        assert_eq!(key(&value), found.map(str::as_bytes), "{sent}");
        assert_eq!(without_key(&value), left.map(HeaderValue::from_static), "{sent}");
    }
}
