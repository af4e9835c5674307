"""Chat through the engine lane: whole, as a stream, many at once, on one connection."""

import asyncio
import hashlib
import json

import openai as sdk
import pytest

from conftest import MOCK_URL, WORKSPACE_KEY, ask


def text_of(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_a_chat_is_answered_and_its_usage_counted(client):
    answer = client.chat.completions.create(**ask())
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "gpt-4o-mini"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0


def test_a_stream_says_the_same_as_the_whole_answer(client):
    whole = client.chat.completions.create(**ask()).choices[0].message.content
    chunks = list(client.chat.completions.create(**ask(), stream=True))
    assert len(chunks) > 3
    assert text_of(chunks) == whole
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_a_stream_ends_with_usage_only_when_the_client_asked_for_it(client):
    asked = list(client.chat.completions.create(**ask(), stream=True, stream_options={"include_usage": True}))
    assert asked[-1].choices == [] and asked[-1].usage.completion_tokens > 0
    unasked = list(client.chat.completions.create(**ask(), stream=True))
    assert all(chunk.usage is None for chunk in unasked)


def test_the_chunks_of_a_stream_arrive_as_they_are_sent(client, mock):
    done = mock.counts()["served"].get("chat", {}).get("ok", 0)
    stream = client.chat.completions.create(**ask(chunks=20, chunk_delay_ms=20), stream=True)
    next(iter(stream))
    assert mock.counts()["in_flight"] > 0, "the first chunk came only after the last was sent"
    assert text_of(stream)
    mock.until(lambda counts: counts["served"]["chat"]["ok"] == done + 1)


def test_characters_split_between_packets_arrive_whole(client):
    chat = ask(reply="naïve Σ 🌍 日本語", split_utf8=True)
    assert client.chat.completions.create(**chat).choices[0].message.content == "naïve Σ 🌍 日本語"
    assert text_of(client.chat.completions.create(**chat, stream=True)) == "naïve Σ 🌍 日本語"


def test_the_body_reaches_the_provider_as_the_sdk_wrote_it(client, mock):
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    answer = client.chat.completions.with_raw_response.create(
        **ask("naïve 🌍"), tools=tools, seed=7, extra_body={"brand_new": {"z": 1.0, "a": None}}
    )
    written = answer.http_request.content
    assert b"brand_new" in written
    assert mock.last_request()["body_sha256"] == hashlib.sha256(written).hexdigest()


def test_the_gateways_own_headers_and_key_stay_in_the_gateway(client, mock):
    client.chat.completions.create(**ask())
    sent = mock.last_request()["headers"]
    assert sent["authorization"] == "Bearer sk-mock"
    assert not [name for name in sent if name.startswith("x-gateway-")]
    assert WORKSPACE_KEY not in json.dumps(sent) and MOCK_URL not in sent.values()


def test_every_answer_carries_a_request_id_of_its_own(client):
    first, second = (client.chat.completions.with_raw_response.create(**ask()) for _ in range(2))
    ids = {answer.headers["x-gateway-request-id"] for answer in (first, second)}
    assert len(ids) == 2 and all(len(found) == 36 for found in ids)
    assert first.headers["x-gateway-provider"] == "openai"
    # The provider's own id is what the SDK shows.
    assert first.parse()._request_id == first.headers["x-request-id"]


def test_a_callers_trace_id_comes_back(client):
    answer = client.chat.completions.with_raw_response.create(
        **ask(), extra_headers={"x-gateway-trace-id": "trace-of-mine"}
    )
    assert answer.headers["x-gateway-trace-id"] == "trace-of-mine"


def test_twenty_chats_and_streams_at_once_do_not_mix(asynchronous):
    async def one(number):
        chat = ask(reply=f"answer {number}", latency_ms=100)
        if number % 2:
            return (await asynchronous.chat.completions.create(**chat)).choices[0].message.content
        stream = await asynchronous.chat.completions.create(**chat, stream=True)
        return text_of([chunk async for chunk in stream])

    async def all_of_them():
        async with asynchronous:
            return await asyncio.gather(*(one(number) for number in range(20)))

    assert asyncio.run(all_of_them()) == [f"answer {number}" for number in range(20)]


def test_one_connection_serves_many_requests_errors_included(client):
    def port_of(response):
        return response.extensions["network_stream"].get_extra_info("client_addr")[1]

    create = client.chat.completions.with_raw_response.create
    ports = set()
    for _ in range(5):
        ports.add(port_of(create(**ask()).http_response))
        with pytest.raises(sdk.BadRequestError) as refused:
            create(**ask(), extra_headers={"x-gateway-provider": "nobody"})
        ports.add(port_of(refused.value.response))
    assert len(ports) == 1
