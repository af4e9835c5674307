"""Google's and AWS's own clients at the gateway, with providers of every wire behind it: what they ask arrives, what they
get they understand. AWS's client checks every checksum of a stream."""

import json
import os

import botocore.config
import botocore.exceptions
import botocore.session
import pytest
from google import genai
from google.genai import types as google

ROOT = os.environ["GATEWAY_BASE_URL"].removesuffix("/v1")
KEY = os.environ["GATEWAY_WORKSPACE_KEY"]
MOCK_URL = os.environ["MOCK_PROVIDER_URL"]
MOCK_ROOT = MOCK_URL.removesuffix("/v1")

# Where each wire is at the mock.
HOSTS = {"openai": MOCK_URL, "anthropic": MOCK_URL, "google": MOCK_ROOT, "bedrock": MOCK_ROOT, "cohere": MOCK_ROOT}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALLS = '{"mock":{"tool_calls":2}}'
ARGUMENTS = {"city": "Paris"}


def config(provider):
    return json.dumps({"provider": provider, "api_key": "sk-mock", "custom_host": HOSTS[provider]})


@pytest.fixture(params=HOSTS)
def provider(request):
    return request.param


@pytest.fixture(params=["v1beta", "v1"])
def gemini(request, provider):
    """The gateway's key stands where Google's would."""
    options = google.HttpOptions(
        base_url=ROOT, api_version=request.param, headers={"x-gateway-config": config(provider)})
    return genai.Client(api_key=KEY, http_options=options)


def test_gemini_says_the_same_whole_and_streamed(gemini):
    asked = dict(model="some-model", contents="12345678")
    whole = gemini.models.generate_content(**asked)
    chunks = list(gemini.models.generate_content_stream(**asked))
    assert whole.text and "".join(chunk.text or "" for chunk in chunks) == whole.text
    assert whole.candidates[0].finish_reason == chunks[-1].candidates[0].finish_reason == google.FinishReason.STOP
    assert chunks[-1].usage_metadata.total_token_count == whole.usage_metadata.total_token_count > 0


def test_gemini_calls_functions_side_by_side_and_hears_what_came_of_them(gemini):
    function = google.FunctionDeclaration(name="weather", parameters_json_schema=SCHEMA)
    options = google.GenerateContentConfig(
        tools=[google.Tool(function_declarations=[function])],
        automatic_function_calling=google.AutomaticFunctionCallingConfig(disable=True),
    )
    asked = dict(model="some-model", contents=CALLS, config=options)
    whole = gemini.models.generate_content(**asked)
    assert [(call.name, call.args) for call in whole.function_calls] == [("weather", ARGUMENTS)] * 2
    streamed = [call for chunk in gemini.models.generate_content_stream(**asked) for call in chunk.function_calls or []]
    assert [(call.name, call.args) for call in streamed] == [("weather", ARGUMENTS)] * 2
    results = [google.Part(function_response=google.FunctionResponse(id=call.id, name=call.name, response={"output": "sunny"}))
               for call in whole.function_calls]
    turns = [google.Content(role="user", parts=[google.Part(text="Weather?")]), whole.candidates[0].content,
             google.Content(role="user", parts=results)]
    assert gemini.models.generate_content(model="some-model", contents=turns, config=options).candidates


def test_gemini_errors_are_understood(gemini):
    with pytest.raises(genai.errors.ClientError) as refused:
        gemini.models.generate_content(model="some-model", contents='{"mock":{"status":429}}')
    assert (refused.value.code, refused.value.status) == (429, "RESOURCE_EXHAUSTED")
    with pytest.raises(genai.errors.APIError):
        list(gemini.models.generate_content_stream(model="some-model", contents='{"mock":{"error_after_chunks":1,"chunks":3}}'))


def test_gemini_hears_the_gateways_own_refusals():
    options = google.HttpOptions(base_url=ROOT, api_version="v1beta")
    for key, told in [("of nobody", (401, "UNAUTHENTICATED")), (KEY, (400, "INVALID_ARGUMENT"))]:
        # A client that nobody holds is closed.
        client = genai.Client(api_key=key, http_options=options)
        with pytest.raises(genai.errors.ClientError) as refused:
            client.models.generate_content(model="m", contents="x")
        assert (refused.value.code, refused.value.status) == told


def client_of_aws(headers, key=KEY, base=ROOT):
    """It signs, because it sends a key as bearer over TLS alone; the gateway's key has a header of its own."""
    session = botocore.session.Session()
    session.set_credentials("AKIDEXAMPLE", "a secret of nobody")
    options = botocore.config.Config(retries={"total_max_attempts": 1})
    client = session.create_client("bedrock-runtime", "us-east-1", endpoint_url=base, config=options)
    headers = headers | {"x-gateway-api-key": key}
    client.meta.events.register("before-call.bedrock-runtime", lambda params, **_: params["headers"].update(headers))
    return client


@pytest.fixture(params=[ROOT, f"{ROOT}/v1"])
def bedrock(request, provider):
    return client_of_aws({"x-gateway-config": config(provider)}, base=request.param)


def converse(text, **more):
    return dict(modelId="us.some-model-v1:0", messages=[{"role": "user", "content": [{"text": text}]}], **more)


def test_converse_says_the_same_whole_and_streamed(bedrock):
    whole = bedrock.converse(**converse("12345678"))
    events = list(bedrock.converse_stream(**converse("12345678"))["stream"])
    text = "".join(event["contentBlockDelta"]["delta"].get("text", "") for event in events if "contentBlockDelta" in event)
    assert text == "".join(block.get("text", "") for block in whole["output"]["message"]["content"]) != ""
    assert [event["messageStop"]["stopReason"] for event in events if "messageStop" in event] == [whole["stopReason"]]
    assert events[-1]["metadata"]["usage"]["totalTokens"] == whole["usage"]["totalTokens"] > 0


def test_converse_uses_tools_side_by_side(bedrock):
    tools = {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": SCHEMA}}}]}
    whole = bedrock.converse(**converse(CALLS, toolConfig=tools))
    used = [block["toolUse"] for block in whole["output"]["message"]["content"] if "toolUse" in block]
    assert [(tool["name"], tool["input"]) for tool in used] == [("weather", ARGUMENTS)] * 2
    events = list(bedrock.converse_stream(**converse(CALLS, toolConfig=tools))["stream"])
    started = [event["contentBlockStart"]["start"]["toolUse"] for event in events if "contentBlockStart" in event]
    assert [tool["name"] for tool in started] == ["weather", "weather"]
    results = [{"toolResult": {"toolUseId": tool["toolUseId"], "content": [{"text": "sunny"}]}} for tool in used]
    turns = [*converse("Weather?")["messages"], whole["output"]["message"], {"role": "user", "content": results}]
    assert bedrock.converse(modelId="m", messages=turns, toolConfig=tools)["output"]["message"]["content"]


def test_converse_errors_are_understood_whole_and_inside_a_stream(bedrock):
    with pytest.raises(bedrock.exceptions.ThrottlingException):
        bedrock.converse(**converse('{"mock":{"status":429}}'))
    # Of which an error inside a stream is one.
    with pytest.raises(botocore.exceptions.ClientError):
        list(bedrock.converse_stream(**converse('{"mock":{"error_after_chunks":1,"chunks":3}}'))["stream"])


def test_converse_hears_the_gateways_own_refusals():
    with pytest.raises(botocore.exceptions.ClientError) as refused:
        client_of_aws({}, key="of-nobody").converse(**converse("x"))
    assert refused.value.response["Error"]["Code"] == "UnrecognizedClientException"
    client = client_of_aws({})
    with pytest.raises(client.exceptions.ValidationException, match="provider"):
        client.converse(**converse("x"))
