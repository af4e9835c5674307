import asyncio

import pytest
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from conftest import MODELS, City
from openai import AsyncOpenAI

KINDS = {"responses": OpenAIResponsesModel, "chat": OpenAIChatCompletionsModel}
pytestmark = pytest.mark.parametrize("kind", KINDS)


def agent(at, kind, **more):
    model = KINDS[kind](model=MODELS["openai"], openai_client=AsyncOpenAI(base_url=at.v1, api_key=at.key))
    return Agent(name="helper", model=model, model_settings=ModelSettings(), **more)


def test_streams(gateway, turn, kind):
    turn.will_say()

    async def stream():
        running = Runner.run_streamed(agent(gateway, kind), turn.asks())
        pieces = [
            event.data.delta async for event in running.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
        return "".join(pieces), running.final_output

    assert asyncio.run(stream()) == (turn.done, turn.done)


def test_calls_tools(gateway, turn, kind):
    turn.will_look_up()

    @function_tool
    def look_up(what: str) -> str:
        """Look something up."""
        return turn.look_up(what)

    answer = Runner.run_sync(agent(gateway, kind, tools=[look_up]), turn.asks("Look it up."))
    assert answer.final_output == turn.done


def test_answers_in_a_structure(gateway, turn, kind):
    answer = Runner.run_sync(agent(gateway, kind, output_type=City), turn.asks("Which city?"))
    assert isinstance(answer.final_output, City)
