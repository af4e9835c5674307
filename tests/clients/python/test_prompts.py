"""Prompts by the client of the product whose interface this is: made, changed, published, labelled, rendered and run."""

import contextlib
import json
import time

import pytest
from portkey_ai import Portkey
from portkey_ai.api_resources.exceptions import APIStatusError, NotFoundError
from portkey_ai.api_resources.utils import GenericResponse

from conftest import BASE_URL, WORKSPACE_KEY, control_plane


def messages(content):
    return json.dumps([{"role": "user", "content": content}])


@pytest.fixture
def portkey():
    return Portkey(base_url=BASE_URL, api_key=WORKSPACE_KEY)


@pytest.fixture
def prompts(portkey):
    return portkey.prompts


@pytest.fixture
def prompt(prompts, stored):
    """The slug of a prompt that the proxy runs."""
    _, collections = control_plane("GET", "/collections", WORKSPACE_KEY)
    made = prompts.create(
        name="Greeting",
        collection_id=collections["data"][0]["id"],
        string=messages("Greet {{name}}"),
        parameters={"model": "gpt-4o-mini", "temperature": 0.5, "name": "nobody"},
        virtual_key=stored["openai"],
    )
    until(lambda: run(prompts, made.slug))
    yield made.slug
    with contextlib.suppress(NotFoundError):
        prompts.delete(prompt_slug=made.slug)


def until(condition):
    """What the condition gives, once it gives something; what is not there yet is an error of the client."""
    end = time.monotonic() + 30
    while True:
        try:
            if found := condition():
                return found
        except APIStatusError as error:
            assert time.monotonic() < end, f"waited in vain for the proxy: {error}"
        assert time.monotonic() < end, "waited in vain for the proxy"
        time.sleep(0.05)


def run(prompts, slug, **values):
    return prompts.completions.create(prompt_id=slug, variables=values)


def asked(mock):
    return json.loads(mock.last_request()["body"])


def test_a_prompt_is_rendered_and_run_with_its_variables(prompts, prompt, mock):
    rendered = prompts.render(prompt_id=prompt, variables={"name": "Ada"}, temperature=0.1)
    assert rendered.success
    answer = prompts.completions.create(prompt_id=prompt, variables={"name": "Ada"}, temperature=0.1, max_tokens=9)
    assert answer.choices[0].message.content
    body = asked(mock)
    assert body["messages"] == [{"role": "user", "content": "Greet Ada"}]
    assert (body["temperature"], body["max_tokens"], body["model"]) == (0.1, 9, "gpt-4o-mini")
    assert rendered.data.messages[0].content == "Greet Ada"


def test_a_run_is_streamed(prompts, prompt):
    stream = prompts.completions.create(prompt_id=prompt, variables={"name": "Ada"}, stream=True)
    pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert len(pieces) > 1 and "".join(pieces)


def test_a_change_is_run_by_its_number_and_by_default_once_it_is_published(prompts, prompt, mock):
    prompts.update(prompt_slug=prompt, string=messages("Hello {{name}}"), parameters={"model": "gpt-4o-mini"})
    assert run(prompts, prompt, name="Ada").choices
    assert asked(mock)["messages"][0]["content"] == "Greet Ada"
    until(lambda: run(prompts, f"{prompt}@2", name="Ada"))
    assert asked(mock)["messages"][0]["content"] == "Hello Ada"
    prompts.publish(prompt_slug=prompt, version=2)

    def is_published():
        run(prompts, prompt, name="Bob")
        return asked(mock)["messages"][0]["content"] == "Hello Bob"

    until(is_published)


def test_a_patch_changes_what_it_names_and_keeps_the_rest(portkey, prompts, prompt, mock, stored):
    """`update` of this client has no `patch`; its way for any path has."""
    body = {"patch": True, "string": messages("Welcome {{name}}")}
    portkey.put(path=f"/prompts/{prompt}", body=body, cast_to=GenericResponse)
    version = prompts.retrieve(f"{prompt}@latest")
    assert (version.prompt_version, version.virtual_key) == (2, stored["openai"])
    assert version.parameters["temperature"] == 0.5

    def is_there():
        run(prompts, f"{prompt}@latest", name="Ada")
        return asked(mock)["messages"][0]["content"] == "Welcome Ada"

    until(is_there)
    prompts.update(prompt_slug=prompt, name="Renamed")
    versions = prompts.versions.list(prompt_slug=prompt).data
    assert [version["prompt_version"] for version in versions] == [2, 1]
    first = prompts.versions.retrieve(prompt_slug=prompt, version_id=versions[1]["id"])
    assert first.string == messages("Greet {{name}}")
    assert prompt in [found["slug"] for found in prompts.list(search="Renamed").data]


def test_labels_are_made_moved_changed_and_taken_away(portkey, prompts, prompt, mock):
    prompts.update(prompt_slug=prompt, string=messages("Two {{name}}"), parameters={"model": "gpt-4o-mini"})
    made = portkey.labels.create(name=f"python-{time.time_ns()}", description="by a test", color_code="#123456")
    name = portkey.labels.retrieve(made.id).name
    portkey.labels.update(made.id, description="changed")
    assert (made.id, "changed") in [
        (label["id"], label["description"]) for label in portkey.labels.list(page_size=100).data
    ]
    for version, expected in (("1", "Greet Ada"), ("2", "Two Ada")):
        prompts.versions.update(prompt_slug=prompt, version_id=version, label_id=made.id)

        def is_moved():
            run(prompts, f"{prompt}@{name}", name="Ada")
            return asked(mock)["messages"][0]["content"] == expected

        until(is_moved)
    portkey.labels.delete(made.id)

    def is_gone():
        try:
            return not run(prompts, f"{prompt}@{name}", name="Ada")
        except NotFoundError:
            return True

    until(is_gone)


def test_partials_are_made_changed_published_and_listed(prompts, prompt, mock):
    slug = prompts.partials.create(name="Tone", string="kindly").slug
    string = messages("Greet {{name}} {{>%s}} {{>%s@2}}" % (slug, slug))
    prompts.partials.update(slug, string="warmly", description="warmer")
    prompts.update(prompt_slug=prompt, string=string, parameters={"model": "gpt-4o-mini"})
    until(lambda: run(prompts, f"{prompt}@2", name="Ada"))
    assert asked(mock)["messages"][0]["content"] == "Greet Ada kindly warmly"
    assert prompts.partials.retrieve(slug).string == "kindly"
    versions = prompts.partials.versions.list(slug).data
    assert [(version["version"], version["description"]) for version in versions] == [(2, "warmer"), (1, None)]
    prompts.partials.publish(slug, version=2)

    def is_published():
        run(prompts, f"{prompt}@2", name="Ada")
        return asked(mock)["messages"][0]["content"] == "Greet Ada warmly warmly"

    until(is_published)
    assert slug in [partial["slug"] for partial in prompts.partials.list().data]
    prompts.delete(prompt_slug=prompt)
    prompts.partials.delete(slug)


def test_a_label_leads_to_its_version_and_a_partial_is_put_in(prompts, prompt, mock):
    partial = prompts.partials.create(name="Tone", string="kindly")
    prompts.update(
        prompt_slug=prompt, string=messages("Greet {{name}} {{>%s}}" % partial.slug), parameters={"model": "gpt-4o-mini"}
    )
    _, labels = control_plane("GET", "/labels", WORKSPACE_KEY)
    label = next(label for label in labels["data"] if label["name"] == "staging")
    prompts.versions.update(prompt_slug=prompt, version_id="2", label_id=label["id"])
    until(lambda: run(prompts, f"{prompt}@staging", name="Ada"))
    assert asked(mock)["messages"][0]["content"] == "Greet Ada kindly"


def test_what_is_unknown_is_an_error_of_the_client(prompts, prompt):
    for slug in ("pp-nobody", f"{prompt}@99"):
        with pytest.raises(NotFoundError):
            run(prompts, slug, name="Ada")
