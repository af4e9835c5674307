"""Every family of OpenAI's SDK: with a provider's own key, and with the gateway's key and `@slug/model` alone."""

import io
import json

import pytest
from pydantic import BaseModel

from conftest import ask

TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


class Weather(BaseModel):
    city: str
    degrees: int


def chat(prefix, **fault):
    return ask(**fault) | {"model": f"{prefix}gpt-4o-mini"}


def test_chat(family):
    client, prefix = family
    answer = client.chat.completions.create(**chat(prefix))
    assert answer.choices[0].message.content and answer.model == "gpt-4o-mini"


def test_a_streamed_chat(family):
    client, prefix = family
    with client.chat.completions.stream(**chat(prefix, reply="one two three")) as stream:
        kinds = [event.type for event in stream]
        assert stream.get_final_completion().choices[0].message.content == "one two three"
    assert kinds.count("content.delta") >= 3


def test_a_tool_is_called(family, mock):
    client, prefix = family
    answer = client.chat.completions.create(**chat(prefix), tools=[TOOL], tool_choice="required")
    call = answer.choices[0].message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Paris"})


def test_structured_output_is_parsed(family):
    client, prefix = family
    reply = Weather(city="Paris", degrees=21).model_dump_json()
    answer = client.chat.completions.parse(**chat(prefix, reply=reply), response_format=Weather)
    assert answer.choices[0].message.parsed == Weather(city="Paris", degrees=21)


def test_completions(family):
    client, prefix = family
    whole = client.completions.create(model=f"{prefix}gpt-3.5-turbo-instruct", prompt="Hello")
    stream = client.completions.create(model=f"{prefix}gpt-3.5-turbo-instruct", prompt="Hello", stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text


def test_embeddings(family):
    client, prefix = family
    answer = client.embeddings.create(model=f"{prefix}text-embedding-3-small", input=["a", "b"], dimensions=4)
    assert [len(found.embedding) for found in answer.data] == [4, 4]


def test_responses_whole_and_as_a_stream(family):
    client, prefix = family
    asked = {"model": f"{prefix}gpt-4o", "input": "Hello"}
    whole = client.responses.create(**asked)
    assert whole.status == "completed" and whole.usage.output_tokens > 0
    events = list(client.responses.create(**asked, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].response.output_text == whole.output_text
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text


def test_stored_responses(family, mock):
    client, _ = family
    assert client.responses.retrieve("resp_1").id == "resp_1"
    assert [item.object for item in client.responses.input_items.list("resp_1")]
    client.responses.delete("resp_1")
    assert mock.last_request()["method"] == "DELETE"
    assert client.responses.cancel("resp_1").status == "cancelled"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_images(family):
    client, prefix = family
    picture = ("a.png", b"\x89PNG", "image/png")
    made = client.images.generate(model=f"{prefix}gpt-image-1", prompt="a cat")
    edited = client.images.edit(model=f"{prefix}gpt-image-1", prompt="a hat", image=[picture, picture])
    varied = client.images.create_variation(model=f"{prefix}dall-e-2", image=picture)
    assert all(answer.data[0].b64_json for answer in (made, edited, varied))


def test_speech(family, mock):
    client, prefix = family
    spoken = client.audio.speech.create(model=f"{prefix}tts-1", voice="alloy", input="Hello")
    assert len(spoken.read()) == 40_000
    with client.audio.speech.with_streaming_response.create(model=f"{prefix}tts-1", voice="alloy", input="Hi") as stream:
        assert sum(map(len, stream.iter_bytes())) == 40_000


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_transcriptions_and_translations(family, mock):
    client, prefix = family
    sound = ("a.wav", bytes(range(256)) * 100)
    asked = {"model": f"{prefix}gpt-4o-transcribe", "file": sound}
    whole = client.audio.transcriptions.create(**asked, extra_body={"timestamp_granularities": ["word"]})
    assert whole.text
    assert client.audio.transcriptions.create(**asked, response_format="text") == whole.text
    events = list(client.audio.transcriptions.create(**asked, stream=True))
    assert events[-1].type == "transcript.text.done" and events[-1].text == whole.text
    assert client.audio.translations.create(model=f"{prefix}whisper-1", file=sound).text == whole.text


def test_moderations(family):
    client, prefix = family
    model = f"{prefix}omni-moderation-latest"
    fine, bad = client.moderations.create(model=model, input=["Hello", "violence"]).results
    assert (fine.flagged, bad.flagged) == (False, True)
    assert client.moderations.create(input="Hello").model == "text-moderation-latest"


def test_files(family):
    client, _ = family
    rows = io.BytesIO(b'{"custom_id":"1"}\n' * 1000)
    made = client.files.create(file=("rows.jsonl", rows), purpose="batch")
    assert made.id.startswith("file-") and made.bytes >= 18_000
    assert client.files.retrieve(made.id).id == made.id
    assert {found.object for found in client.files.list()} == {"file"}
    assert b"custom_id" in client.files.content(made.id).read()
    assert client.files.delete(made.id).deleted


def test_batches(family):
    client, _ = family
    made = client.batches.create(input_file_id="file-1", endpoint="/v1/chat/completions", completion_window="24h")
    assert made.input_file_id == "file-1"
    assert client.batches.retrieve(made.id).status == "completed"
    assert {found.object for found in client.batches.list()} == {"batch"}
    assert client.batches.cancel(made.id).status == "cancelled"


def test_fine_tuning(family):
    client, prefix = family
    jobs = client.fine_tuning.jobs
    made = jobs.create(model="gpt-4o-mini", training_file="file-1")
    assert jobs.retrieve(made.id).object == "fine_tuning.job"
    assert [found.object for found in jobs.list()] == ["fine_tuning.job"]
    assert [event.object for event in jobs.list_events(made.id)] == ["fine_tuning.job.event"]
    assert [found.object for found in jobs.checkpoints.list(made.id)] == ["fine_tuning.job.checkpoint"]
    assert jobs.cancel(made.id).status == "cancelled"


def test_vector_stores(family):
    client, _ = family
    made = client.vector_stores.create(name="notes")
    assert made.name == "notes"
    assert client.vector_stores.files.create(made.id, file_id="file-1").object == "vector_store.file"
    assert list(client.vector_stores.search(made.id, query="x")) == []
    assert client.vector_stores.delete(made.id).deleted


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_assistants_and_threads(family, mock):
    client, _ = family
    beta = client.beta
    assert beta.assistants.create(model="gpt-4o", name="helper").name == "helper"
    assert mock.last_request()["headers"]["openai-beta"] == "assistants=v2"
    thread = beta.threads.create()
    assert beta.threads.messages.create(thread.id, role="user", content="Hello").object == "thread.message"
    assert beta.threads.runs.create(thread.id, assistant_id="asst_1").object == "thread.run"
    assert beta.threads.delete(thread.id).deleted


def test_models(family):
    client, _ = family
    assert client.models.retrieve("gpt-4o").id == "gpt-4o"
    assert "gpt-4o" in [model.id for model in client.models.list()]
