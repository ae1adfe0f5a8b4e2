"""Estimated tokens against two public tokenizers.

tokens.json has texts with their tokens in o200k_base and cl100k_base, counted once with gpt-tokenizer 4.0.0 (npm).
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.transcript.stats.tokens import estimated_tokens, weight

SAMPLES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "tokens.json").read_text(encoding="utf-8"))


def estimated(sample: dict[str, Any]) -> int:
    return estimated_tokens(sample["text"].encode())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["kind"])
def test_an_estimate_is_within_a_fifth_of_what_one_of_two_tokenizers_counts_or_between_them(sample: dict[str, Any]) -> None:
    low, high = sorted((sample["o200k_base"], sample["cl100k_base"]))
    assert 0.8 * low <= estimated(sample) <= 1.2 * high


@pytest.mark.parametrize("vocabulary", ["o200k_base", "cl100k_base"])
def test_tool_definitions_together_are_estimated_within_a_tenth(vocabulary: str) -> None:
    definitions = [sample for sample in SAMPLES if sample["kind"] == "definition"]
    counted = sum(definition[vocabulary] for definition in definitions)
    assert 0.9 * counted <= sum(map(estimated, definitions)) <= 1.1 * counted


def test_bytes_by_four_would_be_further_off() -> None:
    def error(sample: dict[str, Any], guess: float) -> float:
        return float(abs(guess / sample["o200k_base"] - 1))

    ours = sum(error(sample, estimated(sample)) for sample in SAMPLES)
    assert ours < 0.7 * sum(error(sample, len(sample["text"].encode()) / 4) for sample in SAMPLES)


def test_nothing_takes_no_tokens() -> None:
    assert estimated_tokens(b"") == 0


def test_indentation_is_cheap_however_deep_it_is() -> None:
    assert estimated_tokens(b" " * 40 + b"x") < 8


@given(st.binary(), st.binary())
def test_the_weight_of_two_texts_is_that_of_both_but_for_a_blank_at_the_seam(text: bytes, other: bytes) -> None:
    assert abs(weight(text + other) - weight(text) - weight(other)) <= 2 * 771
