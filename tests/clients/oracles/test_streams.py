"""Every stream that we write, read by the vendor's own client as if it came over the network: the order of events, and
what they add up to."""

import json

import anthropic
import httpx2
import openai
import pytest

import exceptions
import golden
from verdicts import Verdicts

ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


def answered_with(text):
    """A transport that answers every request with this stream."""
    head = {"content-type": "text/event-stream"}
    return httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, headers=head, text=text)))


def read_chat(text):
    """The text and the calls of the first choice."""
    client = openai.OpenAI(api_key="k", http_client=answered_with(text), max_retries=0)
    said, calls = "", {}
    with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}]) as stream:
        try:
            for event in stream:
                if event.type != "chunk":
                    continue
                for choice in event.chunk.choices[:1]:
                    if choice.index == 0:
                        said += choice.delta.content or ""
                        for call in choice.delta.tool_calls or []:
                            name, arguments = calls.get(call.index, ("", ""))
                            calls[call.index] = (call.function.name or name, arguments + (call.function.arguments or ""))
            stream.get_final_completion()
        except (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError) as error:
            # How the client tells these two ends, whoever the provider is.
            reason = "length" if isinstance(error, openai.LengthFinishReasonError) else "content_filter"
            assert f'"finish_reason":"{reason}"' in text
    return said, list(calls.values())


def read_responses(text):
    client = openai.OpenAI(api_key="k", http_client=answered_with(text), max_retries=0)
    numbers = [data["sequence_number"] for _, data in golden.events(text)]
    assert numbers == list(range(len(numbers))), f"events are numbered {numbers}"
    with client.responses.stream(model="m", input="x") as stream:
        events = list(stream)
    assert events[-1].type in ENDS, f"ends with {events[-1].type}"
    output = [] if events[-1].type == "error" else events[-1].response.output
    messages = [part for item in output if item.type == "message" for part in item.content]
    calls = [(item.name, item.arguments) for item in output if item.type == "function_call"]
    return "".join(part.text for part in messages if part.type == "output_text"), calls


def read_messages(text):
    client = anthropic.Anthropic(api_key="k", http_client=answered_with(text), max_retries=0)
    with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]) as stream:
        for _ in stream:
            pass
        content = stream.get_final_message().content
    calls = [(block.name, json.dumps(block.input)) for block in content if block.type == "tool_use"]
    return "".join(block.text for block in content if block.type == "text"), calls


READERS = {"chat": read_chat, "responses": read_responses, "messages": read_messages}
ERRORS = (openai.APIError, anthropic.APIError)


def tells_an_error(text):
    return any(isinstance(data, dict) and (name == "error" or data.get("error")) for name, data in golden.events(text))


@pytest.mark.parametrize("target", READERS)
def test_the_vendors_client_reads_the_stream_to_its_end(target):
    verdicts = Verdicts("streams", target, exceptions.STREAMS)
    for fixture, text in golden.streams(target):
        found = []
        try:
            READERS[target](text)
            # To this client an error of responses is an event like others.
            if tells_an_error(text) and target != "responses":
                found.append("an error that the client did not notice")
        except ERRORS as error:
            if not tells_an_error(text):
                found.append(f"{type(error).__name__}: {error}")
        except Exception as error:  # What a client did not expect of its own provider.
            found.append(f"{type(error).__name__}: {error}")
        verdicts.add(fixture, found)
    verdicts.check(least=50)


def arguments_of(calls):
    """Names and arguments, however the latter are spaced; what is no JSON as it is."""
    def read(text):
        try:
            return json.loads(text or "{}")
        except ValueError:
            return text
    return [(name, read(arguments)) for name, arguments in calls]


def test_three_clients_read_the_same_from_one_stream():
    """One provider's stream, written to three formats, says the same words and calls the same tools in each."""
    written = {target: dict(golden.streams(target)) for target in READERS}
    differ, compared = [], 0
    for fixture, text in written["chat"].items():
        if tells_an_error(text) or fixture in exceptions.DIFFERENT_STREAMS:
            continue
        compared += 1
        said, calls = read_chat(text)
        for target in ("responses", "messages"):
            other, other_calls = READERS[target](written[target][fixture])
            if (said, arguments_of(calls)) != (other, arguments_of(other_calls)):
                differ.append(f"{fixture} to {target}: {other!r} {other_calls}, not {said!r} {calls}")
    assert compared >= 50 and not differ, "\n".join(differ)
