//! The bodies of errors, and how errors of Postgres become ours.

use super::*;

#[test]
fn a_body_carries_both_published_shapes_and_the_request_id() {
    let error = ApiError::Invalid { field: Some("usage_limits.credit_limit".into()), message: "must be ≥ 1".into() };
    let body = error.body("r-1", None);
    assert_eq!(
        body,
        json!({
            "success": false,
            "message": "usage_limits.credit_limit: must be ≥ 1",
            "data": {
                "message": "usage_limits.credit_limit: must be ≥ 1",
                "errorCode": "AB01",
                "errors": [{
                    "field": "usage_limits.credit_limit",
                    "path": "usage_limits.credit_limit",
                    "message": "must be ≥ 1",
                }],
            },
            "error": {
                "message": "usage_limits.credit_limit: must be ≥ 1",
                "type": "invalid_request_error",
                "param": "usage_limits.credit_limit",
                "code": "AB01",
            },
            "request_id": "r-1",
        })
    );
}

#[test]
fn each_refusal_has_its_status_and_code() {
    for (error, status, code) in [
        (ApiError::invalid("x"), 400, "AB01"),
        (ApiError::TooLarge { limit: 1 }, 413, "AB01"),
        (ApiError::NoSuchPath { hint: None }, 404, "AB02"),
        (ApiError::WrongMethod { allow: "GET".into(), hint: None }, 405, "AB02"),
        (ApiError::WrongKeyKind, 403, "AB03"),
        (ApiError::MissingScope { needs: Scopes::Any(&["a"]) }, 403, "AB03"),
        (ApiError::Internal, 500, "AB04"),
        (ApiError::Unavailable, 503, "AB04"),
        (ApiError::NoMasterKey, 503, "AB04"),
        (ApiError::Forbidden("x"), 403, "AB03"),
        (ApiError::Unauthenticated("x"), 401, "AB05"),
        (ApiError::Token(Rejection::Malformed), 401, "AB05"),
        (ApiError::Token(Rejection::NoScope), 403, "AB03"),
        (ApiError::Conflict("x".into()), 409, "AB07"),
        (ApiError::InUse { object: "provider", by: Vec::new() }, 409, "AB07"),
        (ApiError::Faults(vec![FieldFault::new("name", "x")]), 400, "AB01"),
        (ApiError::NotFound("label"), 404, "AB08"),
        (ApiError::no_such("workspace_id", "workspace"), 404, "AB08"),
        (ApiError::NotListed("price"), 404, "AB08"),
        (ApiError::FeatureOff { setting: "X" }, 402, "AB09"),
        (ApiError::LimitReached { message: "x".into(), setting: "X" }, 402, "AB09"),
        (ApiError::RateLimited { message: "x", retry_after: 1 }, 429, "AB06"),
        (ApiError::TooSlow, 503, "AB04"),
        (ApiError::NotBuilt, 501, "AB10"),
    ] {
        assert_eq!((error.status().as_u16(), error.code()), (status, code), "{error}");
    }
}

#[test]
fn what_postgres_refuses_because_of_the_values_is_the_senders_fault() {
    for (sql_state, status) in [
        ("23505", Some(409)),
        ("23503", Some(404)),
        ("23514", Some(400)),
        ("22021", Some(400)),
        ("57014", Some(503)),
        ("42601", None),
    ] {
        assert_eq!(refusal(sql_state).map(|error| error.status().as_u16()), status, "{sql_state}");
    }
}

#[test]
fn an_error_of_a_part_is_named_by_its_whole_path() {
    for (inner, path) in [(None, "limits"), (Some("value"), "limits.value"), (Some("[0].value"), "limits[0].value")] {
        let error = ApiError::Invalid { field: inner.map(str::to_owned), message: "x".into() }.under("limits");
        assert!(error.to_string().starts_with(&format!("{path}: ")), "{error}");
    }
}

#[test]
fn a_server_that_leaves_is_away_and_one_that_refuses_a_statement_is_not() {
    for (sql_state, is_away) in
        [("08006", true), ("53300", true), ("57P01", true), ("57P03", true), ("57014", false), ("23505", false)]
    {
        assert_eq!(means_away(sql_state), is_away, "{sql_state}");
    }
}

#[tokio::test]
async fn a_connection_that_fails_is_answered_as_unavailable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let hangs_up = tokio::spawn(async move { drop(listener.accept().await) });
    let url = format!("postgres://u@127.0.0.1:{port}/x");
    for _ in ["hung up on", "nobody there"] {
        let error = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.err().unwrap();
        assert!(matches!(ApiError::from(error), ApiError::Unavailable));
    }
    hangs_up.await.unwrap();
}

#[test]
fn several_faults_are_one_answer_and_what_is_in_use_says_by_whom() {
    let faults = vec![FieldFault::new("name", "is required"), FieldFault::not_among("role", "admn", &["admin", "x"])];
    let body = ApiError::Faults(faults).under("users[0]").body("r-1", None);
    assert_eq!(body["message"], "users[0].name: is required (and 1 more)");
    assert_eq!(body["error"]["param"], "users[0].name");
    assert_eq!(body["data"]["errors"][1]["nearest"], "admin");
    let one = |n: usize| InUseBy { object: "config", id: uuid::Uuid::nil(), name: format!("c{n}"), workspace_id: None };
    let body = ApiError::InUse { object: "provider", by: (0..7).map(one).collect() }.body("r-1", None);
    assert_eq!(body["data"]["in_use_by"].as_array().map(Vec::len), Some(7));
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("`c4` and 2 more") && message.contains("force=true"), "{message}");
}
