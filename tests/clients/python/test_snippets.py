"""What the pages tell a newcomer to type: it runs as it stands."""

import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent.parent
PAGE = HERE.parent.parent / "docs" / "clients.md"
SNIPPETS = sorted((HERE / "snippets").iterdir())


# LiteLLM brings thirty packages of its own: its snippet is held against the page and not run.
RUN = [snippet for snippet in SNIPPETS if snippet.stem != "quickstart_litellm"]


@pytest.mark.parametrize("snippet", RUN, ids=lambda path: path.name)
def test_a_snippet_of_the_page_answers(snippet, client, quickstart):
    program = sys.executable if snippet.suffix == ".py" else os.environ.get("NODE", "node")
    done = subprocess.run([program, snippet], cwd=HERE, env=quickstart, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    expected = client.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": "Hello"}]
    ).choices[0].message.content
    assert done.stdout.strip() == expected


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda path: path.name)
def test_the_page_shows_the_snippet_that_is_tested(snippet):
    assert snippet.read_text(encoding="utf-8").strip() in PAGE.read_text(encoding="utf-8")
