import asyncio

import pytest
from conftest import MODELS, City
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.openai import OpenAI, OpenAIResponses

MAKERS = {
    "openai": lambda at: OpenAI(model="gpt-4o-mini", api_base=at.v1, api_key=at.key),
    "responses": lambda at: OpenAIResponses(model="gpt-4o-mini", api_base=at.v1, api_key=at.key),
    "anthropic": lambda at: Anthropic(model=MODELS["anthropic"], base_url=at.root, api_key=at.key),
}
pytestmark = pytest.mark.parametrize("vendor", MAKERS)


def test_streams(gateway, turn, vendor):
    turn.will_say()
    assert "".join(piece.delta or "" for piece in MAKERS[vendor](gateway).stream_complete(turn.asks())) == turn.done


def test_calls_tools(gateway, turn, vendor):
    turn.will_look_up()

    def look_up(what: str) -> str:
        """Look something up."""
        return turn.look_up(what)

    async def run():
        agent = FunctionAgent(tools=[look_up], llm=MAKERS[vendor](gateway))
        return str(await agent.run(user_msg=turn.asks("Look it up.")))

    assert asyncio.run(run()) == turn.done


def test_answers_in_a_structure(gateway, turn, vendor):
    answer = MAKERS[vendor](gateway).as_structured_llm(City).complete(turn.asks("Which city?"))
    assert isinstance(answer.raw, City)
