"""What Anthropic's SDK offers, with a key of its own and with the gateway's key alone."""

import pytest

from conftest import WORKSPACE_KEY, anthropic, ask

TOOL = {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}


@pytest.fixture(params=["by header", "by slug"])
def family(request, stored):
    if request.param == "by header":
        with anthropic() as client:
            yield client, ""
    else:
        with anthropic(api_key=WORKSPACE_KEY, default_headers={}) as client:
            yield client, f"@{stored['anthropic']}/"


def chat(prefix, **fault):
    return ask(**fault) | {"model": f"{prefix}claude-sonnet-5", "max_tokens": 100}


def test_messages_whole_and_as_a_stream(family):
    client, prefix = family
    whole = client.messages.create(**chat(prefix), system="Be brief.")
    assert whole.model == "claude-sonnet-5" and whole.usage.output_tokens > 0
    with client.messages.stream(**chat(prefix)) as stream:
        assert "".join(stream.text_stream) == whole.content[0].text


def test_a_tool_is_used(family):
    client, prefix = family
    answer = client.messages.create(**chat(prefix), tools=[TOOL], tool_choice={"type": "any"})
    assert (answer.stop_reason, answer.content[0].name, answer.content[0].input) == (
        "tool_use", "weather", {"city": "Paris"},
    )


def test_tokens_are_counted(family):
    client, prefix = family
    asked = {key: value for key, value in chat(prefix).items() if key != "max_tokens"}
    assert client.messages.count_tokens(**asked).input_tokens > 0


def test_betas_and_versions_reach_the_provider(family, mock):
    client, prefix = family
    client.beta.messages.create(**chat(prefix), betas=["files-api-2025-04-14"])
    sent = mock.last_request()["headers"]
    assert sent["anthropic-beta"] == "files-api-2025-04-14"
    assert sent["anthropic-version"] == client.default_headers["anthropic-version"]
