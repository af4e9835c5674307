"""The models a workspace can ask for, as OpenAI's SDK sees them with a gateway key alone."""

import json
import os
import time
import urllib.request

import openai as sdk
import pytest

from conftest import BASE_URL, MOCK_URL, WORKSPACE_KEY, openai

SLUG = "python-models"


def administer(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"x-gateway-api-key": os.environ["GATEWAY_ADMIN_KEY"], "content-type": "application/json"}
    request = urllib.request.Request(f"{BASE_URL}{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


@pytest.fixture
def catalogue():
    """A client that holds nothing but a gateway key, in a workspace that has one provider more."""
    workspace = administer("GET", "/workspaces")["data"][0]["id"]
    administer("POST", "/integrations", {
        "name": SLUG, "slug": SLUG, "ai_provider_id": "openai", "key": "sk-mock", "workspace_id": workspace,
        "default_provider_slug": SLUG, "configurations": {"custom_host": MOCK_URL},
    })
    with openai(api_key=WORKSPACE_KEY, default_headers={}) as client:
        end = time.monotonic() + 30
        while not any(model.id.startswith(f"@{SLUG}/") for model in client.models.list()):
            assert time.monotonic() < end, "waited in vain for the provider's models"
            time.sleep(0.05)
        yield client
    administer("DELETE", f"/integrations/{SLUG}")


def test_what_the_catalogue_lists_can_be_found_and_asked(catalogue):
    name = f"@{SLUG}/gpt-4o-mini"
    listed = {model.id: model for model in catalogue.models.list()}
    assert (listed[name].object, listed[name].owned_by) == ("model", "openai")
    assert listed[name].created > 0
    assert catalogue.models.retrieve(name).id == name
    answer = catalogue.chat.completions.create(model=name, messages=[{"role": "user", "content": "Hello"}])
    assert answer.choices[0].message.content
    with pytest.raises(sdk.NotFoundError):
        catalogue.models.retrieve(f"@{SLUG}/no-such-model")
