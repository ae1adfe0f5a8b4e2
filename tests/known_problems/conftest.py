"""Cases that are too slow for `make test`: an SDK at both ends, and real timeouts."""

from tests.tiers import Tier, current_tier

collect_ignore = ["test_sdk.py"] if current_tier() is Tier.SAMPLE else []
