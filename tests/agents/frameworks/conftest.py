"""Frameworks against a running gateway: a workspace with providers of three vendors, and a word for each question."""

import os
import sys
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pytest
from gateway import BASE_URL, administer, logs, new_key, script, store, until
from pydantic import BaseModel

# Nothing but this machine is to be asked, by whatever a framework likes to tell its makers.
os.environ.update(
    HTTP_PROXY="http://127.0.0.1:9", HTTPS_PROXY="http://127.0.0.1:9", NO_PROXY="127.0.0.1,localhost",
    CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="true", OPENAI_AGENTS_DISABLE_TRACING="1",
)
MODELS = {"openai": "gpt-5.4-mini", "anthropic": "claude-sonnet-4-5", "google": "gemini-2.5-flash"}


class City(BaseModel):
    """A city and how many people live in it."""

    name: str
    people: int


class Gateway:
    def __init__(self):
        self.v1, self.root = BASE_URL, BASE_URL.removesuffix("/v1")
        workspace = administer("POST", "/workspaces", {"name": f"Frameworks {uuid.uuid4().hex[:6]}"})["id"]
        for vendor in MODELS:
            store(workspace, f"frameworks-{vendor}", vendor)
        key = new_key(workspace, "Frameworks")
        self.key, self.key_id = key["key"], key["id"]


class Turn:
    """One question: its word tells its requests from all others."""

    def __init__(self):
        self.word, self.done = f"task{uuid.uuid4().hex[:12]}", f"done{uuid.uuid4().hex[:12]}"
        self.number = uuid.uuid4().hex

    def asks(self, text="Say hello."):
        return f"{text} The word of this task is {self.word}."

    def will(self, *entries):
        script([{"contains": [self.word], **entry} for entry in entries])

    def will_say(self, text=None):
        self.will({"reply": text or self.done, "times": 5})

    def will_look_up(self, name="look_up"):
        """Calls the tool of this name once; whoever sends back what it found is answered."""
        found = [self.word, f"found{self.number}"]
        call = {"name": name, "arguments": {"what": self.word}}
        self.will({"contains": found, "reply": self.done, "times": 5}, {"call": call})

    def look_up(self, what: str) -> str:
        assert what == self.word
        return f"found{self.number}"


@pytest.fixture(scope="session")
def gateway():
    made = Gateway()
    yield made
    rows = until("logs", lambda: logs(made.key_id))
    # Counting tokens is free.
    answered = [row for row in rows if row["response_status_code"] == 200 and "count_tokens" not in row["request_url"]]
    wrong = [row for row in answered if not (row["total_units"] and row["cost"])]
    assert not wrong, f"logged without tokens or cost: {wrong[:3]}"


@pytest.fixture
def turn():
    return Turn()
