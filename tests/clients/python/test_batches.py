"""Batches as OpenAI's SDK goes about them: upload, create, poll, download; run by the gateway itself, by a provider for the
gateway, and by a provider that is named."""

import json
import time

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from conftest import BASE_URL, WORKSPACE_KEY, store

FINAL = {"completed", "failed", "expired", "cancelled"}


@pytest.fixture(scope="module")
def own():
    with OpenAI(base_url=BASE_URL, api_key=WORKSPACE_KEY, max_retries=0, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def slug():
    store("batches-openai", "openai")
    return "@batches-openai"


def rows(model, count=3):
    def row(number):
        body = {"model": model, "messages": [{"role": "user", "content": f"Hello {number}"}]}
        return {"custom_id": f"row-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}

    return "".join(json.dumps(row(number)) + "\n" for number in range(count)).encode()


def finished(client, batch):
    ends = time.monotonic() + 60
    while batch.status not in FINAL:
        assert time.monotonic() < ends, batch
        time.sleep(0.2)
        batch = client.batches.retrieve(batch.id)
    return batch


def answers(client, batch):
    lines = client.files.content(batch.output_file_id).text.splitlines()
    return {row["custom_id"]: row["response"]["body"] for row in map(json.loads, lines)}


@pytest.mark.parametrize("window", ["immediate", "24h"])
def test_the_gateway_runs_a_batch(own, slug, window):
    file = own.files.create(file=("rows.jsonl", rows(f"{slug}/gpt-4o-mini")), purpose="batch")
    batch = own.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window=window, metadata={"team": "a"}
    )
    assert batch.id.startswith("gwb-") and batch.status == "validating"
    batch = finished(own, batch)
    assert (batch.status, batch.request_counts.total, batch.request_counts.completed) == ("completed", 3, 3), batch
    assert batch.metadata == {"team": "a"} and batch.errors is None
    found = answers(own, batch)
    assert sorted(found) == ["row-0", "row-1", "row-2"]
    assert found["row-0"]["choices"][0]["message"]["content"]
    assert batch.id in [one.id for one in own.batches.list(limit=1)]


def test_what_is_wrong_with_a_file_is_told_by_line(own):
    file = own.files.create(file=("rows.jsonl", rows("m") + b"{\n"), purpose="batch")
    batch = own.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    batch = finished(own, batch)
    assert batch.status == "failed" and batch.errors.data[0].line == 4, batch
    with pytest.raises(NotFoundError):
        own.batches.retrieve("gwb-00000000-0000-0000-0000-000000000000")
    with pytest.raises(BadRequestError):
        own.batches.create(input_file_id="file-1", endpoint="/v1/chat/completions", completion_window="24h")


def test_a_provider_that_is_named_runs_its_own(client):
    file = client.files.create(file=("rows.jsonl", rows("gpt-4o-mini")), purpose="batch")
    assert not file.id.startswith("gwf-")
    batch = client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    batch = finished(client, batch)
    assert batch.status == "completed" and not batch.id.startswith("gwb-")
    assert sorted(answers(client, batch)) == ["row-0", "row-1", "row-2"]
