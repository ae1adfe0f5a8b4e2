"""BLAKE2b as in `hashlib`, whose import takes 4 ms, because it opens OpenSSL for other digests."""

try:
    from _blake2 import blake2b
except ImportError:  # a Python that has it elsewhere
    from hashlib import blake2b

__all__ = ["blake2b"]
