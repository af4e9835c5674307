"""Files that the gateway keeps itself, as OpenAI's SDK goes about it: no provider is named."""

import io

import pytest
from openai import NotFoundError, OpenAI

from conftest import BASE_URL, WORKSPACE_KEY

ROW = b'{"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{"model":"m"}}\n'


@pytest.fixture
def own():
    with OpenAI(base_url=BASE_URL, api_key=WORKSPACE_KEY, max_retries=0, timeout=60) as client:
        yield client


def test_a_file_is_uploaded_listed_read_and_deleted(own):
    named = ("rows.jsonl", io.BytesIO(ROW * 1000))
    made = own.files.create(file=named, purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600})
    assert made.id.startswith("gwf-") and made.bytes == len(ROW) * 1000
    assert (made.filename, made.purpose, made.status) == ("rows.jsonl", "batch", "processed")
    assert made.expires_at - made.created_at == pytest.approx(3600, abs=60)
    assert own.files.retrieve(made.id).id == made.id
    assert own.files.content(made.id).read() == ROW * 1000
    assert own.files.wait_for_processing(made.id).status == "processed"
    assert own.files.delete(made.id).deleted
    with pytest.raises(NotFoundError):
        own.files.retrieve(made.id)


def test_lists_go_on_page_by_page(own):
    made = [own.files.create(file=("a.jsonl", ROW), purpose="batch").id for _ in range(3)]
    listed = [file.id for file in own.files.list(limit=1, order="desc", purpose="batch")]
    assert [file for file in listed if file in made] == made[::-1]
    for file in made:
        own.files.delete(file)
