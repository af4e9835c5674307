"""Answers from the cache, read by the SDKs: as they read those of a provider, whichever form they were kept from."""

import json
import uuid

import pytest

from conftest import anthropic, ask, headers, openai

TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
CLAUDES_TOOL = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


def keeping(provider):
    """A namespace of its own, so that no other test's answers are met."""
    return headers(provider) | {"x-gateway-cache": "simple", "x-gateway-cache-namespace": uuid.uuid4().hex}


@pytest.fixture
def kept():
    with openai(default_headers=keeping("openai")) as client:
        yield client


@pytest.fixture
def claude_kept():
    with anthropic(default_headers=keeping("anthropic")) as client:
        yield client


def status(raw):
    return raw.headers["x-gateway-cache-status"]


def streamed_chat(client, **asked):
    with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion()


@pytest.mark.parametrize("first", ["plain", "stream"])
def test_a_chat_is_the_same_from_a_stream_and_whole(kept, first):
    ways = {"plain": lambda: kept.chat.completions.create(**ask()), "stream": lambda: streamed_chat(kept, **ask())}
    original = ways[first]()
    assert status(kept.chat.completions.with_raw_response.create(**ask())) == "HIT"
    for way in ways.values():
        again = way()
        assert (again.id, again.created, again.model) == (original.id, original.created, original.model)
        assert again.choices[0].message.content == original.choices[0].message.content
        assert again.choices[0].finish_reason == original.choices[0].finish_reason
        assert again.usage.total_tokens == original.usage.total_tokens


def test_calls_of_tools_come_back_from_a_stream(kept):
    asked = ask() | {"tools": [TOOL], "tool_choice": "required"}
    whole = kept.chat.completions.create(**asked)
    again = streamed_chat(kept, **asked)
    calls = [answer.choices[0].message.tool_calls[0] for answer in (whole, again)]
    assert calls[0].id == calls[1].id
    assert json.loads(calls[1].function.arguments) == json.loads(calls[0].function.arguments) == {"city": "Paris"}


@pytest.mark.parametrize("first", ["plain", "stream"])
def test_responses(kept, first):
    asked = {"model": "gpt-4o-mini", "input": "Hello"}
    if first == "plain":
        original = kept.responses.create(**asked)
    else:
        original = [event for event in kept.responses.create(**asked, stream=True)][-1].response
    assert status(kept.responses.with_raw_response.create(**asked)) == "HIT"
    assert kept.responses.create(**asked).output_text == original.output_text
    events = list(kept.responses.create(**asked, stream=True))
    assert [event.type for event in events][:2] == ["response.created", "response.in_progress"]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == original.output_text
    last = events[-1]
    assert (last.type, last.response.id, last.response.output_text) == ("response.completed", original.id, original.output_text)


@pytest.mark.parametrize("first", ["plain", "stream"])
def test_messages(claude_kept, first):
    asked = ask() | {"model": "claude-sonnet-5", "max_tokens": 100}

    def streamed():
        with claude_kept.messages.stream(**asked) as stream:
            return stream.get_final_message()

    ways = {"plain": lambda: claude_kept.messages.create(**asked), "stream": streamed}
    original = ways[first]()
    assert status(claude_kept.messages.with_raw_response.create(**asked)) == "HIT"
    for way in ways.values():
        again = way()
        assert (again.id, again.content[0].text) == (original.id, original.content[0].text)
        assert (again.stop_reason, again.usage.output_tokens) == (original.stop_reason, original.usage.output_tokens)


def test_claudes_tools(claude_kept):
    asked = ask() | {"model": "claude-sonnet-5", "max_tokens": 100, "tools": [CLAUDES_TOOL], "tool_choice": {"type": "any"}}
    whole = claude_kept.messages.create(**asked)
    with claude_kept.messages.stream(**asked) as stream:
        again = stream.get_final_message()
    assert [(use.id, use.name, use.input) for use in again.content] == [(use.id, use.name, use.input) for use in whole.content]


def test_completions_and_embeddings(kept):
    asked = {"model": "gpt-3.5-turbo-instruct", "prompt": "Hello"}
    whole = kept.completions.create(**asked)
    assert "".join(chunk.choices[0].text for chunk in kept.completions.create(**asked, stream=True) if chunk.choices) == (
        whole.choices[0].text
    )
    vectors = {"model": "text-embedding-3-small", "input": ["a", "b"]}
    first = kept.embeddings.create(**vectors)
    raw = kept.embeddings.with_raw_response.create(**vectors)
    assert status(raw) == "HIT" and raw.parse().data == first.data
