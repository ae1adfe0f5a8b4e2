"""Secrets never reach the disk, and equal secrets have equal pseudonyms."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.redaction.redactor import NoRedaction, Redactor
from mcpspy.records import PSEUDONYM_PREFIX as PREFIX
from tests.deadlines import DEADLINE_S

REDACT = Redactor(b"k" * 32)
SECRET = "s3cret-Value"
PSEUDONYM = REDACT.pseudonym(SECRET.encode()).decode()
UUID = "6f1c2d0e-1b2a-4c3d-8e9f-0a1b2c3d4e5f"


def test_a_pseudonym_is_a_word_and_twelve_hex_digits() -> None:
    assert PSEUDONYM.startswith(PREFIX)
    assert len(bytes.fromhex(PSEUDONYM.removeprefix(PREFIX))) == 6


def test_a_pseudonym_depends_on_the_key() -> None:
    assert Redactor(b"other").pseudonym(SECRET.encode()).decode() != PSEUDONYM


def test_a_pseudonym_is_its_own_pseudonym() -> None:
    assert REDACT.pseudonym(PSEUDONYM.encode()).decode() == PSEUDONYM


@pytest.mark.parametrize(
    "arguments",
    [
        ["server", "--api-key={}"],
        ["server", "--api-key", "{}"],
        ["server", "--apiKey={}"],
        ["server", "--token", "{}"],
        ["server", "--password={}"],
        ["server", "--access-token={}", "--verbose"],
        ["server", "--github-personal-access-token", "{}"],
        ["server", "--openai-key={}"],
        ["server", "--session-id", "{}"],
        ["env", "API_KEY={}", "server"],
        ["env", "MYSQL_PWD={}", "server"],
        ["server", "--bearer", "{}"],
        ["server", "--pat", "{}"],
        ["server", "--api-keys", "{}"],
        ["server", "--secrets={}"],
        ["server", "--otp", "{}"],
        ["rclone", "--sftp-pass", "{}"],
        ["server", "Server=h;User Id=u;Password={};Pooling=true"],
        ["server", "AccountName=a;AccountKey={}"],
        ["server", "Endpoint=sb://h/;SharedAccessKey={}"],
        ["server", "URL=https://h/?token={}"],
        ["server", "--github-pat", "{}"],
        ["curl", "--oauth2-bearer", "{}", "https://h"],
        ["java", "-jar", "x.jar", "--storepass", "{}"],
        ["server", "--url=https://h/?PHPSESSID={}"],
        ["docker", "run", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN={}", "image"],
        ["docker", "run", "-eAPI_KEY={}", "image"],
        ["docker", "run", "--env=API_KEY={}", "image"],
        ["java", "-DapiKey={}", "-jar", "x.jar"],
        ["npx", "mcp-remote", "https://h/mcp", "--header", "Authorization: Bearer {}"],
        ["npx", "mcp-remote", "https://h/mcp", "--header", "Authorization:Bearer {}"],
        ["npx", "mcp-remote", "https://h/mcp", "--header=Authorization: Bearer {}"],
        ["npx", "mcp-remote", "https://h/mcp", "-H", "X-API-Key: {}"],
        ["npx", "mcp-remote", "https://h/mcp", "-HX-API-Key:{}"],
        ["server", "--authorization", "Bearer {}"],
        ["server", "Bearer {}"],
        ["server", "https://h/sse?api_key={}"],
        ["server", "https://h/sse?a=1&token={}#x"],
        ["server", "--url=https://h/sse?sessionId={}&a=1"],
        ["server", "postgres://user:{}@h/db"],
        ["server", "DATABASE_URL=postgres://user:{}@h/db"],
        ["server", "https://{}@h/repo.git"],
        ["server", "--config", '{{"apiKey": "{}", "a": 1}}'],
        ["server", "--config", '{{"url": "https://h/?token={}"}}'],
        ["sh", "-c", "cd /tmp && API_KEY={} exec server --flag"],
        ["sh", "-c", "exec server --token {} --flag"],
        ["sh", "-c", "curl -H 'Authorization: Bearer {}' https://h/"],
        ["server", "--password", "{}"],
        ["server", "-password", "{}", "-port", "8080"],
        ["server", "-token", "{}"],
        ["mysql", "-u", "root", "-p{}", "db"],
        ["docker", "exec", "-i", "db", "/usr/bin/mysqldump", "-p{}"],
        ["C:\\bin\\mariadb.exe", "-p{}"],
        ["7z", "x", "-p{}", "a.7z"],
        ["sshpass", "-p", "{}", "ssh", "-p", "22", "host", "server"],
        ["sshpass", "-p{}", "ssh", "-p22", "host", "server", "-p8080"],
        ["mongosh", "-u", "me", "-p", "{}"],
        ["docker", "login", "-u", "me", "-p", "{}", "registry"],
        ["helm", "registry", "login", "-p", "{}"],
        ["redis-cli", "-h", "localhost", "-p", "6379", "-a", "{}", "ping"],
        ["ldapsearch", "-x", "-w", "{}"],
        ["sqlcmd", "-S", "h", "-P", "{}"],
        ["curl", "-u", "user:{}", "https://h/"],
        ["curl", "-uuser:{}", "-U", "user:{}", "--user", "user:{}", "https://h/"],
        ["smbclient", "-U", "user%{}", "//h/share"],
        ["smbclient", "--user=user%{}", "//h/share"],
        ["http", "-a", "user:{}", "https://h/"],
        ["https", "--auth", "user:{}", "h/", "X-Page:2"],
        ["/usr/bin/http", "-auser:{}", "h/"],
        ["xh", "-A", "bearer", "-a", "{}", "h/"],
        ["sh", "-c", "cd /tmp; http -a 'user:{0}' h/ | http -a user:{0} h/"],
        ["op", "--session", "{}", "item", "list"],
        ["bw", "--session={}", "list"],
        ["mc", "alias", "set", "name", "https://h", "AKIAX", "{}", "--api", "S3v4"],
        ["mcli", "alias", "set", "name", "https://h", "user", "{}"],
        ["sh", "-c", "mc alias set name https://h user '{}' && mc ls name"],
        ["vault", "login", "{}"],
        ["/opt/ngrok", "config", "add-authtoken", "{}"],
        ["aws", "configure", "set", "aws_secret_access_key", "{}"],
        ["git", "config", "--global", "github.token", "{}"],
        ["npm", "set", "//registry.example.org/:_authToken={}"],
        ["server", "--set", "image.tag=1,auth.password={0}", "--env=X=1,API_KEY={0}"],
        ["server", '["--token", "{}"]'],
        ["server", '--args=["-x", "--token={}"]'],
        ["server", "jdbc:sqlserver://h:1433;user=u;password={}"],
        ["server", "https://h/x;jsessionid={}?a=1"],
        ["server", "--dsn=Server=h;Password={0}", "--db=Server=h;Password={0}"],
        ["docker", "run", "-e", "SECRET_KEY_BASE={0}", "-e", "TOKEN_VALUE={0}", "-e", "SSH_PRIVATE_KEY_BASE64={0}", "image"],
        ["npm", "config", "set", "//registry.example.org/:_authToken", "{}"],
        ["server", "/password:{0}", "/PWD:{0}", "/ApiKey={0}"],
        ["sh", "-c", "server '/password:{}' /v"],
        ["xfreerdp", "/u:me", "/p:{}", "/v:h"],
        ["supergateway", "--oauth2Bearer", "{}"],
        ["server", "--pw", "{0}", "--ldap-pw={0}", "--bindpw", "{0}", "--csrf", "{0}", "--hmac={0}", "--mnemonic", "{0}"],
        ["openssl", "req", "-passout", "{}"],
        ["yt-dlp", "-u", "me", "-p", "{}", "https://h/"],
        ["twine", "upload", "-u", "__token__", "-p", "{}"],
        ["lftp", "-u", "me,{}", "h"],
        ["snyk", "auth", "{}"],
        ["server", "OpenAI:ApiKey={0}", "-P:password={0}", "/p:Password={0}"],
        ["pwsh", "-c", "$env:API_KEY='{}'"],
        ["server", "--sas", "sv=2020&sig={}&se=1"],
        ["sh", "-c", "cat f | server --token {0} --json '[{{\"a\":1}}]' --password={0}"],
        ["server", "--config", '{{"args": ["-x", "--token", "{0}"], "env": ["TOKEN={0}", "A=b"]}}'],
        ["server", '--config={{"servers": [{{"args": ["--token={}"]}}]}}'],
        ["plink", "-pw", "{}", "me@h"],
        ["ipmitool", "-H", "h", "-U", "me", "-P", "{}"],
        ["server", "--passcode", "{0}", "--pin-code={0}", "--mfa_code", "{0}", "--2fa={0}"],
        ["sh", "-c", "mysql -u root -p'{}' db; docker run -p 8080:80 -p80 image"],
        ["sh", "-c", "set -e\ncurl -u 'user:{}' https://h/ | server -p80"],
        ["sh", "-c", "mysql -p{0}\necho -p80; server --token  {0} --api-key \\\n  {0} && exit"],
    ],
)
def test_a_command_keeps_no_secret(arguments: list[str]) -> None:
    redacted = REDACT.argv([argument.format(SECRET) for argument in arguments])
    assert redacted == [argument.format(PSEUDONYM) for argument in arguments]


@pytest.mark.parametrize("option", ["--pin", "--session"])
@pytest.mark.parametrize("secret", ["Hq7xV2pLz9Wd4Km", "aB3-dE5_fG7/hI9+jK==", "0123456789abcdef0123456789abcdef"])
def test_a_pin_and_a_session_are_known_by_their_looks(option: str, secret: str) -> None:
    redacted = REDACT.argv(["server", option, secret, f"{option}={secret}", f"sh {option} '{secret}' x"])
    assert secret not in str(redacted)
    assert len(redacted) == 5


def test_a_pin_of_four_digits_is_a_secret() -> None:
    assert "1234" not in str(REDACT.argv(["server", "--pin", "1234", "--pin=1234"]))


def test_a_key_is_known_by_its_looks() -> None:
    key = "11112222-3333-4444-5555-666677778888"
    assert key not in str(
        REDACT.argv(["npx", "@smithery/cli", "run", "x", "--key", key, f"--key={key}", f"server --key {key}"])
    )
    assert REDACT.argv([key]) == [key]


@pytest.mark.parametrize("token", ["ghp_0123456789abcdefghij", "sk-ant-0123456789abcdef", "eyJhbGciOiJIUzI1NiJ9.e30.x"])
def test_a_token_that_is_known_by_its_beginning_is_redacted(token: str) -> None:
    assert REDACT.argv(["server", token]) == ["server", REDACT.pseudonym(token.encode()).decode()]


@pytest.mark.parametrize(
    "command",
    [
        "npx -y @modelcontextprotocol/server-filesystem /tmp",
        "uvx mcp-server-git --repository /home/me/token",
        "python -m mcp_server_time --local-timezone=UTC",
        "docker run -i --rm -v /a:/b mcp/fetch",
        "server --no-token --max-tokens 100 --token-file /x --keyboard=us --public-key x --num-tokens 9 --primary-keys id",
        "server --key /etc/tls/server.pem --key id --key=name --key",
        "server --token --verbose",
        "server https://example.org/mcp?page=2#top http://127.0.0.1:8080/",
        "sh -c",
        "server -p 8080 -p8080 -port 80 -print -pthread -pipe -P 80 -a x -u user:group -w 3",
        "docker run -p 8080:80 -p80:80 -u 1000:1000 mysql -p 3306",
        "uvx mysql-mcp-server -port 80 -p8080",
        "mysql -u root -p db",
        "curl -u user https://h:80/ -p",
        "redis-cli -p 6379 ping",
        "ssh -p 2222 user@host server",
        "docker login ; server -p 80",
        "server -a user:group http -a 127.0.0.1:8080 --protocol http -a x:y",
        "train --pin-memory 4 --pin 17 --pin main --pin v1.20.300 --pin=a1b2c3d4e5f6 --spin 1234",
        "tmux --session main --session-name x --session=work-2024 --session 3 --sessions 1234",
        "docker run -v /secrets:/run/secrets -v /token:/token:ro --mount /key:id /passwords",
        "mc ls name; mc alias list a b c d e; alias set a b c d",
        "http -a 127.0.0.1:8080",
        "server set name value get token value set-token x",
        "msbuild /p:Configuration=Release /t:build Section:Name=x $env:PATH=/bin a=1&b=2",
        'server --config={"args":["-p","8080"],"x":[1,{"y":["a"]}]} {"name":"x","tags":["a","b"]}',
        """server ["--level","a"] ["a", "b"] [1] ["x --set a=1,b=2;c=3 https://h/x;v=1/y,z?k=1 --key-value x --public-key-pem x""",
        "git config user.name x --types token,password --columns id,key,token",
        "server a=b c:d = : -- - --= -=",
        "lftp -u me -p 2121 ftp://h",
    ],
)
def test_a_command_without_secrets_is_kept_as_it_is(command: str) -> None:
    assert REDACT.argv(command.split()) == command.split()


@pytest.mark.parametrize(
    ("url", "redacted"),
    [
        ("https://h/a?session_id={}", "https://h/a?session_id={}"),
        ("/messages/?session_id={}", "/messages/?session_id={}"),
        ("/m?sessionId={}&x=1", "/m?sessionId={}&x=1"),
        ("https://h/a?x=1;token={}", "https://h/a?x=1;token={}"),
        ("https://h/a?x=1?token={}", "https://h/a?x=1?token={}"),
        ("https://h/cb#access_token={}", "https://h/cb#access_token={}"),
        ("https://h/cb?code={}&state=", "https://h/cb?code={}&state="),
        ("https://h/?%74oken={}", "https://h/?%74oken={}"),
        ("https://me:{}@h/", "https://me:{}@h/"),
    ],
)
def test_a_url_keeps_no_secret(url: str, redacted: str) -> None:
    assert REDACT.url(url.format(SECRET)) == redacted.format(PSEUDONYM)


def test_after_a_secret_name_all_is_secret_up_to_the_next_parameter() -> None:
    assert REDACT.url("/?token=a;b?c=d&x=1") == f"/?token={REDACT.pseudonym(b'a;b?c=d').decode()}&x=1"


@pytest.mark.parametrize("key", [UUID, UUID.replace("-", ""), "ZmFrZS1rZXktZm9yLXRlc3Rz0123456789AbCd"])
def test_a_key_in_a_path_is_redacted_by_its_looks(key: str) -> None:
    assert REDACT.url(f"https://h/s/{key}/sse") == f"https://h/s/{REDACT.pseudonym(key.encode()).decode()}/sse"


def test_a_key_after_two_slashes_is_redacted_too() -> None:
    assert REDACT.head(f"GET //{UUID}/x HTTP/1.1\r\n\r\n".encode())[0].startswith(b"GET //redacted-")


@pytest.mark.parametrize(
    "path", ["/.well-known/oauth-protected-resource/mcp", "/npm/@modelcontextprotocol/server-everything-2026-08-31"]
)
def test_a_path_of_words_is_kept(path: str) -> None:
    assert REDACT.url(path) == path


def field(name: str, value: str) -> bytes:
    return f"POST /mcp HTTP/1.1\r\nHost: h\r\n{name}: {value}\r\nAccept: */*\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("Authorization", "Bearer {}", "authorization"),
        ("authorization", "{}", "authorization"),
        ("Proxy-Authorization", "Basic {}", "authorization"),
        ("Cookie", "a={}; b={}", "cookie"),
        ("Set-Cookie", "a={}; Path=/; HttpOnly", "cookie"),
        ("X-API-Key", "{}", "key"),
        ("X-Auth", "{}", "authorization"),
        ("x-goog-api-key", "{}", "key"),
        ("X-Auth-Token", "{}", "key"),
        ("Ocp-Apim-Subscription-Key", "{}", "key"),
        ("DPoP", "{}", "dpop"),
        ("Mcp-Session-Id", "{}", "session"),
        ("mcp-session-id", "{}", "session"),
        ("Location", "https://h/cb?code={}", "token"),
        ("Referer", "/m?sessionId={}", "session"),
        ("Link", '</m?sessionId={}>; rel="x"', "session"),
    ],
)
def test_a_head_keeps_no_secret_of_a_field(name: str, value: str, kind: str) -> None:
    redacted, ranges = REDACT.head(field(name, value.format(SECRET, SECRET)))
    assert redacted == field(name, value.format(PSEUDONYM, PSEUDONYM))
    assert {range_kind for *_, range_kind in ranges} == {kind}


def test_a_head_keeps_no_secret_of_its_request_line() -> None:
    head = "GET http://h/messages?sessionId={}&x=1 HTTP/1.1\r\nHost: h\r\n\r\n"
    assert REDACT.head(head.format(SECRET).encode())[0] == head.format(PSEUDONYM).encode()


def test_a_folded_value_is_redacted_with_its_folds() -> None:
    head = b"GET / HTTP/1.1\r\nAuthorization: Bearer abc\r\n def\r\nHost: h\r\n\r\n"
    assert REDACT.head(head)[0] == b"GET / HTTP/1.1\r\nAuthorization: Bearer %s\r\nHost: h\r\n\r\n" % REDACT.pseudonym(
        b"abc\r\n def"
    )


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nAccess-Control-Expose-Headers: mcp-session-id\r\n\r\n",
        b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer resource_metadata="http://h/.well-known/x"\r\n\r\n',
        b"POST / HTTP/1.1\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nX-Ratelimit-Tokens: 3\r\n\r\n",
        b"",
        b"junk",
        b"\r\n\r\n",
        b"Authorization:\r\n",
    ],
)
def test_a_head_without_secrets_is_kept_byte_for_byte(head: bytes) -> None:
    assert REDACT.head(head) == (head, ())


def test_the_ranges_are_those_of_the_pseudonyms() -> None:
    head = b"GET /?token=a&sid=b HTTP/1.1\r\nCookie: c=d; e=f\r\nAuthorization: Bearer g\r\n\r\n"
    redacted, ranges = REDACT.head(head)
    pseudonyms = [redacted[offset : offset + length] for offset, length, _ in ranges]
    assert pseudonyms == [REDACT.pseudonym(secret) for secret in (b"a", b"b", b"d", b"f", b"g")]


@pytest.mark.parametrize(
    "event",
    [
        "event: endpoint\r\ndata: /messages/?session_id={}\r\n\r\n",
        "event:endpoint\ndata:/message?sessionId={}\n\n",
        "data: http://h/m?sessionId={}\nevent: endpoint\n\n",
        'event: endpoint\ndata: {{"uri": "/messages?sessionId={}", "protocol": "ssE"}}\n\n',
        "\ufeffevent: endpoint\ndata: /messages?session_id={}\n\n",
    ],
)
def test_an_endpoint_event_keeps_no_session_id(event: str) -> None:
    redacted, ranges = REDACT.endpoint(event.format(SECRET).encode())
    assert redacted == event.format(PSEUDONYM).encode()
    assert [kind for *_, kind in ranges] == ["session"]


@pytest.mark.parametrize(
    "address",
    [
        "http://user:{}@127.0.0.1:1/m",
        "HTTPS://user:{}@h",
        "http://{}@h/m?x=1",
        "//user:{}@h/m",
        '{{"uri":"http://user:{}@h/m"}}',
        '{{"uri":"http:\\/\\/user:{}@h\\/m"}}',
        '{{"uri":"\\/\\/user:{}@h\\/m"}}',
    ],
)
def test_an_endpoint_event_keeps_no_password(address: str) -> None:
    event = f"event: endpoint\ndata: {address}\n\n"
    redacted, ranges = REDACT.endpoint(event.format(SECRET).encode())
    assert redacted == event.format(PSEUDONYM).encode()
    assert [kind for *_, kind in ranges] == ["userinfo"]


def test_other_events_are_not_searched() -> None:
    event = f'event: message\ndata: {{"x": "endpoint /m?sessionId={SECRET}"}}\n\n'.encode()
    assert REDACT.endpoint(event) == (event, ())


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", '{{"access_token": "{}", "token_type": "Bearer", "expires_in": 3600}}'),
        ("application/json;charset=utf-8", '\n{{"client_id": "x", "client_secret":"{}"}}'),
        ("application/json", '{{"refresh_token": "{}'),
        ("application/x-www-form-urlencoded", "grant_type=authorization_code&code={}&client_id=x"),
        ("Application/X-WWW-Form-Urlencoded; charset=utf-8", "refresh_token={}&grant_type=refresh_token"),
        ("application/x-www-form-urlencoded", "username=me&password={}"),
    ],
)
def test_an_oauth_body_keeps_no_secret(content_type: str, body: str) -> None:
    assert REDACT.body(body.format(SECRET).encode(), content_type)[0] == body.format(PSEUDONYM).encode()


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"access_token":"s3cret"}}',
        b'{"error": "invalid_grant", "code": "x"}',
        b"access_token: x",
        b"",
    ],
)
def test_a_body_that_is_no_oauth_body_is_kept_byte_for_byte(body: bytes) -> None:
    assert REDACT.body(body, "application/json") == (body, ())


def test_one_secret_has_one_pseudonym_wherever_it_is() -> None:
    secret = "a b+c/d=="
    places = [
        REDACT.argv(["server", f"--token={secret}"])[1],
        REDACT.url("/?token=a%20b%2Bc%2fd%3D%3D"),
        REDACT.head(field("X-API-Key", secret))[0].decode(),
        REDACT.head(field("Authorization", f"Bearer {secret}"))[0].decode(),
        REDACT.head(field("Cookie", f'x="{secret}"'))[0].decode(),
        REDACT.body(b'{"access_token": "a b+c\\/d=="}', "application/json")[0].decode(),
        REDACT.body(b"token=a+b%2Bc%2Fd%3d%3d", "application/x-www-form-urlencoded")[0].decode(),
        REDACT.endpoint(b"event: endpoint\ndata: /m?sid=a%20b+c/d==\n\n")[0].decode(),
    ]
    assert [REDACT.pseudonym(secret.encode()).decode() in place for place in places] == [True] * len(places)


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_redacted_without_an_exception_and_redacting_twice_changes_nothing(data: bytes) -> None:
    for redact in (REDACT.head, REDACT.endpoint, lambda data: REDACT.body(data, "application/x-www-form-urlencoded")):
        once, _ = redact(b"GET /?" + data)
        assert redact(once)[0] == once


@given(st.lists(st.text() | st.sampled_from(["--token", "Bearer", "Authorization:", "-", "--", "=", '{"token":"x"}'])))
def test_any_command_keeps_its_number_of_arguments(arguments: list[str]) -> None:
    assert len(REDACT.argv(arguments)) == len(arguments)


@pytest.mark.grid(4)
@pytest.mark.parametrize("piece", [b";", b"&", b"?", b"a=1;", b"%", b"Cookie: a=b\r\n", b" \r\n", b"/", b"a:b@"])
def test_a_long_head_takes_time_in_proportion(piece: bytes) -> None:
    count = 1 << 16
    data = b"GET /?" + piece * count + b" HTTP/1.1\r\nCookie: " + piece * count + b"\r\n\r\n"
    REDACT.head(data)  # quadratic, it would meet the deadline of every test


def test_a_credential_after_many_semicolons_is_found() -> None:
    token = b"sk-ant-api03-" + b"Ab1" * 20
    assert token not in REDACT.head(b"GET /?" + b"a=1;" * 1000 + b"x=" + token + b" HTTP/1.1\r\n\r\n")[0]


def test_no_redaction_changes_nothing() -> None:
    off = NoRedaction()
    head = field("Authorization", "Bearer x")
    assert (off.argv(["--token", "x"]), off.url("/?token=x")) == (["--token", "x"], "/?token=x")
    assert (off.head(head), off.endpoint(head), off.body(head, "")) == ((head, ()), (head, ()), (head, ()))


def test_a_command_without_secrets_needs_no_import() -> None:
    code = (
        "import sys; import mcpspy.capture.redaction; before = set(sys.modules); "
        "from mcpspy.capture.redaction.redactor import Redactor; "
        "Redactor(b'k').argv(['npx', '-y', 'x', '/tmp']); print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=DEADLINE_S)
    assert done.stdout.split() == [
        "__future__",
        "mcpspy.capture.redaction.arguments",
        "mcpspy.capture.redaction.names",
        "mcpspy.capture.redaction.redactor",
        "mcpspy.records",  # which a tap has already
    ]


@pytest.mark.parametrize("piece", ["a ", "mc alias ", "-e A b ", "curl -u ", "a=b "])
def test_a_long_command_takes_time_in_proportion(piece: str) -> None:
    count = (1 << 17) // len(piece)  # Linux takes no longer argument
    REDACT.argv(["sh", "-c", piece * count])  # quadratic, it would meet the deadline of every test
