import pytest
from conftest import MODELS, City
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

MAKERS = {
    "openai": lambda at: ChatOpenAI(model=MODELS["openai"], base_url=at.v1, api_key=at.key),
    "responses": lambda at: ChatOpenAI(model=MODELS["openai"], base_url=at.v1, api_key=at.key, use_responses_api=True),
    "anthropic": lambda at: ChatAnthropic(model=MODELS["anthropic"], base_url=at.root, api_key=at.key),
    "google": lambda at: ChatGoogleGenerativeAI(model=MODELS["google"], base_url=at.root, api_key=at.key),
}
pytestmark = pytest.mark.parametrize("vendor", MAKERS)


def test_streams(gateway, turn, vendor):
    turn.will_say()
    pieces = [chunk.text for chunk in MAKERS[vendor](gateway).stream(turn.asks())]
    assert "".join(pieces) == turn.done


def test_calls_tools(gateway, turn, vendor):
    turn.will_look_up()

    @tool
    def look_up(what: str) -> str:
        """Look something up."""
        return turn.look_up(what)

    agent = create_agent(MAKERS[vendor](gateway), tools=[look_up])
    answer = agent.invoke({"messages": [("user", turn.asks("Look it up."))]})
    assert answer["messages"][-1].text == turn.done


def test_answers_in_a_structure(gateway, turn, vendor):
    assert isinstance(MAKERS[vendor](gateway).with_structured_output(City).invoke(turn.asks("Which city?")), City)
