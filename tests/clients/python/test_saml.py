"""SAML with pysaml2 as the identity provider: it reads our metadata and requests, and we read what it signs and encrypts."""

import base64
import http.client
import shutil
import urllib.parse
import uuid
from datetime import datetime, timedelta, timezone
from functools import partial
from html.parser import HTMLParser

import pytest
import saml2.entity
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT
from saml2.config import IdPConfig
from saml2.saml import NAMEID_FORMAT_PERSISTENT, NameID
from saml2.server import Server
from saml2.sigver import CryptoBackendXmlSec1, pre_encryption_part
from saml2.xmldsig import DIGEST_SHA256, SIG_RSA_SHA256

from conftest import ADMIN_KEY, BASE_URL, control_plane

SETTINGS = "/admin/organisation/auth-settings"
IDP = "https://idp.test/metadata"
SSO = "https://idp.test/sso"

pytestmark = pytest.mark.skipif(not shutil.which("xmlsec1"), reason="pysaml2 signs by the program xmlsec1")


def call(method, path, headers=None, body=None):
    """One answer, redirects not followed, with all its cookies."""
    address = urllib.parse.urlsplit(BASE_URL)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
    connection.request(method, address.path + path, body, headers or {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A key and a certificate of the identity provider's own."""
    folder = tmp_path_factory.mktemp("idp")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "idp")])
    now = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1)).sign(key, hashes.SHA256())
    )
    private = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(*private))
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return folder


@pytest.fixture(scope="module")
def organisation():
    status, answer = control_plane("GET", "/admin/organisation", ADMIN_KEY)
    assert status == 200, answer
    return answer["id"]


@pytest.fixture
def trust(keys, organisation):
    """Tells the gateway of the identity provider, and the identity provider of the gateway."""

    def trusted(**more):
        certificate = (keys / "cert.pem").read_text()
        saml = {"entity_id": IDP, "sso_url": SSO, "certificates": [certificate]} | more
        status, answer = control_plane("PUT", SETTINGS, ADMIN_KEY, {"saml": saml})
        assert status == 200, answer
        _, metadata = call("GET", f"/auth/saml/{organisation}/metadata")
        (keys / "sp.xml").write_text(metadata)
        config = {
            "entityid": IDP,
            "key_file": str(keys / "key.pem"),
            "cert_file": str(keys / "cert.pem"),
            "xmlsec_binary": shutil.which("xmlsec1"),
            "metadata": {"local": [str(keys / "sp.xml")]},
            "service": {"idp": {
                "endpoints": {"single_sign_on_service": [(SSO, BINDING_HTTP_REDIRECT), (SSO, BINDING_HTTP_POST)]},
                "want_authn_requests_signed": bool(more.get("sign_requests")),
                "policy": {"default": {"lifetime": {"minutes": 5}, "name_form": "urn:oasis:names:tc:SAML:2.0:attrname-format:uri"}},
            }},
        }
        return Server(config=IdPConfig().load(config))

    yield trusted
    control_plane("PUT", SETTINGS, ADMIN_KEY, {"saml": None})


@pytest.fixture(scope="module")
def person():
    """Somebody whom the organisation has invited."""
    email = f"{uuid.uuid4().hex}@idp.test"
    status, answer = control_plane("POST", "/admin/users/invites", ADMIN_KEY, {"email": email, "role": "member"})
    assert status == 200, answer
    return email


class Form(HTMLParser):
    fields = None

    def handle_starttag(self, tag, attributes):
        if tag == "input":
            attributes = dict(attributes)
            self.fields = (self.fields or {}) | {attributes["name"]: attributes["value"]}


def begin(organisation, server, binding, query="?return_to=/console"):
    """The cookie of the browser, and the request as the identity provider has read and verified it."""
    answer, text = call("GET", f"/auth/saml/{organisation}/login{query}")
    cookie = answer.getheader("set-cookie").split(";")[0]
    if binding == BINDING_HTTP_POST:
        form = Form()
        form.feed(text)
        request = server.parse_authn_request(form.fields["SAMLRequest"], BINDING_HTTP_POST)
    else:
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(answer.getheader("location")).query))
        request = server.parse_authn_request(query["SAMLRequest"], BINDING_HTTP_REDIRECT)
    return cookie, request.message


def respond(organisation, server, request, cookie, email, **options):
    defaults = dict(sign_assertion=True, sign_response=False, sign_alg=SIG_RSA_SHA256, digest_alg=DIGEST_SHA256)
    response = server.create_authn_response(
        identity={"mail": email, "givenName": "Ada", "sn": "Lovelace"},
        in_response_to=request.id,
        destination=request.assertion_consumer_service_url,
        sp_entity_id=request.issuer.text,
        name_id=NameID(format=NAMEID_FORMAT_PERSISTENT, text=email),
        authn={"class_ref": "urn:oasis:names:tc:SAML:2.0:ac:classes:Password", "authn_auth": IDP},
        **(defaults | options),
    )
    body = urllib.parse.urlencode({"SAMLResponse": base64.b64encode(str(response).encode()).decode()})
    head = {"cookie": cookie, "content-type": "application/x-www-form-urlencoded"}
    return call("POST", f"/auth/saml/{organisation}/acs", head, body)


def signed_in(answer, text, email):
    assert answer.status == 303, text
    assert answer.getheader("location") == "/console"
    cookies = [value.split(";")[0] for name, value in answer.getheaders() if name.lower() == "set-cookie"]
    session = next(cookie for cookie in cookies if "session=" in cookie)
    answer, text = call("GET", "/auth/session", {"cookie": session})
    assert answer.status == 200 and email in text, text


@pytest.mark.parametrize("options", [
    {},
    {"sign_assertion": False, "sign_response": True},
    {"sign_assertion": True, "sign_response": True},
], ids=["assertion", "response", "both"])
def test_what_pysaml2_signs_is_believed(trust, organisation, person, options):
    server = trust()
    cookie, request = begin(organisation, server, BINDING_HTTP_REDIRECT)
    signed_in(*respond(organisation, server, request, cookie, person, **options), person)


@pytest.mark.parametrize("cipher, sign_response", [
    ("http://www.w3.org/2009/xmlenc11#aes256-gcm", False),
    # The old mode is taken only under a signature around all of it.
    ("http://www.w3.org/2001/04/xmlenc#aes256-cbc", True),
], ids=["gcm", "cbc"])
def test_pysaml2_verifies_our_signed_request_and_we_open_what_it_encrypts(
    trust, organisation, person, monkeypatch, cipher, sign_response
):
    encrypt = CryptoBackendXmlSec1.encrypt_assertion
    # Triple DES is the only cipher that it chooses by itself.
    monkeypatch.setattr(saml2.entity, "pre_encryption_part", partial(pre_encryption_part, msg_enc=cipher))
    monkeypatch.setattr(CryptoBackendXmlSec1, "encrypt_assertion", lambda self, statement, key, template, _, xpath=None, id=None:
                        encrypt(self, statement, key, template, "aes-256", xpath, id))
    server = trust(sign_requests=True, want_encrypted=True, binding="post")
    cookie, request = begin(organisation, server, BINDING_HTTP_POST)
    options = {"encrypt_assertion": True, "sign_response": sign_response}
    signed_in(*respond(organisation, server, request, cookie, person, **options), person)


def test_what_is_not_signed_or_by_another_key_is_refused(trust, organisation, person):
    server = trust()
    cookie, request = begin(organisation, server, BINDING_HTTP_REDIRECT, query="")
    answer, text = respond(organisation, server, request, cookie, person, sign_assertion=False)
    assert answer.status == 403 and "signed" in text, text
    # Whoever wanted to go somewhere is led there, and signed in nowhere.
    cookie, request = begin(organisation, server, BINDING_HTTP_REDIRECT)
    answer, text = respond(organisation, server, request, cookie, person, sign_assertion=False)
    assert (answer.status, answer.getheader("location")) == (303, "/console?error=sign_in_refused"), text
    cookies = [value for name, value in answer.getheaders() if name.lower() == "set-cookie"]
    assert all("gateway_session=;" in cookie for cookie in cookies if "gateway_session=" in cookie), cookies
