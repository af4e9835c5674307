//! What is inlined, what stays an address, and what a provider is told of it.

use super::*;
use crate::guardrails::compile;
use crate::guardrails::remote::Images;
use crate::guardrails::subject::testing::{said, subject};

fn images(fetched: Vec<Result<Image, String>>) -> Answers {
    Answers::Images(Images { fetched, held: None })
}

fn png(data: &str) -> Result<Image, String> {
    Ok(Image { media_type: "image/png".into(), data: data.into() })
}

fn asked(parameters: &Value, subject: &Subject<'_>, provider: &str) -> Result<Vec<String>, Box<Verdict>> {
    let check = compile("inlineImageUrls", parameters).unwrap();
    let context = RemoteContext { provider, ..RemoteContext::default() };
    match check.remote().unwrap().ask(subject, &context) {
        Ok(Question::Images { urls, .. }) => Ok(urls),
        Ok(_) => panic!("it asks for images alone"),
        Err(verdict) => Err(verdict),
    }
}

#[test]
fn images_are_found_where_each_dialect_has_them_and_replaced_in_its_words() {
    let data = "data:image/png;base64,QUJD";
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "QUJD" });
    for (shape, body, pointer, expected) in [
        (
            Shape::Chat,
            json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "https://a.test/no.png" },
                { "type": "image_url", "image_url": { "url": "https://a.test/1.png", "detail": "low" } }] }] }),
            "/messages/0/content/1/image_url",
            json!({ "url": data, "detail": "low" }),
        ),
        (
            Shape::Chat,
            json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url", "image_url": "http://a.test/1.png" }] }] }),
            "/messages/0/content/0/image_url",
            json!(data),
        ),
        (
            Shape::Messages,
            json!({ "messages": [{ "role": "user", "content": [{ "type": "image", "source": { "type": "url",
                "url": "https://a.test/1.png" } }] }] }),
            "/messages/0/content/0/source",
            source.clone(),
        ),
        (
            Shape::Messages,
            json!({ "messages": [{ "role": "user", "content": [{ "type": "tool_result", "content": [{ "type": "image",
                "source": { "type": "url", "url": "https://a.test/1.png" } }] }] }] }),
            "/messages/0/content/0/content/0/source",
            source,
        ),
        (
            Shape::Responses,
            json!({ "input": [{ "role": "user", "content": [{ "type": "input_image", "image_url": "https://a.test/1.png" }] }] }),
            "/input/0/content/0/image_url",
            json!(data),
        ),
        (
            Shape::Responses,
            json!({ "input": [{ "type": "function_call_output", "output": [{ "type": "input_image",
                "image_url": "https://a.test/1.png" }] }] }),
            "/input/0/output/0/image_url",
            json!(data),
        ),
    ] {
        let subject = Subject { shape, ..subject(&body, None) };
        assert_eq!(asked(&json!({}), &subject, "openai").unwrap().len(), 1, "{body}");
        let check = compile("inlineImageUrls", &json!({})).unwrap();
        let verdict = check.remote().unwrap().read(&subject, &images(vec![png("QUJD")]));
        assert_eq!(said(&verdict), "pass");
        let changed = verdict.transformed.unwrap();
        assert_eq!(changed.pointer(pointer), Some(&expected), "{changed}");
    }
}

#[test]
fn what_names_no_image_by_address_is_left_as_it_is() {
    let image =
        |url: Value| json!({ "messages": [{ "content": [{ "type": "image_url", "image_url": { "url": url } }] }] });
    let long = format!("https://a.test/{}", "x".repeat(MAX_URL));
    for body in [
        json!({}),
        json!({ "messages": "https://a.test/1.png" }),
        json!({ "messages": [{ "content": "https://a.test/1.png" }] }),
        image(json!("data:image/png;base64,QUJD")),
        image(json!("file:///etc/passwd")),
        image(json!("s3://bucket/key")),
        image(json!(7)),
        image(json!(long)),
    ] {
        let verdict = asked(&json!({}), &subject(&body, None), "openai").unwrap_err();
        assert_eq!((said(&verdict), &verdict.transformed), ("pass", &None), "{body}");
    }
    let answer = json!({ "choices": [] });
    let body = image(json!("https://a.test/1.png"));
    assert!(asked(&json!({}), &subject(&body, Some(&answer)), "openai").is_err(), "answers are left alone");
}

#[test]
fn only_requests_to_the_providers_that_are_named_are_changed() {
    let body = json!({ "messages": [{ "content": [{ "type": "image_url", "image_url": { "url": "https://a.test/1.png" } }] }] });
    for (providers, provider, is_asked) in [
        (json!([]), "openai", true),
        (json!(["anthropic"]), "openai", false),
        (json!(["anthropic", "OpenAI"]), "openai", true),
        (json!("main"), "@main", true),
        (json!("@main"), "main", true),
    ] {
        let found = asked(&json!({ "providers": providers }), &subject(&body, None), provider);
        assert_eq!(found.is_ok(), is_asked, "{providers} {provider}");
    }
}

#[test]
fn an_image_that_cannot_be_had_changes_nothing_and_too_many_fail() {
    let image = json!({ "type": "image_url", "image_url": { "url": "https://a.test/1.png?sig=s3cret" } });
    let body = |count: usize| json!({ "messages": [{ "content": vec![image.clone(); count] }] });
    let two = body(2);
    let check = compile("inlineImageUrls", &json!({})).unwrap();
    let verdict =
        check.remote().unwrap().read(&subject(&two, None), &images(vec![png("QUJD"), Err("it is empty".into())]));
    assert_eq!((said(&verdict), &verdict.transformed), ("error", &None));
    let told = verdict.to_json().to_string();
    assert!(
        told.contains("/messages/0/content/1") && told.contains("it is empty") && !told.contains("s3cret"),
        "{told}"
    );
    assert!(verdict.passes(false) && !verdict.passes(true));
    let verdict = check.remote().unwrap().read(&subject(&two, None), &images(vec![png("QUJD")]));
    assert_eq!(said(&verdict), "error");
    let (most, more) = (body(MAX_IMAGES), body(MAX_IMAGES + 1));
    assert_eq!(asked(&json!({}), &subject(&most, None), "").unwrap().len(), MAX_IMAGES);
    assert!(asked(&json!({}), &subject(&more, None), "").is_err_and(|verdict| !verdict.passes(false)));
}

#[test]
fn sizes_and_times_are_bounded_whatever_the_check_says() {
    let body = json!({ "messages": [{ "content": [{ "type": "image_url", "image_url": { "url": "https://a.test/1.png" } }] }] });
    for (parameters, expected, millis) in [
        (json!({}), 20 << 20, 30_000),
        (json!({ "maxSizeBytes": 1000, "timeoutMs": 5000 }), 1000, 5000),
        (json!({ "maxSizeBytes": 1_000_000_000 }), 20 << 20, 30_000),
    ] {
        let check = compile("inlineImageUrls", &parameters).unwrap();
        let remote = check.remote().unwrap();
        let Ok(Question::Images { longest, .. }) = remote.ask(&subject(&body, None), &RemoteContext::default()) else {
            panic!("it asks for images");
        };
        assert_eq!((longest, remote.timeout().as_millis()), (expected, millis), "{parameters}");
    }
}
