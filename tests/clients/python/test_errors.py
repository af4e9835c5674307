"""Whatever goes wrong reaches the SDK's user as the exception its manual promises."""

import openai as sdk
import pytest

from conftest import ask, headers, openai


@pytest.mark.parametrize(
    "status, exception",
    [
        (400, sdk.BadRequestError),
        (401, sdk.AuthenticationError),
        (403, sdk.PermissionDeniedError),
        (404, sdk.NotFoundError),
        (409, sdk.ConflictError),
        (422, sdk.UnprocessableEntityError),
        (429, sdk.RateLimitError),
        (500, sdk.InternalServerError),
        (503, sdk.InternalServerError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_the_providers_error_keeps_its_status_and_message(client, status, exception, stream):
    with pytest.raises(exception) as caught:
        client.chat.completions.create(**ask(status=status), stream=stream)
    assert caught.value.status_code == status
    assert "mock error" in caught.value.body["message"]
    assert caught.value.response.headers["x-gateway-request-id"]


def test_the_providers_wish_for_patience_reaches_the_client(client):
    with pytest.raises(sdk.RateLimitError) as caught:
        client.chat.completions.create(**ask(status=429, retry_after=7))
    assert caught.value.response.headers["retry-after"] == "7"


def test_the_sdk_tries_again_after_an_error_that_passes(mock):
    mock.script({"status": 503, "retry_after_ms": 1}, {"status": 429, "retry_after_ms": 1})
    with openai(max_retries=2) as client:
        answer = client.chat.completions.with_raw_response.create(**ask())
    assert answer.retries_taken == 2
    assert answer.parse().choices[0].message.content


@pytest.mark.parametrize(
    "change, exception, code",
    [
        ({"x-gateway-api-key": "pk_unknown"}, sdk.AuthenticationError, "invalid_api_key"),
        ({"x-gateway-provider": "nobody"}, sdk.BadRequestError, "invalid_provider"),
        ({"x-gateway-metadata": "no JSON"}, sdk.BadRequestError, "invalid_metadata"),
        ({"x-gateway-custom-host": "http://10.0.0.1/v1"}, sdk.BadRequestError, "invalid_custom_host"),
        ({"x-gateway-request-timeout": "soon"}, sdk.BadRequestError, "invalid_header"),
    ],
)
def test_the_gateways_own_refusal_names_its_reason(client, change, exception, code):
    with pytest.raises(exception) as caught:
        client.chat.completions.create(**ask(), extra_headers=change)
    assert caught.value.code == code
    assert caught.value.response.headers["x-gateway-request-id"]


def test_without_a_service_key_nothing_is_answered():
    lacking = {name: value for name, value in headers("openai").items() if name != "x-gateway-api-key"}
    with openai(default_headers=lacking) as client, pytest.raises(sdk.AuthenticationError) as caught:
        client.chat.completions.create(**ask())
    assert caught.value.code == "missing_api_key"


def test_a_wrong_provider_key_is_the_providers_to_refuse():
    with openai(api_key="sk-bad") as client, pytest.raises(sdk.AuthenticationError) as caught:
        client.chat.completions.create(**ask())
    assert "Incorrect API key" in caught.value.body["message"]


def test_an_unreachable_provider_is_a_server_error(client):
    nowhere = {"x-gateway-custom-host": "http://127.0.0.1:9/v1"}
    with pytest.raises(sdk.InternalServerError) as caught:
        client.chat.completions.create(**ask(), extra_headers=nowhere)
    assert caught.value.status_code == 503 and caught.value.code == "upstream_unreachable"


def test_an_error_inside_a_stream_that_has_begun_is_raised_not_swallowed(client):
    received = []
    with pytest.raises(sdk.APIError) as caught:
        for chunk in client.chat.completions.create(**ask(chunks=10, error_after_chunks=3), stream=True):
            received.append(chunk)
    assert len(received) >= 3
    assert "mock error inside a stream" in str(caught.value)


def test_a_stream_the_provider_breaks_off_does_not_look_complete(client):
    received = []
    with pytest.raises(sdk.APIError):
        for chunk in client.chat.completions.create(**ask(chunks=50, cut_at=4000), stream=True):
            received.append(chunk)
    assert received[-1].choices[0].finish_reason is None


def test_a_body_that_is_not_json_is_a_bad_request(client):
    with pytest.raises(sdk.BadRequestError) as caught:
        client.post("/chat/completions", cast_to=object, content=b"{not json", options={})
    assert caught.value.code == "invalid_json"
