"""Passwords on command lines: in the command of the header, in lists of arguments, in the text of a shell and in logs."""

import json

import pytest

from mcpspy.records import Header
from mcpspy.sharing.finder import Prefilter
from mcpspy.sharing.known import KnownValues
from mcpspy.sharing.patterns import SecretNames
from tests.sharing.hiding import marked, pseudonym, shared
from tests.sharing.test_share import frames, header, message, stdio

LISTS = [
    (["serve", "--password", "x"], ["serve", "--password", "R"]),
    (["serve", "--password", "-x1"], ["serve", "--password", "R"]),
    (["serve", "--password", "--verbose", "x"], ["serve", "--password", "--verbose", "x"]),
    (["mysql", "-psecret", "db"], ["mysql", "-pR", "db"]),
    (["/usr/bin/mariadb-dump", "-psecret"], ["/usr/bin/mariadb-dump", "-pR"]),
    (["serve", "-pTr0ub4dor"], ["serve", "-pR"]),
    (["gcc", "-pthread", "-pipe", "-p", "8080:80", "-p5432", "-p1-1000"],) * 2,
    (["sh", "-c", "mysql -u root -psecret db"], ["sh", "-c", "mysql -u root -pR db"]),
    (["sh", "-c", "set -e; curl -u user:pass https://h"], ["sh", "-c", "set -e; curl -u user:R https://h"]),
    (["sh", "-c", "sshpass -p x ssh -p 22 h"], ["sh", "-c", "sshpass -p R ssh -p 22 h"]),
]
COMMANDS = [
    (["serve", "-pSECRET"], ["serve", "-pR"]),
    (["serve", "-phunter2"], ["serve", "-pR"]),
    (["serve", "--passphrase=two words"], ["serve", "--passphrase=R"]),
    (["sshpass", "-p", "x", "ssh", "-p", "22", "h"], ["sshpass", "-p", "R", "ssh", "-p", "22", "h"]),
    (["curl", "-u", "user:x", "https://h"], ["curl", "-u", "user:R", "https://h"]),
    (["serve", "-port=80", "-profile", "-param:x=1"],) * 2,
    (["serve", "--key", "Zx81pq", "--key=Zx82pq"], ["serve", "--key", "R", "--key=R"]),
    (["serve", "--tokens", "a1b2", "--api-tokens", "abc"], ["serve", "--tokens", "R", "--api-tokens", "R"]),
    (["serve", "-u", "admin:x", "--user=admin:x1:y"], ["serve", "-u", "admin:R", "--user=admin:R"]),
    (["az", "login", "-u", "id", "-p", "x"], ["az", "login", "-u", "id", "-p", "R"]),
    (["serve", "--key", "id", "--key", "user_id", "--key", "/etc/tls.key", "--key", "tls.pem", "--max-tokens", "5"],) * 2,
    (["serve", "--tokens", "512", "--num-tokens=9k", "-u", "1000:1000", "-u", "app", "--user", "app:app", "-u", "http://h:1"],)
    * 2,
    (["serve", "--url=https://h/x?access_token=a1b2"], ["serve", "--url=https://h/x?access_token=R"]),
    (["docker", "run", "-u", "node:staff", "image"],) * 2,
    (["sort", "-u", "a/b:c"],) * 2,
    (["http", "-a", "user:x", "h/"], ["http", "-a", "user:R", "h/"]),
    (["serve", "--pin", "1234", "--session=Hq7xV2pLz9Wd4Km"], ["serve", "--pin", "R", "--session=R"]),
    (["serve", "-a", "user:x", "--pin", "17", "--pin-memory", "1234", "--session-name", "Hq7xV2pLz9Wd4Km"],) * 2,
    (["mc", "alias", "set", "n", "http://h", "me", "secret"], ["mc", "alias", "set", "n", "http://h", "me", "R"]),
]
TEXTS = [
    ("mysql -u root -psecret db", "mysql -u root -pR db"),
    ("ran ['mysql', '-psecret']", "ran ['mysql', '-pR']"),
    ("ran ['serve', '--password', 'x y']", "ran ['serve', '--password', 'R']"),
    ("serve -pTr0ub4dor now", "serve -pR now"),
    ("curl -sS \\\n  -u 'user:pass' https://h", "curl -sS \\\n  -u 'user:R' https://h"),
    ("url=https://h/x?token=a1b2&x=1", "url=https://h/x?token=R&x=1"),
    ("https://h/x?next=https://h/y?code=a1b2#z", "https://h/x?next=https://h/y?code=R#z"),
    ("next=/y?x=1&password=a?b", "next=/y?x=1&password=R"),
    ("(redis-cli -a correct)", "(redis-cli -a R)"),
    ("http -a user:pass h/ and op --session abcdef item", "http -a user:R h/ and op --session R item"),
    ("started: serve --pin 1234 --session='Hq7xV2pLz9Wd4Km'", "started: serve --pin R --session='R'"),
    ("mc alias set n http://h me correct", "mc alias set n http://h me R"),
    ("use http -a 127.0.0.1:8080, please set token value, pip config list --pin 17 --session main", None),
    ("sort -u file:pass and curl https://h -o user:pass\nid -u user:pass", None),
    ("left-pad and docker run -p 8080:80 -python3.11 -print(x1) -pS/path1", None),
    ("mysql\nnmap -pSCAN", None),
]


@pytest.mark.parametrize(("argv", "expected"), [*LISTS, *COMMANDS])
def test_a_password_in_the_command_is_replaced(argv: list[str], expected: list[str]) -> None:
    (made,) = shared([header(tapped={"transport": "stdio", "argv": argv})])
    assert isinstance(made, Header)
    assert json.loads(marked(json.dumps(made.tapped["argv"]).encode())) == expected


@pytest.mark.parametrize(("argv", "expected"), LISTS)
@pytest.mark.parametrize("is_text", [False, True])
def test_a_password_in_a_list_of_arguments_is_replaced(argv: list[str], expected: list[str], *, is_text: bool) -> None:
    value = json.dumps(argv) if is_text else argv
    (frame,) = frames(shared(stdio((0, message(command=value)))))
    made = json.loads(marked(frame.data))["params"]["command"]
    assert (json.loads(made) if is_text else made) == expected


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_a_password_in_a_text_is_replaced(text: str, expected: str | None) -> None:
    payload, log = frames(shared(stdio((0, message(note=text)), (2, text.encode() + b"\n"))))
    assert json.loads(marked(payload.data))["params"]["note"] == (expected or text)
    assert marked(log.data).decode() == (expected or text) + "\n"


@pytest.mark.parametrize("text", [text for text, expected in TEXTS if expected is not None])
def test_no_text_with_a_password_passes_the_quick_test(text: str) -> None:
    assert not Prefilter(SecretNames(), KnownValues(pseudonym), personal=False)(text.encode())


def test_an_option_that_the_user_names_announces_a_secret() -> None:
    (made,) = shared([header(tapped={"transport": "stdio", "argv": ["serve", "--seat", "12a"]})], names=SecretNames(["seat"]))
    assert isinstance(made, Header)
    assert made.tapped["argv"] == ["serve", "--seat", pseudonym(b"12a").decode()]
