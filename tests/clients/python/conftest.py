"""The gateway under test, the mock provider behind it, and clients that speak to the one by way of the other."""

import json
import os
import time
import urllib.request

import pytest
from anthropic import Anthropic
from openai import AsyncOpenAI, OpenAI

BASE_URL = os.environ["GATEWAY_BASE_URL"]
MOCK_URL = os.environ["MOCK_PROVIDER_URL"]
WORKSPACE_KEY = os.environ["GATEWAY_WORKSPACE_KEY"]


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
