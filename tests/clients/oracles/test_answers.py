"""Every answer that we write, whole and as a stream, by the models that the vendor's own SDK reads it with."""

import warnings

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from cohere.v2.types import V2ChatResponse, V2ChatStreamResponse
from google.genai import types as google
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

import converse
import exceptions
import golden
from verdicts import Verdicts, flaws

# Without "chat, not strict": there a provider's own finish reasons are the point.
ANSWERS = {
    "chat": ChatCompletion,
    "responses": Response,
    "messages": Message,
    "completions": Completion,
    "gemini": google.GenerateContentResponse,
    "cohere": V2ChatResponse,
}
EVENTS = {
    "chat": ChatCompletionChunk,
    "responses": ResponseStreamEvent,
    "messages": RawMessageStreamEvent,
    "completions": Completion,
    "gemini": google.GenerateContentResponse,
    "cohere": V2ChatStreamResponse,
}


def loudly(check):
    """Google's models take an unknown word of an enumeration with a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = check()
    return found + [str(warning.message) for warning in caught if "is not a valid" in str(warning.message)]


@pytest.mark.parametrize("target", ANSWERS)
def test_answers_are_of_the_vendors_models(target):
    adapter = TypeAdapter(ANSWERS[target])
    verdicts = Verdicts("answers", target, exceptions.ANSWERS)
    for fixture, answer in golden.answers(target):
        verdicts.add(fixture, loudly(lambda: flaws(adapter, answer)))
    verdicts.check(least=100)


def test_answers_of_converse_are_of_awss_service_model():
    verdicts = Verdicts("answers", "converse", exceptions.ANSWERS)
    for fixture, answer in golden.answers("converse"):
        verdicts.add(fixture, converse.flaws(answer, converse.ANSWER))
    verdicts.check(least=100)


def is_error(name, data):
    """Errors inside a stream have a shape of their own, which SDKs read apart from events (see `test_streams`)."""
    return name == "error" or (isinstance(data, dict) and isinstance(data.get("error"), dict) and "choices" not in data)


def as_the_sdk_types_it(target, data):
    """OpenAI's old completions have one model for both, where the reason is never null; in their streams it is, until
    the end."""
    if target == "completions":
        for choice in data["choices"]:
            choice["finish_reason"] = choice["finish_reason"] or "stop"
    return data


@pytest.mark.parametrize("target", EVENTS)
def test_events_are_of_the_vendors_models(target):
    adapter = TypeAdapter(EVENTS[target])
    verdicts = Verdicts("streams", target, exceptions.STREAMS)
    for fixture, text in golden.streams(target):
        found = []
        for name, data in golden.events(text):
            if data != "[DONE]" and not is_error(name, data):
                found += loudly(lambda: flaws(adapter, as_the_sdk_types_it(target, data)))
        verdicts.add(fixture, found)
    verdicts.check(least=50)


def test_events_of_converse_are_of_awss_service_model():
    verdicts = Verdicts("streams", "converse", exceptions.STREAMS)
    for fixture, text in golden.streams("converse"):
        found = []
        for name, data in golden.events(text):
            found += converse.flaws({name: data}, converse.EVENTS)
        verdicts.add(fixture, found)
    verdicts.check(least=50)
