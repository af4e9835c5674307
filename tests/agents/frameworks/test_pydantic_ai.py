import asyncio

import pytest
from conftest import MODELS, City
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

MAKERS = {
    "openai": lambda at: OpenAIChatModel(MODELS["openai"], provider=OpenAIProvider(base_url=at.v1, api_key=at.key)),
    "responses": lambda at: OpenAIResponsesModel(MODELS["openai"], provider=OpenAIProvider(base_url=at.v1, api_key=at.key)),
    "anthropic": lambda at: AnthropicModel(MODELS["anthropic"], provider=AnthropicProvider(base_url=at.root, api_key=at.key)),
    "google": lambda at: GoogleModel(MODELS["google"], provider=GoogleProvider(base_url=at.root, api_key=at.key)),
}
pytestmark = pytest.mark.parametrize("vendor", MAKERS)


def test_streams(gateway, turn, vendor):
    turn.will_say()

    async def stream():
        async with Agent(MAKERS[vendor](gateway)).run_stream(turn.asks()) as answer:
            return [piece async for piece in answer.stream_text(delta=True)]

    assert "".join(asyncio.run(stream())) == turn.done


def test_calls_tools(gateway, turn, vendor):
    turn.will_look_up()
    agent = Agent(MAKERS[vendor](gateway))

    @agent.tool_plain
    def look_up(what: str) -> str:
        """Look something up."""
        return turn.look_up(what)

    assert agent.run_sync(turn.asks("Look it up.")).output == turn.done


def test_answers_in_a_structure(gateway, turn, vendor):
    turn.will({"call": {"name": "final_result", "arguments": {"name": "Paris", "people": 2_000_000}}})
    answer = Agent(MAKERS[vendor](gateway), output_type=City).run_sync(turn.asks("Which city?")).output
    assert answer == City(name="Paris", people=2_000_000)
