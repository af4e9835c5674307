"""The relay lane: endpoints the gateway does not look into, for OpenAI's SDK and for Anthropic's."""

import hashlib

import anthropic as claude_sdk
import openai as sdk
import pytest

from conftest import ask, cancels, headers


def chat(**fault):
    return {**ask(**fault), "model": "claude-sonnet-5", "max_tokens": 100}


def test_models_are_listed_and_found(client):
    names = [model.id for model in client.models.list()]
    assert "gpt-4o-mini" in names
    assert client.models.retrieve("gpt-4o-mini").id == "gpt-4o-mini"
    with pytest.raises(sdk.NotFoundError):
        client.models.retrieve("no-such-model")


def test_embeddings_are_numbers_one_list_for_each_input(client):
    answer = client.embeddings.create(model="text-embedding-3-small", input=["one", "two"], dimensions=8)
    assert [len(found.embedding) for found in answer.data] == [8, 8]
    assert answer.data[0].embedding != answer.data[1].embedding
    assert answer.usage.total_tokens > 0


def test_a_file_arrives_byte_for_byte(client, mock):
    content = bytes(range(256)) * 4096
    answer = client.post("/audio/anything", cast_to=object, content=content, options={})
    assert answer["body_sha256"] == hashlib.sha256(content).hexdigest()


def test_a_refusal_on_the_relay_lane_is_an_authentication_error(client):
    with pytest.raises(sdk.AuthenticationError):
        client.with_options(default_headers={"x-gateway-api-key": "pk_unknown"}).models.list()


def test_a_message_is_answered(claude, mock):
    message = claude.messages.create(**chat())
    assert message.content[0].text and message.stop_reason == "end_turn"
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0
    sent = mock.last_request()["headers"]
    assert sent["x-api-key"] == "sk-ant-mock" and sent["anthropic-version"]
    assert not [name for name in sent if name.startswith("x-gateway-")]


def test_a_streamed_message_says_the_same_as_the_whole(claude):
    whole = claude.messages.create(**chat()).content[0].text
    with claude.messages.stream(**chat()) as stream:
        assert "".join(stream.text_stream) == whole
        assert stream.get_final_message().stop_reason == "end_turn"


def test_tokens_are_counted(claude):
    counted = claude.messages.count_tokens(model="claude-sonnet-5", messages=ask("12345678")["messages"])
    assert counted.input_tokens == 2


def test_a_message_stream_left_in_the_middle_is_cancelled_upstream(claude, mock):
    cancelled = mock.counts()["cancelled"]
    with claude.messages.stream(**chat(chunks=2000, chunk_delay_ms=30)) as stream:
        next(stream.text_stream)
    mock.until(lambda counts: counts["cancelled"] == cancelled + 1)


@pytest.mark.parametrize(
    "status, exception",
    [
        (400, claude_sdk.BadRequestError),
        (429, claude_sdk.RateLimitError),
        (500, claude_sdk.InternalServerError),
        (529, claude_sdk.InternalServerError),
    ],
)
def test_anthropics_error_keeps_its_status_and_type(claude, status, exception):
    with pytest.raises(exception) as caught:
        claude.messages.create(**chat(status=status))
    assert caught.value.status_code == status
    assert caught.value.body["type"] == "error" and "mock error" in caught.value.body["error"]["message"]


def test_the_gateways_refusal_speaks_anthropic_to_anthropics_sdk(claude):
    with pytest.raises(claude_sdk.AuthenticationError) as caught:
        claude.messages.create(**chat(), extra_headers=headers("anthropic", key="pk_unknown"))
    assert caught.value.body["type"] == "error"
    assert caught.value.body["error"]["type"] == "authentication_error"
    assert caught.value.body["request_id"] == caught.value.response.headers["x-gateway-request-id"]


def test_the_gateways_timeout_is_408_on_the_relay_lane_too(claude, mock):
    def run_out(seconds):
        limit = {"x-gateway-request-timeout": str(int(seconds * 1000))}
        with pytest.raises(claude_sdk.APIStatusError) as caught:
            claude.messages.create(**chat(latency_ms=3_600_000), extra_headers=limit)
        assert caught.value.status_code == 408

    assert cancels(mock, run_out)
