//! That filters become the conditions they name, and that wrong ones are refused with words.

use super::*;

fn sql(query: &str) -> Result<String, String> {
    let query = Query::parse(Some(query)).unwrap();
    conditions(&query).map(|filter| filter.sql()).map_err(|error| error.to_string())
}

#[test]
fn every_name_of_the_contract_becomes_a_condition() {
    for (query, expected) in [
        ("", "true"),
        ("time_of_generation_min=2026-01-01T00:00:00Z", "created_at >= $1"),
        ("time_of_generation_max=2026-01-01T02:00:00+02:00", "created_at < $1"),
        ("total_units_min=5", "total_units >= $1"),
        ("prompt_token_max=5", "req_units <= $1"),
        ("completion_token_min=5", "res_units >= $1"),
        ("cost_min=0.25&cost_max=1e2", "cost >= $1 AND cost <= $2"),
        ("status_code=200, 429", "response_status_code = ANY($1)"),
        ("virtual_keys=a,b", "virtual_key = ANY($1)"),
        ("configs=pc-1", "(config = ANY($1) OR config_id::text = ANY($1))"),
        ("api_key_ids=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", "api_key_id = ANY($1)"),
        ("trace_id=t", "trace_id = ANY($1)"),
        ("span_id=s", "span_id = ANY($1)"),
        ("prompt_slug=p", "prompt_slug = ANY($1)"),
        ("cache_status=HIT", "cache_status = ANY($1)"),
        ("ai_org=openai", "ai_org = ANY($1)"),
        ("-ai_model=a", "(ai_model = ANY($1) OR requested_model = ANY($1)) IS NOT TRUE"),
        ("-status_code=200", "response_status_code <> ALL($1)"),
        ("status_class=4xx,5xx", "response_status_code / 100 = ANY($1)"),
        ("is_success=false", "is_success = $1"),
        ("response_time_min=5", "response_time >= $1::bigint"),
        ("time_to_first_token_max=5", "time_to_first_token <= $1::bigint"),
        ("error_code=AB01&-error_code=AB02", "error_code = ANY($1) AND (error_code = ANY($2)) IS NOT TRUE"),
        ("user_id=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", "user_id = ANY($1)"),
        ("ai_org_model=openai__gpt-4o", "(ai_org = $1 AND ai_model = $2)"),
        ("ai_org_model=a__b,c__d", "(ai_org = $1 AND ai_model = $2 OR ai_org = $3 AND ai_model = $4)"),
        ("ai_model=gpt-4o", "(ai_model = ANY($1) OR requested_model = ANY($1))"),
        ("metadata={\"a\":\"b\",\"c\":1}", "metadata @> ANY($1) AND metadata @> ANY($2)"),
        ("search=t", "trace_id = $1"),
        ("search=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", "trace_id = $1"),
        ("search=019a0000-0000-7000-8000-000000000000", "(trace_id = $1 OR created_at = $2 AND id = $3)"),
        ("status_code=&cost_min=&metadata=", "true"),
    ] {
        assert_eq!(sql(query), Ok(expected.to_owned()), "{query}");
    }
    let weighed = sql("weighted_feedback_min=-1.5").unwrap();
    assert!(weighed.contains("f.weighted BETWEEN ($1::numeric[])[1] AND ($1::numeric[])[2]"), "{weighed}");
}

#[test]
fn a_list_has_so_many_items_at_most() {
    let lists = LISTS.iter().flat_map(|one| [(one.name, "a"), (one.left_out, "a")]);
    let id = "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11";
    for (name, item) in
        lists.chain([(ORG_MODEL, "a__b"), (STATUS_CODE, "200"), (NOT_STATUS_CODE, "200"), (KEYS, id), (PEOPLE, id)])
    {
        let of = |count: usize| sql(&format!("{name}={}", vec![item; count].join(",")));
        assert!(of(MAX_ITEMS).is_ok(), "{name}");
        let refused = of(MAX_ITEMS + 1).unwrap_err();
        assert!(refused.contains(name) && refused.contains("at most 100 items"), "{name}: {refused}");
    }
}

#[test]
fn wrong_values_are_named_by_their_parameter() {
    for query in [
        "time_of_generation_min=yesterday",
        "total_units_min=-1",
        "cost_max=-0.1",
        "cost_min=cheap",
        "weighted_feedback_min=-10.1",
        "weighted_feedback_max=11",
        "status_code=ok",
        "status_code=99999999999",
        "api_key_ids=mine",
        "user_id=mine",
        "-status_code=ok",
        "status_class=6xx",
        "is_success=perhaps",
        "cache_status=WARM",
        "response_time_min=soon",
        "metadata=[]",
        "metadata={\"a\":null}",
        "metadata={\"a\":{}}",
        "metadata={\"a\":\"\\u0000\"}",
    ] {
        let refused = sql(query).unwrap_err();
        assert!(refused.starts_with(query.split('=').next().unwrap()), "{query}: {refused}");
    }
    let reversed = sql("time_of_generation_min=2026-01-02&time_of_generation_max=2026-01-01").unwrap_err();
    assert!(reversed.starts_with("time_of_generation_max"), "{reversed}");
}

#[test]
fn metadata_is_looked_for_as_text_and_as_what_the_text_says() {
    let forms = |text: &str| {
        let query: String = url::form_urlencoded::Serializer::new(String::new()).append_pair("metadata", text).finish();
        pairs(&Query::parse(Some(&query)).unwrap()).unwrap()
    };
    assert_eq!(forms(r#"{"a":"5"}"#), [vec![json!({ "a": "5" }), json!({ "a": 5 })]]);
    assert_eq!(forms(r#"{"a":true}"#), [vec![json!({ "a": true }), json!({ "a": "true" })]]);
    assert_eq!(forms(r#"{"a":"b"}"#), [vec![json!({ "a": "b" })]]);
}

#[test]
fn filters_in_json_mean_what_they_mean_in_a_query() {
    let filters = json!({
        "created_at": { "gte": "2026-01-01T00:00:00Z", "lte": "2026-01-02T00:00:00+00:00" },
        "status_code": [200, "429"],
        "metadata": { "_user": "ada" },
        "cost_min": 0.5,
        "trace_id": null,
        "page_size": 100,
    });
    let query = of_json(filters.as_object().unwrap()).unwrap();
    assert_eq!(
        conditions(&query).unwrap().sql(),
        "created_at >= $1 AND created_at < $2 AND cost >= $3 AND response_status_code = ANY($4) AND metadata @> ANY($5)"
    );
    assert_eq!(query.page(crate::http::PageSizes { default: 1, most: 50_000 }).unwrap(), (100, 0));
    for wrong in [json!({ "cost_min": {} }), json!({ "status_code": [[]] }), json!({ "trace_id": true })] {
        assert!(of_json(wrong.as_object().unwrap()).is_err(), "{wrong}");
    }
}

#[test]
fn the_time_of_a_log_stands_in_its_id() {
    let id: Uuid = "018bcfe5-687b-7000-8000-000000000000".parse().unwrap();
    assert_eq!(time_in(id).unwrap().timestamp_millis(), 1_700_000_000_123);
    assert_eq!(time_in(Uuid::nil()), None);
    assert_eq!(time_in("0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11".parse().unwrap()), None, "another kind of UUID");
}

#[test]
fn a_list_without_a_beginning_goes_thirty_days_back_from_its_end() {
    let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    let now = at("2026-07-31T12:00:00Z");
    for (query, expected) in [
        ("", Some(at("2026-07-01T12:00:00Z"))),
        ("ai_model=none&workspace_slug=*", Some(at("2026-07-01T12:00:00Z"))),
        ("time_of_generation_max=2026-01-31T00:00:00Z", Some(at("2026-01-01T00:00:00.001Z"))),
        ("time_of_generation_max=1970-01-01T00:00:00Z", Some(at("1969-12-02T00:00:00.001Z"))),
        ("time_of_generation_min=2020-01-01T00:00:00Z", None),
        ("trace_id=t", None),
        ("search=t", None),
    ] {
        let beginning = default_beginning(&Query::parse(Some(query)).unwrap(), now).unwrap();
        assert_eq!(beginning, expected, "{query}");
    }
}
