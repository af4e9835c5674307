import instructor
import pytest
from anthropic import Anthropic
from conftest import MODELS, City
from openai import OpenAI

MAKERS = {
    "openai": lambda at: instructor.from_openai(OpenAI(base_url=at.v1, api_key=at.key), model=MODELS["openai"]),
    "anthropic": lambda at: instructor.from_anthropic(
        Anthropic(base_url=at.root, api_key=at.key), model=MODELS["anthropic"], max_tokens=500
    ),
}
pytestmark = pytest.mark.parametrize("vendor", MAKERS)


def test_answers_in_a_structure(gateway, turn, vendor):
    messages = [{"role": "user", "content": turn.asks("Which city?")}]
    assert isinstance(MAKERS[vendor](gateway).create(response_model=City, messages=messages), City)


def test_streams_a_structure(gateway, turn, vendor):
    messages = [{"role": "user", "content": turn.asks("Which city?")}]
    *_, last = MAKERS[vendor](gateway).create_partial(response_model=City, messages=messages)
    assert last.name and last.people is not None
