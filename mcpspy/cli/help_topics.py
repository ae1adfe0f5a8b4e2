"""What `mcpspy help TOPIC` says of the topics that are no reference: each fits a screen of 24 lines and 80 columns.

Tests run every command in them. Refuses to explain what a page of docs/ does not.
"""

from typing import Final

CAPTURES: Final = """\
Captures: what client and server said, one file for each server and run.

They lie in ~/.mcpspy/captures, or in the folder `captures` of MCPSPY_HOME. The
commands that look take a WHAT:

  @              the newest recording: what one client said to all its servers
  @1             the one before
  weather        the newest capture with this label
  FILE, -        this file; standard input
  @:7, @:2..5    row 7 of it; rows 2 to 5

  mcpspy list                               what there is; what is incomplete
  mcpspy show weather:3                     row 3 whole
  mcpspy verify weather                     is it intact, and what is not there
  mcpspy show --since 1h                    what was alive in the last hour
  mcpspy prune --older-than 30d --dry-run   what would go; nothing goes unasked
  mcpspy prune --quota 2gb                    and no more than this from now on
  mcpspy export html weather -o page.html   to look at it in a browser

All that was forwarded is in the capture, also when mcpspy was killed. It is
JSON Lines: grep, jq and git diff read it (docs/capture.md). What others may not
see, others should not get: mcpspy help privacy.
"""

REPLAY: Final = """\
Replay: a capture in the place of one end.

As the server, for a client, a test or a bug report. What was never asked gets
an error that names the nearest recorded call (docs/mock.md):

  mcpspy mock weather                        on stdio, instead of its command
  mcpspy mock weather --listen 127.0.0.1:0   over HTTP
  mcpspy mock @ --listen 127.0.0.1:0         all servers of a run, and its model

As the client: does a server still say the same? (docs/replay.md)

  mcpspy replay weather --dry-run            what would be sent
  mcpspy replay weather -- ./server          exit status 1 if anything differs
  mcpspy replay weather:5 --set '$.arguments.city="Rome"' -- ./server
  mcpspy replay weather --until crash -- ./server   the fewest that crash it

As a test, which needs no server (docs/pytest.md):

  mcpspy export pytest weather -o test_weather.py

A replay is a capture too. The server that a capture names is neither started
nor asked before you said so: name it yourself, or add --yes.
"""

PRIVACY: Final = """\
Privacy: what mcpspy keeps, and what others get.

A capture holds all that was said: arguments, results, logs; and prompts, where
a model's API was recorded. It is a file of yours (mode 0600), and mcpspy sends
it to nobody: no telemetry, no look for updates. Taps, mocks and pages listen on
127.0.0.1 unless you say otherwise.

Before the disk these become pseudonyms, equal ones equal: header fields such as
Authorization and Cookie, session ids, secrets in URLs, in OAuth's bodies and in
the command. Of the environment names are kept. Payloads are not looked into.
No file and no variable switches that off; --redact none does.

  mcpspy export share weather -o bug.mcpspy   secrets in payloads go too
  mcpspy export share --verify bug.mcpspy     what slipped through
  mcpspy export markdown weather              a report, masked in the same way
  mcpspy prune --keep 10 --dry-run            what would be removed

Read what you share: mcpspy cannot know what is secret to you. docs/security.md
says what is defended against what, and docs/share.md what is not looked into.
"""

TEXTS: Final = {"captures": CAPTURES, "replay": REPLAY, "privacy": PRIVACY}
"""By topic."""
