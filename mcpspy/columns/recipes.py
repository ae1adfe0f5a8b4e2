"""Questions that users of many captures ask, as SQL over the tables of columns.

They are standard SQL as far as it goes: DuckDB and Spark give equal answers. Percentiles are by nearest rank, as in
`transcript.stats.statistics`, and of answered calls.
`{date}` stands for a date such as `2026-11-20`.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Recipe(NamedTuple):
    """A question in a few words, and its SQL."""

    about: str
    sql: str

    @property
    def needs_date(self) -> bool:
        """True if it is about the time before and after a date."""
        return "{date}" in self.sql


RECIPES: Final = {
    "slowest-tools": Recipe(
        "the slowest tools of each week",
        """
        SELECT CAST(date_trunc('week', calls.time) AS DATE) AS week, captures.server, calls.target AS tool, count(*) AS calls,
               percentile_disc(0.5) WITHIN GROUP (ORDER BY calls.duration_ns) / 1e6 AS p50_ms,
               percentile_disc(0.95) WITHIN GROUP (ORDER BY calls.duration_ns) / 1e6 AS p95_ms,
               max(calls.duration_ns) / 1e6 AS max_ms
        FROM calls JOIN captures ON captures.capture_id = calls.capture_id
        WHERE calls.method = 'tools/call' AND calls.duration_ns IS NOT NULL AND calls.response_bytes IS NOT NULL
        GROUP BY CAST(date_trunc('week', calls.time) AS DATE), captures.server, calls.target
        ORDER BY week DESC, p95_ms DESC, server, tool
        """,
    ),
    "error-rate": Recipe(
        "how often calls fail, by the version of the server",
        """
        SELECT captures.server, captures.server_version, count(*) AS calls,
               count(*) FILTER (WHERE calls.outcome IN ('error', 'tool error', 'http error', 'unanswered')) AS failed,
               count(*) FILTER (WHERE calls.outcome IN ('error', 'tool error', 'http error', 'unanswered')) * 100.0 / count(*)
                   AS percent,
               min(calls.time) AS first_seen
        FROM calls JOIN captures ON captures.capture_id = calls.capture_id
        WHERE calls.sender = 'client' AND calls.outcome NOT IN ('pending', 'probe')
        GROUP BY captures.server, captures.server_version
        ORDER BY percent DESC, calls DESC, server, server_version NULLS LAST
        """,
    ),
    "unused-tools": Recipe(
        "tools that are offered and never called, with their tokens",
        """
        WITH named AS (
            SELECT capture_id, name AS tool, tokens, 1 AS is_offer FROM definitions WHERE kind = 'tool'
            UNION ALL
            SELECT DISTINCT capture_id, target, NULL, 0 FROM calls WHERE method = 'tools/call'
        )
        SELECT captures.server, named.tool, count(DISTINCT named.capture_id) AS captures, max(named.tokens) AS tokens
        FROM named JOIN captures ON captures.capture_id = named.capture_id
        GROUP BY captures.server, named.tool
        HAVING min(named.is_offer) = 1
        ORDER BY tokens DESC, server, tool
        """,
    ),
    "token-cost": Recipe(
        "the tokens of each agent, by models' APIs and tools' results",
        """
        SELECT client AS agent, 'model' AS source, coalesce(response_model, model) AS name, count(*) AS calls,
               sum(input_tokens) AS input_tokens, sum(cached_tokens) AS cached_tokens, sum(output_tokens) AS output_tokens
        FROM model_calls
        GROUP BY client, coalesce(response_model, model)
        UNION ALL
        SELECT calls.client, 'tool results', captures.server, count(*), sum(calls.result_tokens), NULL, NULL
        FROM calls JOIN captures ON captures.capture_id = calls.capture_id
        WHERE calls.result_tokens IS NOT NULL
        GROUP BY calls.client, captures.server
        ORDER BY input_tokens DESC NULLS LAST, agent, source, name
        """,
    ),
    "drift": Recipe(
        "definitions that servers changed, and when",
        """
        WITH versions AS (
            SELECT captures.server, definitions.kind, definitions.name, definitions.sha256, min(definitions.time) AS first_seen,
                   max(definitions.time) AS last_seen, count(DISTINCT definitions.capture_id) AS captures,
                   max(definitions.tokens) AS tokens
            FROM definitions JOIN captures ON captures.capture_id = definitions.capture_id
            GROUP BY captures.server, definitions.kind, definitions.name, definitions.sha256
        ), counted AS (
            SELECT *, count(*) OVER (PARTITION BY server, kind, name) AS versions FROM versions
        )
        SELECT server, kind, name, first_seen, last_seen, captures, tokens, substr(sha256, 1, 12) AS sha256
        FROM counted
        WHERE versions > 1
        ORDER BY server, kind, name, first_seen, sha256
        """,
    ),
    "before-after": Recipe(
        "the 99th percentile of each tool's time before and after --date",
        """
        SELECT captures.server, calls.target AS tool,
               count(*) FILTER (WHERE calls.time < TIMESTAMP '{date} 00:00:00') AS calls_before,
               count(*) FILTER (WHERE calls.time >= TIMESTAMP '{date} 00:00:00') AS calls_after,
               percentile_disc(0.99) WITHIN GROUP (
                   ORDER BY CASE WHEN calls.time < TIMESTAMP '{date} 00:00:00' THEN calls.duration_ns END) / 1e6 AS p99_before_ms,
               percentile_disc(0.99) WITHIN GROUP (
                   ORDER BY CASE WHEN calls.time >= TIMESTAMP '{date} 00:00:00' THEN calls.duration_ns END) / 1e6 AS p99_after_ms
        FROM calls JOIN captures ON captures.capture_id = calls.capture_id
        WHERE calls.method = 'tools/call' AND calls.duration_ns IS NOT NULL AND calls.response_bytes IS NOT NULL
        GROUP BY captures.server, calls.target
        ORDER BY server, tool
        """,
    ),
}
"""By name, in the order in which they are listed."""
