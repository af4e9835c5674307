import pytest
from conftest import MODELS, City
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

PLACES = {"openai": lambda at: at.v1, "anthropic": lambda at: at.root}
pytestmark = pytest.mark.parametrize("vendor", PLACES)


def crew(at, vendor, asked, tools=(), **task):
    llm = LLM(model=f"{vendor}/{MODELS[vendor]}", base_url=PLACES[vendor](at), api_key=at.key, stream=not task and not tools)
    agent = Agent(role="Helper", goal="Help", backstory="Helps.", llm=llm, tools=list(tools))
    return Crew(agents=[agent], tasks=[Task(description=asked, expected_output="A text", agent=agent, **task)])


def test_streams(gateway, turn, vendor):
    turn.will_say(f"Thought: I know.\nFinal Answer: {turn.done}")
    assert turn.done in crew(gateway, vendor, turn.asks()).kickoff().raw


def test_calls_tools(gateway, turn, vendor):
    turn.will_look_up()

    @tool("look_up")
    def look_up(what: str) -> str:
        """Look something up."""
        return turn.look_up(what)

    assert turn.done in crew(gateway, vendor, turn.asks("Look it up."), [look_up]).kickoff().raw


def test_answers_in_a_structure(gateway, turn, vendor):
    turn.will_say('{"name": "Paris", "people": 2000000}')
    answer = crew(gateway, vendor, turn.asks("Which city?"), output_pydantic=City).kickoff()
    assert answer.pydantic == City(name="Paris", people=2_000_000)
