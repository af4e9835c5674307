"""The mock provider, by the vendors' own clients: what it says on each wire is read by who knows that wire best. AWS's
client also signs, and checks every checksum of a stream."""

import os

import anthropic
import botocore.config
import botocore.exceptions
import botocore.session
import cohere
import httpx
import openai
import pytest
from google import genai
from google.genai import types as google

import exceptions
import golden

MOCK_URL = os.environ["MOCK_PROVIDER_URL"].removesuffix("/v1")

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALLS = '{"mock":{"tool_calls":2}}'
ARGUMENTS = {"city": "Paris"}


PATHS = {
    "gemini": "/v1beta/models/gemini-2.5-flash:generateContent",
    "converse": "/model/us.anthropic.claude-sonnet-4%3A0/converse",
    "cohere": "/v2/chat",
}


@pytest.mark.parametrize("target", PATHS)
def test_the_mock_takes_what_the_vendor_would_take(target):
    """It is strict, so that a wrong translation shows; a right one must not."""
    refused, count = [], 0
    with httpx.Client(base_url=MOCK_URL, headers={"authorization": "Bearer k"}) as client:
        for fixture, body in golden.requests(target):
            if ("requests", target, fixture) in exceptions.FAULTS or fixture in exceptions.SAYS_NOTHING:
                continue
            if target != "cohere":
                del body["model"]
            answer = client.post(PATHS[target], json=body)
            count += 1
            if answer.status_code != 200:
                refused.append(f"{fixture}: {answer.status_code} {answer.text[:200]}")
    assert count >= 100 and not refused, "\n".join(refused)


@pytest.fixture
def gemini():
    # Its own default, `v1`, has the models where OpenAI's are.
    return genai.Client(api_key="k", http_options=google.HttpOptions(base_url=MOCK_URL, api_version="v1beta"))


def test_gemini_says_the_same_whole_and_streamed(gemini):
    asked = dict(model="gemini-2.5-flash", contents="12345678")
    whole = gemini.models.generate_content(**asked)
    chunks = list(gemini.models.generate_content_stream(**asked))
    assert "".join(chunk.text for chunk in chunks) == whole.text
    assert chunks[-1].usage_metadata == whole.usage_metadata and whole.usage_metadata.prompt_token_count == 2


def test_gemini_calls_functions_side_by_side(gemini):
    function = google.FunctionDeclaration(name="weather", parameters_json_schema=SCHEMA)
    config = google.GenerateContentConfig(
        tools=[google.Tool(function_declarations=[function])],
        automatic_function_calling=google.AutomaticFunctionCallingConfig(disable=True),
    )
    answer = gemini.models.generate_content(model="gemini-2.5-flash", contents=CALLS, config=config)
    assert [(call.name, call.args) for call in answer.function_calls] == [("weather", ARGUMENTS)] * 2


def test_gemini_answers_in_the_format_that_is_asked_for(gemini):
    config = google.GenerateContentConfig(response_mime_type="application/json", response_json_schema=SCHEMA)
    answer = gemini.models.generate_content(model="gemini-2.5-flash", contents="x", config=config)
    assert answer.parsed == ARGUMENTS


def test_gemini_embeds_counts_and_lists(gemini):
    embedded = gemini.models.embed_content(model="gemini-embedding-001", contents=["one", "two"])
    assert [len(one.values) for one in embedded.embeddings] == [8, 8]
    assert gemini.models.count_tokens(model="gemini-2.5-flash", contents="12345").total_tokens == 2
    assert "models/gemini-2.5-flash" in [model.name for model in gemini.models.list()]


def test_gemini_errors_are_understood(gemini):
    with pytest.raises(genai.errors.ClientError) as refused:
        gemini.models.generate_content(model="gemini-2.5-flash", contents='{"mock":{"status":429}}')
    assert (refused.value.code, refused.value.status) == (429, "RESOURCE_EXHAUSTED")


@pytest.fixture
def bedrock():
    session = botocore.session.get_session()
    session.set_credentials("AKIDEXAMPLE", "a secret of nobody")
    config = botocore.config.Config(retries={"total_max_attempts": 1})
    return session.create_client("bedrock-runtime", "us-east-1", endpoint_url=MOCK_URL, config=config)


def converse(text, **more):
    return dict(modelId="us.anthropic.claude-sonnet-4:0", messages=[{"role": "user", "content": [{"text": text}]}], **more)


@pytest.mark.parametrize("model", ["us.anthropic.claude-sonnet-4:0", "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.x"])
def test_converse_says_the_same_whole_and_streamed(bedrock, model):
    asked = converse("12345678") | {"modelId": model}
    whole = bedrock.converse(**asked)
    events = list(bedrock.converse_stream(**asked)["stream"])
    text = "".join(event["contentBlockDelta"]["delta"]["text"] for event in events if "contentBlockDelta" in event)
    assert text == whole["output"]["message"]["content"][0]["text"]
    assert events[-1]["metadata"]["usage"] == whole["usage"] and whole["usage"]["inputTokens"] == 2


def test_converse_uses_tools_side_by_side(bedrock):
    tools = {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": SCHEMA}}}]}
    whole = bedrock.converse(**converse(CALLS, toolConfig=tools))
    used = [block["toolUse"] for block in whole["output"]["message"]["content"]]
    assert [(tool["name"], tool["input"]) for tool in used] == [("weather", ARGUMENTS)] * 2
    events = list(bedrock.converse_stream(**converse(CALLS, toolConfig=tools))["stream"])
    started = [event["contentBlockStart"]["start"]["toolUse"]["name"] for event in events if "contentBlockStart" in event]
    assert started == ["weather", "weather"]


def test_converse_errors_are_understood_whole_and_inside_a_stream(bedrock):
    with pytest.raises(bedrock.exceptions.ThrottlingException):
        bedrock.converse(**converse('{"mock":{"status":429}}'))
    broken = bedrock.converse_stream(**converse('{"mock":{"error_after_chunks":1,"chunks":3}}'))["stream"]
    with pytest.raises(botocore.exceptions.EventStreamError, match="internalServerException"):
        list(broken)


@pytest.fixture
def commander():
    return cohere.ClientV2(api_key="k", base_url=MOCK_URL)


def asked(text, **more):
    return dict(model="command-a", messages=[{"role": "user", "content": text}], **more)


def test_cohere_says_the_same_whole_and_streamed(commander):
    whole = commander.chat(**asked("12345678"))
    events = list(commander.chat_stream(**asked("12345678")))
    text = "".join(event.delta.message.content.text for event in events if event.type == "content-delta")
    assert text == whole.message.content[0].text
    assert events[-1].delta.usage.tokens.input_tokens == whole.usage.tokens.input_tokens == 2


def test_cohere_calls_tools_side_by_side(commander):
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    whole = commander.chat(**asked(CALLS, tools=tools))
    assert [call.function.name for call in whole.message.tool_calls] == ["weather", "weather"]
    kinds = [event.type for event in commander.chat_stream(**asked(CALLS, tools=tools))]
    assert kinds.count("tool-call-start") == kinds.count("tool-call-end") == 2


def test_cohere_embeds_and_ranks(commander):
    embedded = commander.embed(model="embed-v4.0", input_type="search_query", texts=["a", "b"], embedding_types=["float"])
    assert len(embedded.embeddings.float_) == 2
    ranked = commander.rerank(model="rerank-v3.5", query="the sea", documents=["a hill", "the sea"], top_n=1)
    assert ranked.results[0].index == 1
    with pytest.raises(cohere.errors.TooManyRequestsError):
        commander.chat(**asked('{"mock":{"status":429}}'), request_options={"max_retries": 0})


def test_openai_reads_streams_of_tools_on_both_wires():
    client = openai.OpenAI(api_key="k", base_url=f"{MOCK_URL}/v1", max_retries=0)
    tool = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
    messages = [{"role": "user", "content": CALLS}]
    with client.chat.completions.stream(model="gpt-4o", messages=messages, tools=[tool]) as stream:
        calls = stream.get_final_completion().choices[0].message.tool_calls
    assert [(call.function.name, call.function.arguments) for call in calls] == [("weather", '{"city":"Paris"}')] * 2
    tool = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}
    with client.responses.stream(model="fault/tool_calls=2", input="x", tools=[tool]) as stream:
        output = stream.get_final_response().output
    assert [(item.type, item.name, item.arguments) for item in output] == [("function_call", "weather", '{"city":"Paris"}')] * 2


def test_azures_client_finds_its_paths():
    client = openai.AzureOpenAI(api_key="k", azure_endpoint=MOCK_URL, api_version="2024-10-21", max_retries=0)
    answer = client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "x"}])
    assert answer.choices[0].message.content


def test_anthropic_reads_streams_of_tools_and_vertex_its_paths():
    client = anthropic.Anthropic(api_key="k", base_url=MOCK_URL, max_retries=0)
    tools = [{"name": "weather", "input_schema": SCHEMA}]
    messages = [{"role": "user", "content": CALLS}]
    with client.messages.stream(model="claude", max_tokens=9, messages=messages, tools=tools) as stream:
        content = stream.get_final_message().content
    assert [(block.name, block.input) for block in content] == [("weather", ARGUMENTS)] * 2
    vertex = anthropic.AnthropicVertex(
        region="eu", project_id="p", access_token="t", base_url=f"{MOCK_URL}/v1", max_retries=0)
    asked = dict(model="claude", max_tokens=9, messages=[{"role": "user", "content": "x"}])
    with vertex.messages.stream(**asked) as stream:
        assert stream.get_final_message().content[0].text == vertex.messages.create(**asked).content[0].text
