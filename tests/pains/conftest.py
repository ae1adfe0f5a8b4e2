"""What is too slow for `make test`: scenes with an SDK at both ends, which wait for real timeouts."""

from tests.tiers import Tier, current_tier

collect_ignore = ["test_sdk.py"] if current_tier() is Tier.SAMPLE else []
