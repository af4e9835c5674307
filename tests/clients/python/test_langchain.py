"""LangChain's OpenAI client, which most applications meet the SDK through."""

import json

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from conftest import BASE_URL, WORKSPACE_KEY, headers


class Weather(BaseModel):
    """The weather of a city."""

    city: str


@pytest.fixture(params=["by header", "by slug"])
def options(request, stored):
    """How to reach the gateway, and what stands before the names of models."""
    common = {"base_url": BASE_URL, "max_retries": 0}
    if request.param == "by header":
        return common | {"api_key": "sk-mock", "default_headers": headers("openai")}, ""
    return common | {"api_key": WORKSPACE_KEY}, f"@{stored['openai']}/"


def test_a_chat_whole_as_a_stream_and_in_a_batch(options):
    how, prefix = options
    chat = ChatOpenAI(model=f"{prefix}gpt-4o-mini", **how)
    whole = chat.invoke("Hello")
    assert whole.text and whole.usage_metadata["output_tokens"] > 0
    assert "".join(chunk.text for chunk in chat.stream("Hello")) == whole.text
    assert [answer.text for answer in chat.batch(["Hello", "Hello"])] == [whole.text] * 2


def test_a_tool_and_structured_output(options):
    how, prefix = options
    chat = ChatOpenAI(model=f"{prefix}gpt-4o-mini", **how)
    answer = chat.bind_tools([Weather], tool_choice="any").invoke("How is it in Paris?")
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [("Weather", {"city": "Paris"})]
    asked = HumanMessage(json.dumps({"mock": {"reply": '{"city":"Rome"}'}}))
    assert chat.with_structured_output(Weather).invoke([asked]) == Weather(city="Rome")


def test_the_responses_interface(options):
    how, prefix = options
    chat = ChatOpenAI(model=f"{prefix}gpt-4o", use_responses_api=True, **how)
    whole = chat.invoke("Hello")
    assert whole.text
    assert "".join(chunk.text for chunk in chat.stream("Hello")) == whole.text


def test_embeddings_and_completions(options):
    how, prefix = options
    # Lengths are checked with a table that would have to be fetched.
    embeddings = OpenAIEmbeddings(model=f"{prefix}text-embedding-3-small", check_embedding_ctx_length=False, **how)
    assert [len(vector) for vector in embeddings.embed_documents(["a", "b"])] == [8, 8]
    assert OpenAI(model=f"{prefix}gpt-3.5-turbo-instruct", **how).invoke("Hello")
