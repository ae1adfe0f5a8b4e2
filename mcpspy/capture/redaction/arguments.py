"""Passwords on command lines after options that mean one to some programs only. Arguments in; out comes where a password begins.

mysql -pSECRET             attached to the option
redis-cli -a SECRET        the next argument
curl -u user:SECRET        what follows the user
mc alias set a URL k SECRET    an argument by its place
aws configure set api_key SECRET    what follows the name of a secret that is set

`-p` is a port to most programs, so nothing is a password unless the program is in the table.
Nothing else is imported: this is on the tap's start-up path.
"""

from __future__ import annotations

from .names import kind_of, kind_of_field, kind_of_option

_MYSQL = "mysql,mysql_upgrade,mysqladmin,mysqlbinlog,mysqlcheck,mysqldump,mysqlimport,mysqlpump,mysqlsh,mysqlshow"
_MARIADB = "mariadb,mariadb-admin,mariadb-binlog,mariadb-check,mariadb-dump,mariadb-import,mariadb-show"
_MONGO = "mongo,mongodump,mongoexport,mongoimport,mongorestore,mongosh"
_LOGINS = (
    "az login,buildah login,cf login,docker login,nerdctl login,oc login,oras login,podman login,registry login,skopeo login"
)
_TABLE = (
    (f"{_MYSQL},{_MARIADB},7z,7za,7zr,7zz,rar,unrar", "-p", "", ""),
    (f"{_MONGO},{_LOGINS},cqlsh,cypher-shell,sshpass,twine,youtube-dl,yt-dlp", "-p", "-p", ""),
    ("ldapadd,ldapdelete,ldapmodify,ldapsearch,ldapwhoami", "-w", "-w", ""),
    ("bcp,ipmitool,osql,sqlcmd,unzip,zip", "-P", "-P", ""),
    ("mosquitto_pub,mosquitto_rr,mosquitto_sub", "", "-P", ""),
    ("redis-cli,valkey-cli", "", "-a", ""),
    ("curl", "-u,-U", "-u,-U,-su,-sSu,--user,--proxy-user", ":"),
    ("smbclient", "-U,--user=", "-U,--user", "%"),
    ("http,https,httpie,xh,xhs", "-a,--auth=", "-a,--auth", ":?"),
    ("lftp", "-u", "-u", ","),
    ("bw,op", "--session=", "--session", ""),
    ("plink,pscp,psftp", "", "-pw", ""),
    ("jarsigner,keytool", "", "-storepass,-keypass,-srcstorepass,-deststorepass", ""),
    ("rdesktop", "-p", "-p", ""),
    ("sdl-freerdp,wfreerdp,xfreerdp", "/p:", "", ""),
)
"""Programs, the options to which a password is attached, those that the next argument follows, and the sign after the user.

Where `?` follows the sign, an argument without a sign is a secret as a whole.
"""

PLACES = {
    "htpasswd": 2, "mc alias set": 3, "mc config host add": 3, "mcli alias set": 3,
    "cargo login": 0, "ngrok authtoken": 0, "ngrok config add-authtoken": 0, "nuget setapikey": 0, "snyk auth": 0, "vault login": 0,
    "wandb login": 0,
}  # fmt: skip
"""Commands that take a secret without an option: how many arguments come before it."""

SETTERS = (["config", "set"], ["configure", "set"], ["config"], ["set"])
"""Words between a program and the name of what it sets."""

_MOST_WORDS = max(len(command.split()) for command in PLACES)
"""So many words of a command are kept: no secret is told by more words before it."""

_COMMON = ("http", "https")
"""Programs whose names are words of other commands too: they count as the first word of a command only."""

PROGRAMS = {
    program: (tuple(filter(None, attached.split(","))), separate.split(","), sign)
    for programs, attached, separate, sign in _TABLE
    for program in programs.split(",")
}
"""For each program the options that have the password attached, those that the next argument follows, and the sign before it."""

ATTACHED_TO_P = tuple(program for program, (attached, _, _) in PROGRAMS.items() if "-p" in attached)
"""The programs to whose `-p` a password is attached."""

VARIABLES = ("-e", "--env")
FIELDS = ("-H", "--header", "--headers")
"""Options of bridges that a name and a value follow, in two arguments: `mcp-proxy -e GITHUB_TOKEN VALUE`."""

CONTAINERS = ("docker", "nerdctl", "podman")
"""Programs to which `-e NAME` means the variable of their own environment: what follows is no value."""

SHELL_TEXTS = ("-c", "-lc", "-ic")
"""Options that the text of a shell follows."""

_WRAPPER = "sshpass"
"""A program whose own options end where another command begins."""

BLANKS = ("", "\n", "\\")
"""Words of a shell's text that are no arguments: what is between two blanks, the end of a line, and what continues it."""

_QUOTES = "'\"`$("


def password_starts(arguments: list[str]) -> dict[int, int]:
    """Return where passwords begin, by the position of the argument that holds them.

    >>> password_starts(["curl", "-u", "user:SECRET", "https://h"])
    {2: 5}
    """
    starts: dict[int, int] = {}
    program = last = ""
    words: list[str] = []  # of the command so far, without its options
    place = -1  # how many arguments come before one that is secret by its place
    announced: str | None = None
    for at, argument in enumerate(arguments):
        if argument in BLANKS:
            if argument == "\n" and arguments[at - 1] != "\\":
                program, place, words = "", -1, []
            continue
        bare = argument.lstrip(_QUOTES)
        if announced is not None and not is_option(argument):
            _add(starts, at, argument, 0, announced)
            announced = None
        elif bare.startswith("/") and program and bare.startswith(PROGRAMS[program][0]):
            _add(starts, at, argument, argument.index(":") + 1, "")
        elif not bare.startswith("-"):
            name, equals, _ = bare.partition("=")
            if equals and words[1:] in SETTERS and kind_of(name) is not None:
                _add(starts, at, argument, argument.index("=") + 1, "")
            if place == 0 and not equals:
                _add(starts, at, argument, 0, "")
            name = _program(bare)
            place = _place(words, bare if words else name, place)
            if (name in PROGRAMS and not (words and name in _COMMON)) or f"{last} {name}" in PROGRAMS:
                program = name if name in PROGRAMS else f"{last} {name}"
            elif program == _WRAPPER:
                program = ""
            if len(words) < _MOST_WORDS:
                words.append(bare if words else name)
            last = name
        elif program:
            attached, separate, sign = PROGRAMS[program]
            announced = sign if bare in separate else None
            option = next((option for option in attached if bare.startswith(option)), "") if announced is None else ""
            if option:
                _add(starts, at, argument, argument.index(bare) + len(option), sign)
        if argument.endswith((";", "|", "&")):  # the next word of a shell's text begins another command
            program, place, words = "", -1, []
    return starts


def follows_name(option: str, name: str, value: str) -> bool:
    """Return whether a value is a secret because it follows such an option and the name of a secret.

    >>> follows_name("-e", "GITHUB_TOKEN", "x")
    True
    """
    is_name = option in VARIABLES and kind_of_option(name) is not None
    return (is_name or (option in FIELDS and kind_of_field(name) is not None)) and not value.startswith("-") and "=" not in name


def _place(words: list[str], word: str, place: int) -> int:
    """Return how many arguments after `word`, which follows these words of a command, come before a secret; -1 if none is secret.

    >>> _place(["mc", "alias"], "set", -1)
    3
    """
    if words[1:] in SETTERS and kind_of(word) is not None:
        return 0
    return PLACES.get(" ".join((*words, word)), place - 1 if place > 0 else -1)


def is_option(text: str) -> bool:
    """Return whether a text is no value of the option before it. A secret may begin with one hyphen, and is longer than `-v`."""
    return text.startswith("--") or (text.startswith("-") and len(text) == len("-v"))


def _add(starts: dict[int, int], at: int, argument: str, begin: int, sign: str) -> None:
    """Add the password in an argument, which follows `sign` if there is one. A host and its port are none."""
    bare = sign.rstrip("?")
    found = argument.find(bare, begin)
    start = begin if found < 0 and bare != sign else found + len(bare)
    if (
        bare != sign
        and argument[begin : max(found, 0)].replace(".", "").isdigit()
        and argument[start:].strip("'\".,;").isdigit()
    ):
        return
    if start >= begin + (0 if bare != sign else len(sign)) and argument[start:].strip("'\""):
        starts[at] = start


def _program(word: str) -> str:
    name = word.rpartition("/")[2].rpartition("\\")[2].rstrip("'\")").lower()
    return name.removesuffix(".exe")
