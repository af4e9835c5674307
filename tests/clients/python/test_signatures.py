"""botocore's own signers over the requests that our signer signed (`tests/golden/sigv4`): the same headers must come out,
and the paths of models must be those that botocore's client asks for."""

import datetime
import json
from pathlib import Path

import botocore.session
import pytest
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.credentials import Credentials

VECTORS = json.loads((Path(__file__).parents[2] / "golden" / "sigv4" / "requests.json").read_text())


def is_signed(name):
    """We sign what AWS reads; botocore signs all that it is given."""
    return name == "content-type" or (name.startswith(("x-amz-", "x-amzn-")) and name != "x-amzn-trace-id")


def test_there_are_enough_to_mean_something():
    assert len(VECTORS) >= 12


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['method']} {vector['url']}"[:80])
def test_botocore_signs_the_same(vector):
    keys = vector["keys"]
    credentials = Credentials(keys["id"], keys["secret"], keys.get("session"))
    headers = {name: value for name, value in vector["headers"] if is_signed(name)}
    request = AWSRequest(
        method=vector["method"], url=vector["url"], headers=headers, data=vector["body"].encode()
    )
    signer = S3SigV4Auth if vector["service"] == "s3" else SigV4Auth
    signer = signer(credentials, vector["service"], vector["region"])
    at = datetime.datetime.fromisoformat(vector["at"])
    request.context["timestamp"] = at.strftime("%Y%m%dT%H%M%SZ")
    # The steps of `add_auth`, but for its clock.
    signer._modify_request_before_signing(request)
    message = signer.string_to_sign(request, signer.canonical_request(request))
    signer._inject_signature_to_request(request, signer.signature(message, request))
    expected = {name.lower(): value for name, value in request.headers.items() if name.lower() not in headers}
    assert dict(vector["added"]) == expected


@pytest.mark.parametrize(
    "model",
    [
        "anthropic.claude-3-haiku-20240307-v1:0",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    ],
)
def test_botocore_asks_for_models_under_the_same_path(model):
    client = botocore.session.get_session().create_client(
        "bedrock-runtime", region_name="us-east-1", aws_access_key_id="A", aws_secret_access_key="s"
    )
    asked = []

    def answer(request, **_):
        asked.append(request.url)
        return AWSResponse(request.url, 500, {}, None)

    client.meta.events.register("before-send.bedrock-runtime.Converse", answer)
    with pytest.raises(Exception):
        client.converse(modelId=model, messages=[{"role": "user", "content": [{"text": "x"}]}])
    assert asked and asked[0] in [vector["url"] for vector in VECTORS]
