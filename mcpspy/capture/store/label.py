"""A server's label: the command that starts it in; out a short name, past runners such as npx, python and docker.

A label is a guess: the disk is not looked at. This is on the tap's start-up path: no imports, no patterns.
"""

from __future__ import annotations

LETTERS = 64
"""Longer labels are cut."""

PACKAGE_RUNNERS = {"npx", "bunx", "pnpx", "uvx"}

SUBCOMMAND_RUNNERS = {
    "npm": ("exec", "x"),
    "pnpm": ("dlx", "exec"),
    "yarn": ("dlx", "exec"),
    "bun": ("x",),
    "pipx": ("run",),
}
"""Runners whose package comes after one of these words, as in `npm exec PACKAGE`."""

INTERPRETERS = {
    "python", "pypy", "node", "nodejs", "deno", "bun", "tsx", "ts-node", "ruby", "perl", "php", "bash", "sh", "zsh", "java",
    "dotnet", "pwsh", "powershell",
}  # fmt: skip

TAKES_VALUE = {
    "-p", "--package", "--from", "--with", "--with-requirements", "--with-editable", "--python", "--directory", "--project",
    "--index-url", "--extra-index-url", "--env-file", "--extra", "--group", "-X", "-W", "-r", "--require", "--import",
    "--loader", "-e", "-I", "--cwd", "--prefix", "-C", "--spec", "-cp", "-classpath", "--class-path",
}  # fmt: skip
"""Options of runners and interpreters whose value is the next argument."""

DOCKER_FLAGS = {
    "--rm",
    "--init",
    "--interactive",
    "--tty",
    "--privileged",
    "--read-only",
    "--no-healthcheck",
    "--detach",
    "--publish-all",
}
"""Long options of `docker run` without a value. Of its short ones, `-i -t -d -P` and their runs take none."""

_SHELL_TEXTS = {"-cl", "-ec", "-exc", "-ic", "-ilc", "-lc", "-lic", "-xc"}
"""Options of shells with `-c` among them: what follows is a text to run, and no name."""

GENERIC = {
    "index", "main", "server", "cli", "app", "__main__", "mcp", "start", "run", "dist", "build", "src", "lib", "bin", "out",
    "target", "release", "debug", "scripts", "venv", ".venv",
}  # fmt: skip
"""File and folder names that say nothing; then the name of the folder above counts."""


def default_label(argv: list[str]) -> str:
    """Name the server that `argv` starts. Never empty: `server` if nothing can be made of it."""
    return (_label(list(argv)) or "server")[:LETTERS]


def _label(argv: list[str]) -> str:
    """Peel one runner off `argv` and look again, until a program, a package or a script is left."""
    while argv:
        command = _command(argv[0])
        rest = argv[1:]
        if command == "env":
            argv = _past_assignments(rest)
        elif command == "cmd":
            argv = [argument for argument in rest if not argument.startswith("/")]
        elif command in ("docker", "podman", "nerdctl"):
            return _image(rest) or command
        elif command in PACKAGE_RUNNERS:
            return _package(_first_operand(rest)) or command
        elif command in SUBCOMMAND_RUNNERS and rest and rest[0] in SUBCOMMAND_RUNNERS[command]:
            return _package(_first_operand(rest[1:])) or command
        elif command == "uv" and rest[:2] == ["tool", "run"]:
            return _package(_first_operand(rest[2:])) or command
        elif command in ("uv", "poetry", "pdm", "rye", "hatch", "pipenv") and "run" in rest:
            argv = _from_operand(rest[rest.index("run") + 1 :])
            if not argv:
                return command
            if argv[0].endswith(".py"):
                return _script(argv[0])
        elif _is_interpreter(command):
            return _interpreted(command, rest)
        else:
            return _script(argv[0])
    return ""


def _command(path: str) -> str:
    name = path.replace("\\", "/").rpartition("/")[2]
    lower = name.lower()
    for extension in (".exe", ".cmd", ".bat"):
        if lower.endswith(extension):
            return lower[: -len(extension)]
    return lower


def _is_interpreter(command: str) -> bool:
    return command in INTERPRETERS or command.rstrip("0123456789.") in INTERPRETERS


def _past_assignments(arguments: list[str]) -> list[str]:
    for at, argument in enumerate(arguments):
        if not argument.startswith("-") and "=" not in argument:
            return arguments[at:]
    return []


def _from_operand(arguments: list[str]) -> list[str]:
    """Return `arguments` from the first that is neither an option nor an option's value."""
    skip = False
    for at, argument in enumerate(arguments):
        if skip:
            skip = False
        elif argument == "--":
            return arguments[at + 1 :]
        elif argument.startswith("-"):
            skip = argument in TAKES_VALUE
        else:
            return arguments[at:]
    return []


def _first_operand(arguments: list[str]) -> str:
    return next(iter(_from_operand(arguments)), "")


def _interpreted(command: str, arguments: list[str]) -> str:
    """Name the module after `-m`, the jar after `-jar`, otherwise the script."""
    operands = _from_operand(arguments)
    own = arguments[: len(arguments) - len(operands)]
    if command.startswith(("python", "pypy")) and "-m" in own and operands:
        return _script(operands[0].replace(".", "/"))
    if "-c" in own or "-e" in own or not operands or (command.endswith("sh") and any(option in _SHELL_TEXTS for option in own)):
        return command
    if command in ("deno", "bun") and operands[0] in ("run", "task") and len(operands) > 1:
        operands = _from_operand(operands[1:])
    return (_script(operands[0]) if operands else "") or command


def _image(arguments: list[str]) -> str:
    """Name the image that `docker run` runs: past options and their values, without registry, tag and digest."""
    if not arguments or arguments[0] not in ("run", "exec"):
        return ""
    skip = False
    for argument in arguments[1:]:
        if skip:
            skip = False
        elif argument.startswith("--"):
            skip = "=" not in argument and argument not in DOCKER_FLAGS
        elif argument.startswith("-"):
            skip = argument.strip("-itdP") != "" and len(argument) == len("-e")
        else:
            return argument.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return ""


def _package(spec: str) -> str:
    """Return a package's bare name: without scope, version, extras, and the address it comes from."""
    spec = spec.removeprefix("npm:").rstrip("/")
    if "://" in spec or spec.startswith("git+"):
        return spec.partition("#")[0].partition("?")[0].rpartition("/")[2].partition("@")[0].removesuffix(".git")
    if spec.startswith((".", "/")):
        return _script(spec)
    name = spec[1:].partition("/")[2] if spec.startswith("@") else spec
    for mark in "@=[<>~! ;":
        name = name.partition(mark)[0]
    return name.rpartition("/")[2]


def _script(path: str) -> str:
    """Return a file's name without its extension, or the name of the nearest folder above it that says something."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    if not parts:
        return ""
    stem = parts[-1]
    name, _, extension = stem.rpartition(".")
    if name and extension.isalnum() and len(extension) <= len("bundle"):
        stem = name
    if stem.lower() not in GENERIC:
        return stem
    return next((part for part in reversed(parts[:-1]) if part.lower() not in GENERIC), stem)
