import asyncio

import pytest
from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool
from conftest import MODELS


def options(at, vendor, home, **more):
    environment = {
        "ANTHROPIC_BASE_URL": at.root, "ANTHROPIC_AUTH_TOKEN": at.key, "HOME": str(home), "ANTHROPIC_API_KEY": "",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": MODELS[vendor], "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    return ClaudeAgentOptions(model=MODELS[vendor], env=environment, cwd=home, **more)


async def ended(prompt, how):
    async def prompts():
        yield {"type": "user", "message": {"role": "user", "content": prompt}}

    return [message async for message in query(prompt=prompts(), options=how)]


@pytest.mark.parametrize("vendor", MODELS)
def test_answers(gateway, turn, vendor, tmp_path):
    turn.will_say()
    messages = asyncio.run(ended(turn.asks(), options(gateway, vendor, tmp_path)))
    assert any(isinstance(message, AssistantMessage) for message in messages)
    assert [message.result for message in messages if isinstance(message, ResultMessage)] == [turn.done]


@pytest.mark.parametrize("vendor", MODELS)
def test_calls_tools(gateway, turn, vendor, tmp_path):
    turn.will({"contains": [turn.word, f"found{turn.number}"], "reply": turn.done, "times": 5})
    turn.will({"contains": [turn.word, "mcp__ours__look_up"], "call": {"name": "mcp__ours__look_up", "arguments": {"what": turn.word}}})

    @tool("look_up", "Look something up.", {"what": str})
    async def look_up(arguments):
        return {"content": [{"type": "text", "text": turn.look_up(arguments["what"])}]}

    server = create_sdk_mcp_server("ours", tools=[look_up])
    how = options(gateway, vendor, tmp_path, mcp_servers={"ours": server}, allowed_tools=["mcp__ours__look_up"])
    messages = asyncio.run(ended(turn.asks("Look it up."), how))
    assert [message.result for message in messages if isinstance(message, ResultMessage)] == [turn.done]
