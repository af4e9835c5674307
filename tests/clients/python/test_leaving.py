"""Time running out, and clients that leave: the provider must not go on working for nobody."""

import asyncio

import openai as sdk
import pytest

from conftest import ask, cancels, openai


def test_the_clients_own_timeout_cancels_the_provider(client, mock):
    def run_out(seconds):
        with pytest.raises(sdk.APITimeoutError):
            client.with_options(timeout=seconds).chat.completions.create(**ask(latency_ms=3_600_000))

    assert cancels(mock, run_out)


def test_the_gateways_timeout_is_408_and_cancels_the_provider(client, mock):
    def run_out(seconds):
        limit = {"x-gateway-request-timeout": str(int(seconds * 1000))}
        with pytest.raises(sdk.APIStatusError) as caught:
            client.chat.completions.create(**ask(latency_ms=3_600_000), extra_headers=limit)
        assert caught.value.status_code == 408
        assert caught.value.code == "timeout"

    assert cancels(mock, run_out)


def test_a_stream_left_in_the_middle_is_cancelled_upstream(client, mock):
    cancelled = mock.counts()["cancelled"]
    stream = client.chat.completions.create(**ask(chunks=2000, chunk_delay_ms=30), stream=True)
    for _, _chunk in zip(range(3), stream):
        pass
    stream.close()
    counts = mock.until(lambda counts: counts["cancelled"] == cancelled + 1)
    assert counts["in_flight"] == 0


def test_a_silent_stream_left_in_the_middle_is_cancelled_upstream(client, mock):
    cancelled = mock.counts()["cancelled"]
    stream = client.chat.completions.create(**ask(chunks=50, stall_after_bytes=1500), stream=True)
    next(iter(stream))
    stream.close()
    mock.until(lambda counts: counts["cancelled"] == cancelled + 1)


def test_a_cancelled_task_is_cancelled_upstream(mock):
    cancelled = mock.counts()["cancelled"]

    async def leave():
        async with openai(sdk.AsyncOpenAI) as client:
            task = asyncio.create_task(client.chat.completions.create(**ask(latency_ms=3_600_000)))
            await asyncio.to_thread(mock.until, lambda counts: counts["in_flight"] == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(leave())
    mock.until(lambda counts: counts["cancelled"] == cancelled + 1)


def test_the_client_can_go_on_after_leaving(client):
    stream = client.chat.completions.create(**ask(chunks=2000, chunk_delay_ms=30), stream=True)
    next(iter(stream))
    stream.close()
    assert client.chat.completions.create(**ask()).choices[0].message.content
