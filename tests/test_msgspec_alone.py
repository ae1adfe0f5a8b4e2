"""msgspec is imported with stand-ins for modules that nobody needs, and works like any other."""

import subprocess
import sys

from tests.deadlines import DEADLINE_S

USES = """
import sys
from mcpspy.msgspec_alone import import_msgspec

import_msgspec()
assert not {"platform", "textwrap", "typing_extensions"} & set(sys.modules)

import platform, textwrap, uuid
import msgspec

class Point(msgspec.Struct):
    "A point."
    x: int

assert platform.machine() and uuid.uuid1() != uuid.uuid1()
assert textwrap.dedent(" a") == "a"
assert msgspec.json.schema(Point)["$defs"]["Point"]["description"] == "A point."
"""


def test_what_was_left_out_is_there_for_whoever_wants_it() -> None:
    subprocess.run([sys.executable, "-c", USES], check=True, timeout=DEADLINE_S)
