"""Every error that we write, as the vendor's own client tells it to an application."""

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import ErrorResponse
from google.genai import errors as google
from pydantic import TypeAdapter

import exceptions
import golden
from verdicts import Verdicts, flaws


def refused_with(status, body):
    return httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(status, json=body)))


def told_by_openai(status, body):
    client = openai.OpenAI(api_key="k", http_client=refused_with(status, body), max_retries=0)
    with pytest.raises(openai.APIStatusError) as refused:
        client.chat.completions.create(model="m", messages=[])
    return refused.value.status_code, refused.value.message, refused.value.type


def told_by_anthropic(status, body):
    client = anthropic.Anthropic(api_key="k", http_client=refused_with(status, body), max_retries=0)
    with pytest.raises(anthropic.APIStatusError) as refused:
        client.messages.create(model="m", max_tokens=1, messages=[])
    return refused.value.status_code, str(refused.value), refused.value.body["error"]["type"]


def told_by_google(status, body):
    error = google.APIError(status, body)
    return error.code, error.message, error.status


@pytest.mark.parametrize(
    "target, told", [("chat", told_by_openai), ("messages", told_by_anthropic), ("gemini", told_by_google)])
def test_the_vendors_client_tells_what_happened(target, told):
    count = 0
    for fixture, status, body in golden.errors(target):
        count += 1
        found, message, kind = told(status, body)
        assert found == status, f"{fixture}: {found}"
        assert body["error"]["message"] in message and kind, f"{fixture}: {message!r} {kind!r}"
    assert count >= 40


def test_errors_of_messages_are_of_anthropics_model():
    adapter = TypeAdapter(ErrorResponse)
    verdicts = Verdicts("errors", "messages", exceptions.ERRORS)
    for fixture, _, body in golden.errors("messages"):
        verdicts.add(fixture, flaws(adapter, body))
    verdicts.check(least=40)
