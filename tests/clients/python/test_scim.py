"""SCIM by its own conformance tester: what the server says of itself is what it does."""

import uuid

import httpx2
import pytest
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server

from conftest import ADMIN_KEY, BASE_URL, control_plane

SETTINGS = "/admin/organisation/auth-settings"


@pytest.fixture
def token():
    token = f"scim-{uuid.uuid4()}"
    status, answer = control_plane("PUT", SETTINGS, ADMIN_KEY, {"scim": {"enabled": True, "token": token}})
    assert status == 200, answer
    yield token
    control_plane("PUT", SETTINGS, ADMIN_KEY, {"scim": {"enabled": False, "token": None}})


def test_the_conformance_tester_finds_no_failure(token):
    head = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{BASE_URL}/scim", headers=head, timeout=30) as http:
        results = check_server(SyncSCIMClient(http))
    assert any(result.status == Status.SUCCESS for result in results)
    failed = [f"{result.title}: {result.reason}" for result in results
              if result.status in (Status.ERROR, Status.CRITICAL)]
    assert not failed, "\n".join(failed)
