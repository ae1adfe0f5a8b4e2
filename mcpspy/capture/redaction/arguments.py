"""Passwords on command lines after options that mean one to some programs only. Arguments in; out comes where a password begins.

mysql -pSECRET             attached to the option
redis-cli -a SECRET        the next argument
curl -u user:SECRET        what follows the user

`-p` is a port to most programs, so nothing is a password unless the program is in the table.
Nothing is imported: this is on the tap's start-up path.
"""

from __future__ import annotations

_MYSQL = "mysql,mysql_upgrade,mysqladmin,mysqlbinlog,mysqlcheck,mysqldump,mysqlimport,mysqlpump,mysqlsh,mysqlshow"
_MARIADB = "mariadb,mariadb-admin,mariadb-binlog,mariadb-check,mariadb-dump,mariadb-import,mariadb-show"
_MONGO = "mongo,mongodump,mongoexport,mongoimport,mongorestore,mongosh"
_LOGINS = (
    "az login,buildah login,cf login,docker login,nerdctl login,oc login,oras login,podman login,registry login,skopeo login"
)
_TABLE = (
    (f"{_MYSQL},{_MARIADB},7z,7za,7zr,7zz,rar,unrar", "-p", "", ""),
    (f"{_MONGO},{_LOGINS},cqlsh,cypher-shell,sshpass", "-p", "-p", ""),
    ("ldapadd,ldapdelete,ldapmodify,ldapsearch,ldapwhoami", "-w", "-w", ""),
    ("bcp,sqlcmd,unzip,zip", "-P", "-P", ""),
    ("mosquitto_pub,mosquitto_rr,mosquitto_sub", "", "-P", ""),
    ("redis-cli,valkey-cli", "", "-a", ""),
    ("curl", "-u,-U", "-u,-U,-su,-sSu,--user,--proxy-user", ":"),
    ("smbclient", "-U", "-U,--user", "%"),
)
"""Programs, the options to which a password is attached, those that the next argument follows, and the sign after the user."""

PROGRAMS = {
    program: (tuple(filter(None, attached.split(","))), separate.split(","), sign)
    for programs, attached, separate, sign in _TABLE
    for program in programs.split(",")
}
"""For each program the options that have the password attached, those that the next argument follows, and the sign before it."""

ATTACHED_TO_P = tuple(program for program, (attached, _, _) in PROGRAMS.items() if "-p" in attached)
"""The programs to whose `-p` a password is attached."""

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
    announced: str | None = None
    for at, argument in enumerate(arguments):
        if argument in BLANKS:
            program = "" if argument == "\n" and arguments[at - 1] != "\\" else program
            continue
        bare = argument.lstrip(_QUOTES)
        if announced is not None and not is_option(argument):
            _add(starts, at, argument, 0, announced)
            announced = None
        elif not bare.startswith("-"):
            name = _program(bare)
            if name in PROGRAMS or f"{last} {name}" in PROGRAMS:
                program = name if name in PROGRAMS else f"{last} {name}"
            elif program == _WRAPPER:
                program = ""
            last = name
        elif program:
            attached, separate, sign = PROGRAMS[program]
            announced = sign if bare in separate else None
            if announced is None and bare.startswith(attached):
                _add(starts, at, argument, argument.index(bare) + len("-p"), sign)
        if argument.endswith((";", "|", "&")):  # the next word of a shell's text begins another command
            program = ""
    return starts


def is_option(text: str) -> bool:
    """Return whether a text is no value of the option before it. A secret may begin with one hyphen, and is longer than `-v`."""
    return text.startswith("--") or (text.startswith("-") and len(text) == len("-v"))


def _add(starts: dict[int, int], at: int, argument: str, begin: int, sign: str) -> None:
    """Add the password in an argument, which follows `sign` if there is one."""
    start = argument.find(sign, begin) + len(sign)
    if start >= begin + len(sign) and argument[start:].strip("'\""):
        starts[at] = start


def _program(word: str) -> str:
    name = word.rpartition("/")[2].rpartition("\\")[2].rstrip("'\")").lower()
    return name.removesuffix(".exe")
