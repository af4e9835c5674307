import asyncio

import dspy
import pytest
from conftest import MODELS

pytestmark = pytest.mark.parametrize("vendor", ["openai", "anthropic"])


def program(at, vendor, signature):
    lm = dspy.LM(f"{vendor}/{MODELS[vendor]}", api_base=at.v1, api_key=at.key, cache=False)
    made = dspy.Predict(signature)
    made.set_lm(lm)
    return made


def test_answers_in_fields(gateway, turn, vendor):
    turn.will_say(f"[[ ## answer ## ]]\n{turn.done}\n\n[[ ## people ## ]]\n7\n\n[[ ## completed ## ]]")
    answer = program(gateway, vendor, "question -> answer: str, people: int")(question=turn.asks())
    assert (answer.answer, answer.people) == (turn.done, 7)


def test_streams(gateway, turn, vendor):
    turn.will_say(f"[[ ## answer ## ]]\n{turn.done}\n\n[[ ## completed ## ]]")
    made = dspy.streamify(program(gateway, vendor, "question -> answer"))

    async def last():
        *_, answer = [piece async for piece in made(question=turn.asks())]
        return answer

    assert asyncio.run(last()).answer == turn.done
