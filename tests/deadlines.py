"""How long a live test waits for an event before it fails. No test sleeps: it waits for what it claims, this long at most."""

# Many times what a busy two-core machine needs, and well inside the timeout of pyproject.toml, so that the test fails
# with its own words before pytest ends it.
DEADLINE_S = 20.0
