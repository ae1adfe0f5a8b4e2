"""Compressed streams, decoded as they come: the same as the whole, wherever they are cut, and in bounded memory."""

import gzip
import zlib
from itertools import pairwise

import brotli  # type: ignore[import-untyped]  # it comes without types
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire import encodings as unpacking
from mcpspy.wire.encodings import MAX_DECODED_BYTES, Decompressor


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKED = {
    "gzip": gzip.compress, "deflate": zlib.compress, "Deflate": raw_deflate, "br": brotli.compress, "zstd": zstd.compress,
    "deflate, gzip": lambda data: gzip.compress(zlib.compress(data)), "identity": lambda data: data,
}  # fmt: skip


def unpacked(encoding: str, data: bytes, cuts: list[int]) -> tuple[bytes, str]:
    machine = Decompressor(encoding)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    decoded = b"".join(machine.feed(data[begin:end]) for begin, end in pairwise(edges))
    return decoded + machine.close(), machine.flaw


@pytest.mark.parametrize("encoding", PACKED)
@given(data=st.binary(max_size=300), cuts=st.lists(st.integers(0, 400), max_size=6))
def test_compressed_data_is_read_wherever_it_is_cut(encoding: str, data: bytes, cuts: list[int]) -> None:
    assert unpacked(encoding, PACKED[encoding](data), cuts) == (data, "")


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=4), st.lists(st.integers(0, 200), max_size=4))
def test_all_members_and_frames_are_read(members: list[bytes], cuts: list[int]) -> None:
    assert unpacked("gzip", b"".join(map(gzip.compress, members)), cuts) == (b"".join(members), "")
    assert unpacked("zstd", b"".join(map(zstd.compress, members)), cuts) == (b"".join(members), "")


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_data_is_decoded_as_soon_as_it_was_flushed(encoding: str) -> None:
    packer = zlib.compressobj(wbits=31 if encoding == "gzip" else zlib.MAX_WBITS)
    machine = Decompressor(encoding)
    for event in (b"data: 1\n\n", b"data: 2\n\n"):
        assert machine.feed(packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)) == event


@given(st.sampled_from(list(PACKED)), st.binary(), st.binary(max_size=4), st.lists(st.integers(0, 100), max_size=4))
def test_arbitrary_bytes_raise_nothing(encoding: str, data: bytes, tail: bytes, cuts: list[int]) -> None:
    unpacked(encoding, data, cuts)
    unpacked(encoding, PACKED[encoding](data) + tail, cuts)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_decoding_stops_at_the_limit(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MAX_DECODED_BYTES", 1 << 16)
    decoded, flaw = unpacked(encoding, PACKED[encoding](bytes(1 << 20)), [])
    assert len(decoded) <= 1 << 16 < MAX_DECODED_BYTES
    assert flaw.startswith("decodes to more than")
