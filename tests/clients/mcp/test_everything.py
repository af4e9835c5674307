"""The official client (PyPI mcp) through the gateway: what the reference server has, and how failures are heard."""

import os

import anyio
import httpx2
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

KEY = os.environ["GATEWAY_WORKSPACE_KEY"]


async def connected(url, work, key=KEY):
    headers = {"authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with streamable_http_client(url, http_client=http) as (read, write):
            async with ClientSession(read, write) as session:
                await session.initialize()
                await work(session)


def run(work, url=os.environ["MCP_URL"], **options):
    async def within():
        with anyio.fail_after(60):
            await connected(url, work, **options)

    anyio.run(within)


def test_tools_prompts_and_resources_pass():
    async def work(session):
        assert any(tool.name == "echo" for tool in (await session.list_tools()).tools)
        answer = await session.call_tool("echo", {"message": "hello"})
        assert "hello" in answer.content[0].text
        assert (await session.list_prompts()).prompts
        assert (await session.get_prompt("simple-prompt")).messages
        resources = (await session.list_resources()).resources
        assert (await session.read_resource(resources[0].uri)).contents
        await session.send_ping()

    run(work)


def test_progress_comes_while_a_tool_works():
    heard = []

    async def note(progress, total, message):
        heard.append(progress)

    async def work(session):
        arguments = {"duration": 1, "steps": 4}
        await session.call_tool("trigger-long-running-operation", arguments, progress_callback=note)

    run(work)
    assert len(heard) >= 2


def test_an_unknown_tool_is_heard_at_once():
    async def work(session):
        try:
            assert (await session.call_tool("no-such-tool", {})).is_error
        except MCPError as error:
            assert error.code == -32602

    run(work)


def test_a_key_that_is_none_is_an_error_and_no_silence():
    async def work(session):
        pass

    with pytest.raises(BaseException):
        run(work, key="pk_nobody")


def test_the_merged_server_has_them_under_the_slug():
    async def work(session):
        name = f"{os.environ['MCP_SLUG']}__echo"
        assert name in [tool.name for tool in (await session.list_tools()).tools]
        answer = await session.call_tool(name, {"message": "there"})
        assert "there" in answer.content[0].text

    run(work, url=os.environ["MCP_MERGED_URL"])
