"""Realtime sessions, by OpenAI's SDK and as a browser opens them. The mock says back whatever it hears."""

import asyncio
import json

import pytest
from openai import AsyncOpenAI
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from conftest import BASE_URL, WORKSPACE_KEY, headers, openai

SOCKET = BASE_URL.replace("http", "ws", 1)


def test_a_session_of_the_sdk(stored, mock):
    async def session(client, model, extra):
        async with client.realtime.connect(model=model, extra_headers=extra) as connection:
            await connection.send({"type": "session.updated", "session": {"type": "realtime", "instructions": "é"}})
            return await connection.recv()

    by_slug = openai(AsyncOpenAI, api_key=WORKSPACE_KEY, default_headers={})
    for client, model, extra, credential in [
        (openai(AsyncOpenAI), "gpt-realtime", headers("openai"), "Bearer sk-mock"),
        (by_slug, f"@{stored['openai']}/gpt-realtime", {}, "Bearer sk-stored"),
    ]:
        heard = asyncio.run(session(client, model, extra))
        assert heard.type == "session.updated" and heard.session.instructions == "é"
        sent = mock.last_request()
        assert (sent["query"], sent["headers"]["authorization"]) == ("model=gpt-realtime", credential)


def test_a_browsers_session_with_its_key_among_the_subprotocols(stored, mock):
    async def session():
        key = f"openai-insecure-api-key.{WORKSPACE_KEY}"
        url = f"{SOCKET}/realtime?model=@{stored['openai']}/gpt-realtime"
        async with connect(url, subprotocols=["realtime", key], proxy=None) as socket:
            assert socket.subprotocol == "realtime"
            for message in ("text é", bytes(range(256)) * 1000):
                await socket.send(message)
                assert await socket.recv() == message
            await socket.close(4001, "enough")
            return socket.close_code, socket.close_reason

    assert asyncio.run(session()) == (4001, "enough")
    assert WORKSPACE_KEY not in json.dumps(mock.last_request())


def test_a_session_that_cannot_begin_is_an_http_error(stored):
    async def session():
        async with connect(f"{SOCKET}/realtime?model=@nobody/m", additional_headers=[("x-gateway-api-key", WORKSPACE_KEY)], proxy=None):
            pass

    with pytest.raises(InvalidStatus) as refused:
        asyncio.run(session())
    assert refused.value.response.status_code == 400
    assert json.loads(refused.value.response.body)["error"]["code"] == "invalid_provider"
