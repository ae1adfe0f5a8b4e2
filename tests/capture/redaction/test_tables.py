"""Real names of header fields that carry secrets and that do not, and real endpoints of authorization servers."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import pytest

from mcpspy.capture.redaction.redactor import Redactor
from mcpspy.capture.redaction.sink import RedactingSink
from mcpspy.records import CLIENT, SERVER, Close, Frame, Open, Record
from mcpspy.sharing.share import Sharing
from tests.sharing.hiding import finder, pseudonym

REDACTOR = Redactor(b"k" * 32)
SECRET = "s3cret-Value"


def words(text: str) -> list[str]:
    return text.split()


SECRET_FIELDS = words("""
    Authorization Proxy-Authorization Authentication X-Authentication X-Forwarded-Authorization X-Original-Authorization
    X-Amzn-Remapped-Authorization X-Serverless-Authorization X-Ms-Copy-Source-Authorization X-Authorization Auth X-Auth
    X-Registry-Auth X-Sentry-Auth X-OAuth Cookie Cookie2 Set-Cookie Set-Cookie2 X-Cookie X-Forwarded-Cookie DPoP
    DPoP-Nonce Mcp-Session-Id X-Session X-Session-Id X-SessionId session_id X-Claude-Code-Session-Id X-Session-Key
    X-Metabase-Session X-Parse-Session-Token X-Sid X-Secret-Value X-Secret-Id X-Token-Id X-Api-Keys X-Password-Hash
    X-Pass X-Pat X-Github-Pat Api-Key ApiKey X-Api-Key X-ApiKey X-API-Key-2 X-Api-Key-Value x-goog-api-key X-N8N-API-KEY
    X-MBX-APIKEY X-RapidAPI-Key X-RapidAPI-Proxy-Secret X-Cisco-Meraki-API-Key X-Redmine-API-Key X-Parse-REST-API-Key
    X-Parse-Master-Key DD-API-KEY DD-APPLICATION-KEY Ocp-Apim-Subscription-Key X-Functions-Key aeg-sas-key aeg-sas-token
    X-Ms-Encryption-Key X-Auth-Key X-Auth-Token X-AuthToken X-Access-Token X-Amz-Security-Token X-Amz-Signature
    X-Amz-Credential X-Refresh-Token X-Reset-Token X-Vault-Token X-Consul-Token X-Nomad-Token X-Plex-Token X-Figma-Token
    X-GitLab-Token X-TrackerToken X-Auth-Request-Access-Token X-Forwarded-Access-Token X-Ms-Token-AAD-Id-Token
    X-Shopify-Access-Token Private-Token Job-Token Deploy-Token X-CSRF-Token X-XSRF-TOKEN X-Goog-IAP-JWT-Assertion
    Cf-Access-Jwt-Assertion CF-Access-Client-Secret X-JWT X-GitHub-OTP X-Hub-Signature-256 Stripe-Signature
    X-Slack-Signature X-Signature-Ed25519 X-Shopify-Hmac-Sha256 Signature CB-ACCESS-SIGN CB-ACCESS-PASSPHRASE
    X-Client-Credentials X-Passwd X-MapKey Cookie-Secret X-Bearer X-Authz X-Csrf Grpc-Metadata-Macaroon
    X-Pin X-Pin-Code X-User-Pin X-Card-Pin-Number X-Ticket X-Auth-Ticket X-Alfresco-Ticket X-CAS-Ticket Ticket X-Otp
    X-Otp-Code X-TOTP X-Mfa X-Mfa-Code X-MFA-Token x-amz-mfa X-2FA X-2FA-Code X-TFA-Code X-Verification-Code X-Access-Code
    X-Security-Code X-SMS-Code X-One-Time-Code X-Recovery-Code X-Backup-Code X-Passkey X-Mnemonic X-Vercel-Protection-Bypass
    X-Honeycomb-Team X-JFrog-Art-Api X-PHP-SessId X-Registry-Config Jenkins-Crumb x-appkey X-Licensekey X-Pswd
""")

PUBLIC_FIELDS = words("""
    WWW-Authenticate Proxy-Authenticate X-Amzn-Remapped-WWW-Authenticate Sec-WebSocket-Key Sec-WebSocket-Accept
    Sec-WebSocket-Protocol Sec-Fetch-Site Sec-CH-UA Access-Control-Allow-Credentials Access-Control-Allow-Headers
    Access-Control-Request-Headers Idempotency-Key X-Idempotency-Key Mcp-Protocol-Version Mcp-Method Mcp-Name
    Mcp-Param-Token Mcp-Param-Api-Key Last-Event-ID Accept Accept-Encoding Cache-Control Connection Content-Length
    Content-Type Content-Security-Policy Date ETag Host Keep-Alive Link Location Origin Referer Retry-After Server
    Transfer-Encoding User-Agent Vary Via X-Request-Id X-Correlation-Id Traceparent X-Amz-Request-Id X-Ratelimit-Tokens
    X-RateLimit-Remaining-Tokens anthropic-ratelimit-input-tokens-limit X-Input-Tokens X-Max-Tokens X-Token-Type
    X-Token-Expires X-Ms-Token-AAD-Expires-On X-Session-Timeout X-Auth-Method X-Auth-Request-Email X-OAuth-Scopes
    X-Accepted-OAuth-Scopes X-OAuth-Client-Id Signature-Input Accept-Signature Authentication-Info Surrogate-Key
    X-Cache-Key X-Public-Key Public-Key-Pins X-Key-Id X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id
    X-Goog-Encryption-Key-Sha256 CF-Access-Client-Id Author X-Author X-Monkey X-Compass X-Bypass X-Signature-Timestamp
    X-Pass-Through Ping-From X-Session-Affinity Signature-Agent Again Confirm Verify
    Public-Key-Pins-Report-Only X-Pinned X-Pin-Length X-Pinterest-Rid X-Ping X-Shipping-Code X-Mfa-Required X-MFA-Method
    X-Mfa-Enabled X-Mfa-Verified X-2FA-Status X-Ticket-Id X-Ticket-Number X-Ticket-Status X-Jira-Ticket X-RT-Ticket
    X-Zendesk-Ticket X-Ticketmaster-Region X-Error-Code X-Status-Code X-Country-Code X-Response-Code X-Exit-Code X-Reason-Code
    X-Currency-Code X-Region-Code X-Postal-Code X-Code X-Otp-Length X-Bypass-Cache X-Passkey-User X-Claude-Code-Version
    X-Completion-Tokens X-Reasoning-Tokens X-Cached-Tokens X-Thinking-Tokens X-Token-Budget
    X-Breadcrumb X-Appkeys-Url X-Powered-By
""")

TOKEN_PATHS = words("""
    /token /TOKEN /oauth/token /oauth/token.json /oauth2/tokens /oauth2/v2.0/token /common/oauth2/v2.0/devicecode
    /login/oauth/access_token /login/device/code /device_authorization /device/code /register /register/client123
    /api/oauth.v2.access /api/openid.connect.token /api/token/refresh /api/v1/access_token /oauth/v2/accessToken
    /realms/x/protocol/openid-connect/token /realms/x/clients-registrations/openid-connect/7 /connect/token
    /connect/deviceauthorization /oauth2/v1/clients /-/oauth_token /oauth2/get_token /services/oauth2/token
    /v1/oauth/token/ /oidc/register /client/register /oauth/introspect /%74oken http://h/token
    /api/authenticate /api/v1/sessions /jwt/create /api/v1/authn /mfa/verify /sts /users/sign_in /log-in /accounts/sign_up
    /v1/client/sign_ins /reg /reg/abc123 /auth/refresh /passwordless/verify /v1/database/creds/reader
""")

PUBLIC_PATHS = ["/mcp", "/sse", "/messages/", "/v1/chat/completions", "/v1/messages/count", "/", "*", "/parse", "/authors"]


def head(name: str, value: str) -> bytes:
    return f"POST /mcp HTTP/1.1\r\nHost: h\r\n{name}: {value}\r\n\r\n".encode()


def shared_head(head: bytes) -> bytes:
    """Share one head that was recorded without redaction."""
    sharing = Sharing(finder(), pseudonym)
    opened = Open(at_ns=0, stream=0, sender=CLIENT, name="request", framing="body", connection=1, transaction=1, head=head)
    return b"".join(record.head for record in (*sharing.feed(opened), *sharing.close()) if isinstance(record, Open))


def test_the_tables_are_long_enough() -> None:
    assert (len(set(SECRET_FIELDS)) >= 80, len(set(PUBLIC_FIELDS)) >= 40, len(set(TOKEN_PATHS)) >= 20) == (True,) * 3


@pytest.mark.parametrize("name", SECRET_FIELDS)
def test_a_field_with_a_secret_is_recorded_and_shared_without_it(name: str) -> None:
    for spelled in (name, name.lower() if name != "X-MapKey" else name):
        raw = head(spelled, SECRET)
        assert SECRET.encode() not in REDACTOR.head(raw)[0]
        assert SECRET.encode() not in shared_head(raw)


@pytest.mark.parametrize("name", PUBLIC_FIELDS)
def test_a_field_without_a_secret_is_kept(name: str) -> None:
    raw = head(name, SECRET)
    assert (REDACTOR.head(raw)[0], shared_head(raw)) == (raw, raw)


JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("Bearer s3cret-Value", "s3cret-Value"),
        ("bearer SECRETVALUE", "SECRETVALUE"),
        ("Basic dXNlcjpodW50ZXIy==", "dXNlcjpodW50ZXIy=="),
        ("Token abc123def456", "abc123def456"),
        ("ApiToken abc123def456", "abc123def456"),
        ("SSWS 00abc123def456", "00abc123def456"),
        ("Bearer: s3cret-Value", "Bearer: s3cret-Value"),
        ("Bearer\ts3cret-Value", "s3cret-Value"),
        ('"Bearer s3cret-Value"', 's3cret-Value"'),
        ("AWS4-HMAC-SHA256 Credential=AK/x, Signature=0f", "Credential=AK/x, Signature=0f"),
        ("hvs.CAESIJ0123456789abcdefgh", "hvs.CAESIJ0123456789abcdefgh"),
        ("ghp_0123456789abcdefghij", "ghp_0123456789abcdefghij"),
        ("sk-ant-0123456789abcdef", "sk-ant-0123456789abcdef"),
        *(
            (prefix + "0123456789abcdefghij", prefix + "0123456789abcdefghij")
            for prefix in (
                *("glptt-", "xai-", "nvapi-", "pplx-", "r8_", "shpca_", "tvly-", "ATATT3", "dckr_pat_", "dp.pt.", "lsv2_pt_"),
                *("pcsk_", "NRAK-", "PMAK-", "rubygems_", "sbp_", "sntryu_", "tskey-", "xkeysib-", "doo_v1_", "lin_oauth_"),
            )
        ),
        (JWT, JWT),
    ],
)
def test_a_credential_is_redacted_under_any_name(value: str, secret: str) -> None:
    raw = head("X-Custom", value)
    assert REDACTOR.head(raw)[0] == raw.replace(secret.encode(), REDACTOR.pseudonym(secret.encode()))
    assert secret.encode() not in shared_head(raw)


PLACEHOLDERS = words("""
    ${API_KEY} ${env:API_KEY} ${input:api-key} {{API_KEY}} {{secrets.TOKEN}} $API_KEY %API_KEY% <TOKEN> <your-api-key> YOUR_API_KEY
    your-token-here undefined null None
""")


@pytest.mark.parametrize("value", [*PLACEHOLDERS, "{{ TOKEN }}", "<your token>", "[object Object]"])
def test_a_placeholder_is_no_secret(value: str) -> None:
    for raw in (head("Authorization", f"Bearer {value}"), head("X-Api-Key", value), head("Authorization", f'Bearer "{value}"')):
        assert REDACTOR.head(raw) == (raw, ())
    arguments = ["server", "--api-key", value, f"--token={value}", "--header", f"Authorization: Bearer {value}"]
    assert REDACTOR.argv(arguments) == arguments


@pytest.mark.parametrize(
    "value",
    ["${API_KEY}x", "x${API_KEY}", "${KEY:-s3cret}", "$ecret", "$TOKEN1", "<s3cret>", "nullify", "YOUR_s3cret", "{{}}"],
)
def test_what_is_more_than_a_placeholder_is_a_secret(value: str) -> None:
    for raw in (head("Authorization", f"Bearer {value}"), head("X-Api-Key", value)):
        assert value.encode() not in REDACTOR.head(raw)[0]
        assert value.encode() not in shared_head(raw)
    assert value not in " ".join(REDACTOR.argv(["server", f"--token={value}"]))


def test_a_scheme_that_comes_twice_shows_and_its_secret_does_not() -> None:
    raw = head("Authorization", f"Bearer Bearer {SECRET}")
    assert REDACTOR.head(raw)[0] == raw.replace(SECRET.encode(), REDACTOR.pseudonym(SECRET.encode()))
    assert SECRET.encode() not in shared_head(raw)


@pytest.mark.parametrize(
    "value",
    [
        "Bearer authentication",
        "Basic Plan",
        'Bearer realm="x", error="invalid_token"',
        "Digest of the day",
        "key",
        "sk-1",
        "eyJjdXJzb3IiOjEyMzQ1Njc4fQ",
        "application/json; charset=utf-8",
    ],
)
def test_a_value_that_is_no_credential_is_kept(value: str) -> None:
    raw = head("X-Custom", value)
    assert REDACTOR.head(raw)[0] == raw


@pytest.mark.parametrize(
    "name", ["WWW-Authenticate", "Mcp-Param-Note", "Sec-WebSocket-Protocol", "Access-Control-Allow-Headers"]
)
def test_a_field_that_never_carries_a_secret_is_not_looked_into(name: str) -> None:
    raw = head(name, f"Bearer {SECRET}")
    assert REDACTOR.head(raw)[0] == raw


def test_a_scheme_is_no_part_of_the_secret_under_any_name() -> None:
    names = [
        REDACTOR.pseudonym(SECRET.encode()) in REDACTOR.head(head(name, f"Bearer {SECRET}"))[0] for name in SECRET_FIELDS[:6]
    ]
    assert names == [True] * 6


class Disk:
    """One exchange on its way to the disk."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._sink = RedactingSink(self.records.extend, REDACTOR)

    def recorded(self, request: bytes, sent: bytes, response: bytes, answered: bytes) -> bytes:
        """Record a request and its response; return what reaches the disk of their bodies."""
        for stream, (side, head, data) in enumerate([(CLIENT, request, sent), (SERVER, response, answered)]):
            name = "request" if side == CLIENT else "response"
            opened = Open(
                at_ns=0, stream=stream, sender=side, name=name, framing="body", connection=1, transaction=1, head=head
            )
            self._sink((opened, Frame(stream, 0, 0, data), Close(at_ns=0, stream=stream, by=side, how="eof")))
        return b"\n".join(record.data for record in self.records if isinstance(record, Frame))


JSON_TYPE = b"Content-Type: application/json\r\n"
FORM_TYPE = b"Content-Type: application/x-www-form-urlencoded\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
GRANT = b'{"access_token":"%b","refreshToken":"%b","token_type":"Bearer"}' % (SECRET.encode(), SECRET.encode())
RPC = b'{"id":1,"result":{"access_token":"%b"},"jsonrpc" : "2.0"}' % SECRET.encode()
RPC_BATCH = b"[%b]" % RPC


@pytest.mark.parametrize("path", TOKEN_PATHS)
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_token_endpoint_is_known_by_its_path(path: str, coding: str) -> None:
    field = f"Content-Encoding: {coding}\r\n".encode() if coding else b""
    data = gzip.compress(GRANT) if coding else GRANT
    kept = Disk().recorded(
        b"POST %b?x=1 HTTP/1.1\r\n%b\r\n" % (path.encode(), JSON_TYPE), b'{"code":"x"}', OK + field + b"\r\n", data
    )
    assert SECRET.encode() not in kept
    assert data not in kept


@pytest.mark.parametrize("path", [*PUBLIC_PATHS, *TOKEN_PATHS[:3]])
@pytest.mark.parametrize(
    "answer",
    [GRANT, b"\xef\xbb\xbf" + GRANT, b"[%b]" % GRANT, b")]}'\n" + GRANT, b"access_token=%b&x=1" % SECRET.encode(), RPC],
)
def test_the_answer_to_a_form_is_searched_at_every_path(path: str, answer: bytes) -> None:
    request = b"POST %b HTTP/1.1\r\n%b\r\n" % (path.encode(), FORM_TYPE)
    assert SECRET.encode() not in Disk().recorded(request, b"grant_type=x", OK + b"\r\n", answer)


@pytest.mark.parametrize("path", PUBLIC_PATHS)
def test_other_json_at_other_paths_is_kept(path: str) -> None:
    request = b"POST %b HTTP/1.1\r\n%b\r\n" % (path.encode(), JSON_TYPE)
    assert Disk().recorded(request, b"{}", OK + b"\r\n", GRANT) == b"{}\n" + GRANT


ASKING = [
    b'{"grant_type":"refresh_token","refresh_token":"%b"}',
    b'{"clientId":"x","clientSecret" : "%b"}',
    b'{"username":"x","password":"%b"}',
    b'{"apiKey":"%b"}',
    b'{"login":"x","pwd":"%b"}',
    b'{"user":"x","pass":"%b"}',
    b'{"auth_req_id":"%b"}',
    b'{"AuthFlow":"USER_PASSWORD_AUTH","AuthParameters":{"USERNAME":"x","PASSWORD":"%b"}}',
    b'{"access_token":{"access":["read"]},"client":{"clientSecret":"%b"}}',
    b'{"id":"x","secretKey":"%b"}',
    b'{"secret":"%b"}',
    b"grant_type=x&client_secret=%b",
    b"a=b&refresh_token=%b",
]
REGISTERING = [b'{"redirect_uris":["http://localhost/cb"]}', b'{"client_name":"x","redirect_uris" : "http://localhost"}']
KEPT = [
    b'{"model":"m","input":[{"password":"%b"}],"messages":[{"content":"{\\"grant_type\\":\\"x\\"}"}]}',
    b'{"tools":[{"password":"string"}],"note":"%b"}',
    b'{"password":{"type":"string"},"note":"%b"}',
    b'[{"password":"%b"}]',
    b'{"id":1,"method":"login","params":{"password":"%b"},"jsonrpc":"2.0"}',
]


@pytest.mark.parametrize("path", PUBLIC_PATHS)
@pytest.mark.parametrize("data", ASKING)
def test_a_request_for_a_token_is_known_by_its_members_at_every_path(path: str, data: bytes) -> None:
    request = b"POST %b HTTP/1.1\r\n%b\r\n" % (path.encode(), JSON_TYPE)
    kept = Disk().recorded(request, data % SECRET.encode(), OK + b"\r\n", GRANT)
    assert SECRET.encode() not in kept
    assert kept.count(b"redacted-") == 3


@pytest.mark.parametrize("path", PUBLIC_PATHS)
@pytest.mark.parametrize("data", REGISTERING)
def test_a_registration_is_known_by_its_members_at_every_path(path: str, data: bytes) -> None:
    request = b"POST %b HTTP/1.1\r\n%b\r\n" % (path.encode(), JSON_TYPE)
    registered = b'{"client_id":"x","client_secret":"%b","registration_access_token":"%b"}' % (SECRET.encode(), SECRET.encode())
    assert SECRET.encode() not in Disk().recorded(request, data, OK + b"\r\n", registered)


@pytest.mark.parametrize("answer", [b'{"AuthenticationResult":{"AccessToken":"%b"}}', b'{"Credentials":{"SecretKey":"%b"}}'])
def test_json_of_aws_is_searched_at_every_path(answer: bytes) -> None:
    request = b"POST / HTTP/1.1\r\nContent-Type: application/x-amz-json-1.1\r\n\r\n"
    assert SECRET.encode() not in Disk().recorded(request, b'{"IdentityId":"x"}', OK + b"\r\n", answer % SECRET.encode())


def test_a_compressed_body_whose_head_does_not_say_so_is_one_pseudonym() -> None:
    request = b"POST /x HTTP/1.1\r\n%b\r\n" % FORM_TYPE
    kept = Disk().recorded(request, b"a=b", OK + b"\r\n", gzip.compress(GRANT))
    assert (kept[4:13], len(kept)) == (b"redacted-", 25)


@pytest.mark.parametrize(
    "answer",
    [
        b'{"access_token":[{"label":"a","value":"%b"},{"value" : "%b"}],"value":"kept"}',
        b'{"recovery_codes":["%b","%b"],"value":"kept"}',
        b'{"secret": [ "%b" , "%b" ], "value":"kept"}',
        b'{"client_secret":["%b",["kept"]],"password":"%b","value":"kept"}',
    ],
)
def test_what_is_in_an_array_that_a_secret_member_holds_is_secret(answer: bytes) -> None:
    request = b"POST /x HTTP/1.1\r\n%b\r\n" % FORM_TYPE
    sent = answer % (SECRET.encode(), b"an0ther")
    names = [REDACTOR.pseudonym(secret) for secret in (SECRET.encode(), b"an0ther")]
    assert Disk().recorded(request, b"", OK + b"\r\n", sent) == b"\n" + answer % tuple(names)


CODES = words("""
    otp totp mfa_code otp_code oobCode verification_code recovery_code auth_code authorization_code oauth_verifier code_verifier
    pre-authorized_code tx_code pw secret_id appsecret_proof login_ticket stateHandle appkey
""")


@pytest.mark.parametrize("name", CODES)
def test_a_code_that_lets_in_is_redacted_in_forms_urls_and_json(name: str) -> None:
    for path, field, data in (
        ("/x", FORM_TYPE, b"a=b&%b=%b"),
        ("/oauth/x", JSON_TYPE, b'{"a":"b","%b":"%b"}'),
    ):
        request = f"POST {path} HTTP/1.1\r\n".encode() + field + b"\r\n"
        assert SECRET.encode() not in Disk().recorded(request, data % (name.encode(), SECRET.encode()), OK + b"\r\n", b"")
    assert SECRET not in REDACTOR.url(f"http://h/x?a=b&{name}={SECRET}")


@pytest.mark.parametrize(
    "name", ["zip_code", "country_code", "errorCode", "code_challenge", "timecode", "keyword", "spin", "pwx"]
)
def test_other_codes_are_kept(name: str) -> None:
    request = b"POST /x HTTP/1.1\r\n%b\r\n" % FORM_TYPE
    sent = f"{name}={SECRET}".encode()
    assert Disk().recorded(request, sent, OK + b"\r\n", b"") == sent + b"\n"


KEY = "sk-proj-0123456789abcdefghij"


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        (f"https://h/{KEY}/mcp", KEY),
        (f"https://h/mcp?k={KEY}&x=1", KEY),
        (f"https://h/mcp?profile=x;y={KEY}", KEY),
        (f"https://h/u/{JWT}/sse", JWT),
        ("https://api.example/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw8/getMe", "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw8"),
        ("https://h/mcp?config=eyJleGFBcGlLZXkiOiJhIn0%3D&x=1", "eyJleGFBcGlLZXkiOiJhIn0"),
        (f"https://h/mcp?config=%7B%22a%22:%22{SECRET}%22%7D", SECRET),
        (f"https://h/mcp?header=Bearer+{SECRET}", SECRET),
        (f"https://h/login?next=https%3A%2F%2Fa%2Fcb%3Fcode%3D{SECRET}&x=1", SECRET),
        *((f"https://h/mcp?{name}={SECRET}", SECRET) for name in ("api_keys", "db_pass", "bearer", "ldap_pw", "pat")),
    ],
)
def test_a_token_of_a_service_is_redacted_anywhere_in_a_url(url: str, secret: str) -> None:
    assert secret not in REDACTOR.url(url)
    assert REDACTOR.url(url).count("redacted-") == 1
    line = url.removeprefix("https://h").encode()
    assert secret.encode() not in REDACTOR.head(b"GET %b HTTP/1.1\r\n\r\n" % line)[0]


@pytest.mark.parametrize(
    "url",
    [
        "http://h/mcp?config=prod",
        "http://h/mcp?cursor=eyJhIjoxfQ",
        "http://h/a:b/sk-1/v1?q=Bearer+x",
        "http://h/a?max_tokens=12",
        "http://h/a?redirect_uri=https%3A%2F%2Fh%2F7c9e6679-7425-40de-944b-e07fc1f90ae7%2Fcb",
    ],
)
def test_a_url_without_a_secret_is_kept(url: str) -> None:
    assert REDACTOR.url(url) == url


@pytest.mark.parametrize("path", PUBLIC_PATHS)
@pytest.mark.parametrize("data", KEPT)
def test_json_with_such_members_deeper_inside_is_kept(path: str, data: bytes) -> None:
    request = b"POST %b HTTP/1.1\r\n%b\r\n" % (path.encode(), JSON_TYPE)
    sent = data % SECRET.encode()
    assert Disk().recorded(request, sent, OK + b"\r\n", GRANT) == sent + b"\n" + GRANT


class QuickDisk(list[Record]):
    """A disk that takes the usual messages without their records."""

    def __call__(self, records: Sequence[Record]) -> None:
        self.extend(records)

    def message(self, *_: object) -> bool:
        return True


@pytest.mark.parametrize("data", ASKING)
def test_a_request_for_a_token_whose_head_came_before_is_known_too(data: bytes) -> None:
    disk = QuickDisk()
    sink = RedactingSink(disk, REDACTOR)
    opening = '{"kind":"open","stream":0,"sender":"client","name":"request"}'
    assert sink.message(1, 0, 0, opening, b"", "", False)
    assert not sink.message(1, 0, 0, "", data % SECRET.encode(), CLIENT, False)
    sink((Frame(0, 0, 0, data % SECRET.encode()),))
    (frame,) = disk
    assert isinstance(frame, Frame)
    assert SECRET.encode() not in frame.data


PAGES = [b'<html><input name="SAMLResponse" value="%b"></html>', b'\xef\xbb\xbf\n<?xml version="1.0"?><Token>%b</Token>']


@pytest.mark.parametrize("page", PAGES)
def test_html_and_xml_that_answer_a_form_are_one_pseudonym(page: bytes) -> None:
    request = b"POST /x HTTP/1.1\r\n%b\r\n" % FORM_TYPE
    _, _, kept = (
        Disk().recorded(request, b"a=b", OK + b"Content-Type: text/html\r\n\r\n", page % SECRET.encode()).partition(b"\n")
    )
    assert (kept[:9], len(kept)) == (b"redacted-", 21)


@pytest.mark.parametrize("path", ["/authorize", "/connect/ciba"])
@pytest.mark.parametrize("page", [*PAGES, b"<a href='http://localhost/cb?code=%b'>go</a>"])
def test_a_page_at_the_path_of_an_authorization_server_is_one_pseudonym(path: str, page: bytes) -> None:
    request, answer = f"GET {path} HTTP/1.1\r\n\r\n".encode(), OK + b"Content-Type: text/html\r\n\r\n"
    kept = Disk().recorded(request, b"", answer, page % SECRET.encode())
    assert SECRET.encode() not in kept
    assert kept.count(b"redacted-") == 1


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_says_what_went_wrong_is_kept(page: bytes) -> None:
    request, failed = b"POST /x HTTP/1.1\r\n%b\r\n" % FORM_TYPE, b"HTTP/1.1 502 Bad Gateway\r\n\r\n"
    sent = page % b"why"
    assert Disk().recorded(request, b"a=b", failed, sent) == b"a=b\n" + sent


@pytest.mark.parametrize("path", [*TOKEN_PATHS, *PUBLIC_PATHS])
@pytest.mark.parametrize("data", [RPC, RPC_BATCH])
def test_json_rpc_is_kept_at_every_path(path: str, data: bytes) -> None:
    request = b"POST %b HTTP/1.1\r\n%b\r\n" % (path.encode(), JSON_TYPE)
    assert Disk().recorded(request, data, OK + JSON_TYPE + b"\r\n", data) == b"\n".join((data, data))
    sealed = gzip.compress(data)
    assert Disk().recorded(request, data, OK + b"Content-Encoding: gzip\r\n\r\n", sealed) == b"\n".join((data, sealed))


@pytest.mark.parametrize("path", ["/mcp", "/authorize"])
def test_the_body_of_a_redirect_with_a_secret_is_one_pseudonym(path: str) -> None:
    location = f"http://localhost/callback?code={SECRET}"
    request, found = f"GET {path} HTTP/1.1\r\n\r\n".encode(), f"HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n".encode()
    kept = Disk().recorded(request, b"", found, f"Found. Redirecting to {location}".encode())
    assert SECRET.encode() not in kept
    plain = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /mcp/\r\n\r\n"
    assert Disk().recorded(request, b"", plain, b"Go to /mcp/") == b"\nGo to /mcp/"


@pytest.mark.parametrize("value", ["/cb#access_token=%b", "http://localhost/cb#access_token=%b", "/cb?x=1#id_token=%b"])
def test_a_token_in_the_fragment_of_a_redirect_is_redacted(value: str) -> None:
    raw = head("Location", value.replace("%b", SECRET))
    assert SECRET.encode() not in REDACTOR.head(raw)[0]


BARE = ["eyJhbGciOiJSUzI1NiJ9.%s.c2lnbmF0dXJl" % ("x" * 300), '"AQAEAJ0aYbqPxEvQ2m4s"', "AQAEAJ0aYbqPxEvQ2m4sFw==\n"]


@pytest.mark.parametrize("answer", BARE)
@pytest.mark.parametrize("path", ["/oauth/introspect", "/userinfo", "/latest/api/token"])
def test_a_token_without_json_around_it_is_a_pseudonym(answer: str, path: str) -> None:
    for field in (JSON_TYPE, FORM_TYPE):
        request = b"POST %b HTTP/1.1\r\n%b\r\n" % (path.encode(), field)
        kept = Disk().recorded(request, b"", OK + b"Content-Type: text/plain\r\n\r\n", answer.encode())
        assert (kept[1:10], len(kept)) == (b"redacted-", 22)


@pytest.mark.parametrize("answer", [b"method_not_allowed_by_server", b"Not found: token-endpoint-1 does not exist here", b"ok"])
def test_words_at_a_token_endpoint_are_kept(answer: bytes) -> None:
    request = b"POST /oauth/token HTTP/1.1\r\n%b\r\n" % FORM_TYPE
    assert Disk().recorded(request, b"", OK + b"\r\n", answer) == b"\n" + answer


def test_a_member_is_known_by_its_name_however_json_spells_it() -> None:
    request = b"POST /x HTTP/1.1\r\n%b\r\n" % FORM_TYPE
    sent = b'{"access_\\u0074oken":"%b"}' % SECRET.encode()
    assert SECRET.encode() not in Disk().recorded(request, b"", OK + b"\r\n", sent)


def test_a_multipart_form_at_a_token_endpoint_is_one_pseudonym() -> None:
    request = b"POST /oauth/access_token HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n"
    form = b'--b\r\nContent-Disposition: form-data; name="client_secret"\r\n\r\n%b\r\n--b--' % SECRET.encode()
    assert SECRET.encode() not in Disk().recorded(request, form, OK + b"\r\n", GRANT)


def test_trailers_are_redacted_as_heads_are() -> None:
    trailers = "X-Took: 33\r\nX-Auth-Token: {}\r\nX-Custom: Bearer {}\r\n"
    close = Close(at_ns=0, stream=0, by=SERVER, how="eof", extra={"trailers": trailers.format(SECRET, SECRET)})
    records: list[Record] = []
    RedactingSink(records.extend, REDACTOR)((close,))
    name = REDACTOR.pseudonym(SECRET.encode()).decode()
    assert [record.extra["trailers"] for record in records if isinstance(record, Close)] == [trailers.format(name, name)]


def test_trailers_are_shared_as_heads_are() -> None:
    trailers = f"X-Took: 33\r\nX-Secret-Id: {SECRET}\r\n"
    close = Close(at_ns=0, stream=0, by=SERVER, how="eof", extra={"trailers": trailers})
    sharing = Sharing(finder(), pseudonym)
    (shared,) = (*sharing.feed(close), *sharing.close())
    assert isinstance(shared, Close)
    assert SECRET not in shared.extra["trailers"]
    assert shared.extra["trailers"].startswith("X-Took: 33\r\nX-Secret-Id: redacted-")
