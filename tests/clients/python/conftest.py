"""The gateway under test, the mock provider behind it, and clients that speak to the one by way of the other."""

import json
import os
import time
import urllib.error
import urllib.request

import pytest
from anthropic import Anthropic
from openai import APIStatusError, AsyncOpenAI, OpenAI

BASE_URL = os.environ["GATEWAY_BASE_URL"]
MOCK_URL = os.environ["MOCK_PROVIDER_URL"]
WORKSPACE_KEY = os.environ["GATEWAY_WORKSPACE_KEY"]
ADMIN_KEY = os.environ["GATEWAY_ADMIN_KEY"]


def headers(provider, key=WORKSPACE_KEY):
    return {"x-gateway-api-key": key, "x-gateway-provider": provider, "x-gateway-custom-host": MOCK_URL}


def openai(kind=OpenAI, **options):
    """No retries unless a test is about them: they would hide what the gateway answered first."""
    defaults = dict(base_url=BASE_URL, api_key="sk-mock", default_headers=headers("openai"), max_retries=0, timeout=60)
    return kind(**(defaults | options))


def anthropic(**options):
    defaults = dict(
        base_url=BASE_URL.removesuffix("/v1"),
        api_key="sk-ant-mock",
        default_headers=headers("anthropic"),
        max_retries=0,
        timeout=60,
    )
    return Anthropic(**(defaults | options))


@pytest.fixture
def client():
    with openai() as client:
        yield client


@pytest.fixture
def claude():
    with anthropic() as client:
        yield client


@pytest.fixture
def asynchronous():
    return openai(AsyncOpenAI)


def ask(text="Hello", **fault):
    """Arguments of a chat; what the mock shall do wrong stands in the message itself, so nothing on the way hides it."""
    content = json.dumps({"mock": fault}) if fault else text
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": content}]}


def control_plane(method, path, key, body=None):
    data = None if body is None else json.dumps(body).encode()
    head = {"x-gateway-api-key": key, "content-type": "application/json"}
    request = urllib.request.Request(f"{BASE_URL}{path}", data, head, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def store(slug, provider):
    """Stores a credential for the mock under this slug, and waits until the proxy serves it."""
    _, me = control_plane("GET", "/api-keys/self", WORKSPACE_KEY)
    status, answer = control_plane("POST", "/integrations", ADMIN_KEY, {
        "name": slug, "slug": slug, "ai_provider_id": provider, "key": "sk-stored", "default_provider_slug": slug,
        "workspace_id": me["workspace_id"], "configurations": {"custom_host": MOCK_URL},
    })
    assert status in (200, 409), answer
    known = {"api_key": WORKSPACE_KEY, "default_headers": {"x-gateway-provider": f"@{slug}"}}
    until_served(lambda client: client.get("/anything", cast_to=object), **known)


def until_served(call, **options):
    """Waits until the proxy has heard of what the client stands on."""
    end = time.monotonic() + 30
    with openai(**options) as client:
        while True:
            try:
                call(client)
                break
            except APIStatusError as error:
                assert time.monotonic() < end, f"not served: {error}"
                time.sleep(0.05)


@pytest.fixture(scope="session")
def stored():
    """The slugs of providers with stored credentials, for clients that have the gateway's key alone."""
    slugs = {provider: f"sdks-{provider}" for provider in ("openai", "anthropic")}
    for provider, slug in slugs.items():
        store(slug, provider)
    return slugs


@pytest.fixture(scope="session")
def quickstart():
    """What the page's first steps leave behind: two stored providers, and a key whose config says where to go."""
    for provider in ("openai", "anthropic"):
        store(provider, provider)
    _, me = control_plane("GET", "/api-keys/self", WORKSPACE_KEY)
    status, config = control_plane("POST", "/configs", ADMIN_KEY, {
        "name": "Chat", "workspace_id": me["workspace_id"], "config": {"provider": "@openai", "retry": {"attempts": 2}},
    })
    assert status == 200, config
    status, key = control_plane("POST", "/api-keys/workspace/service", ADMIN_KEY, {
        "name": "Chat", "workspace_id": me["workspace_id"], "scopes": ["completions.write"],
        "defaults": {"config_id": config["slug"], "allow_config_override": False},
    })
    assert status == 200, key
    until_served(lambda client: client.chat.completions.create(**ask()), api_key=key["key"], default_headers={})
    return os.environ | {"GATEWAY_APP_KEY": key["key"]}


@pytest.fixture(params=["by header", "by slug"])
def family(request, stored):
    """A client, and what stands before the names of its models: nothing, or the slug that names the provider."""
    if request.param == "by header":
        with openai() as client:
            yield client, ""
    else:
        slug = stored["openai"]
        # The header serves what has no model; the model's own word is stronger where there is one.
        with openai(api_key=WORKSPACE_KEY, default_headers={"x-gateway-provider": f"@{slug}"}) as client:
            yield client, f"@{slug}/"


class Mock:
    """The mock provider's own endpoints."""

    def counts(self):
        return self._call("GET", "counts")

    def last_request(self):
        return self._call("GET", "requests?limit=1")[0]

    def script(self, *faults):
        self._call("POST", "script", list(faults))

    def until(self, condition):
        """The counts, once they satisfy the condition."""
        end = time.monotonic() + 30
        while not condition(counts := self.counts()):
            assert time.monotonic() < end, f"waited in vain; the mock counts {counts}"
            time.sleep(0.01)
        return counts

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{MOCK_URL.removesuffix('/v1')}/__mock/{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


@pytest.fixture
def mock():
    return Mock()


def cancels(mock, run_out):
    """Whether time running out cancels the provider. On a busy machine a short time is over before the provider is
    even asked, which proves nothing: then a longer one is tried."""
    cancelled = mock.counts()["cancelled"]
    for limit in (0.3, 2, 10):
        run_out(limit)
        # A provider that was not told would go on for an hour.
        if mock.until(lambda counts: counts["in_flight"] == 0)["cancelled"] > cancelled:
            return True
    return False
