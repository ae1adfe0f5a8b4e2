"""Compressed bodies, decoded: completely, and in bounded memory."""

import gzip
import sys
import tracemalloc
import zlib

import brotli  # type: ignore[import-untyped]  # it comes without types
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.wire import encodings as codings
from mcpspy.wire.encodings import MAX_DECODED_BYTES, MissingDecoderError, decode_body

COMPRESS = {b"gzip": gzip.compress, b"deflate": zlib.compress, b"br": brotli.compress, b"zstd": zstd.compress}


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@given(st.binary())
def test_compressed_data_is_read(data: bytes) -> None:
    assert decode_body(gzip.compress(data), b"gzip") == data
    assert decode_body(gzip.compress(data), b"X-GZip") == data
    assert decode_body(zlib.compress(data), b"deflate") == data
    assert decode_body(brotli.compress(data), b"br") == data
    assert decode_body(zstd.compress(data), b"zstd") == data
    assert decode_body(gzip.compress(zlib.compress(data)), b"deflate, identity, gzip") == data
    assert decode_body(data, b"identity") == decode_body(data, b"") == data


@given(st.binary(min_size=1))
def test_deflate_without_its_header_is_read_as_clients_do(data: bytes) -> None:
    packed = raw_deflate(data)
    assert decode_body(packed, b"deflate") == data


@given(st.lists(st.binary(max_size=20), min_size=1))
def test_all_members_of_gzip_are_read(members: list[bytes]) -> None:
    assert decode_body(b"".join(map(gzip.compress, members)), b"gzip") == b"".join(members)


def test_bytes_after_the_end_are_left_out() -> None:
    assert decode_body(gzip.compress(b"a") + b"\0\0junk", b"gzip") == b"a"
    assert decode_body(zlib.compress(b"a") + gzip.compress(b"b"), b"deflate") == b"a"


@given(st.binary(min_size=1, max_size=200), st.integers(0, 60))
def test_data_that_was_cut_short_is_read_as_far_as_it_goes(data: bytes, size: int) -> None:
    for coding, compress in COMPRESS.items():
        assert data.startswith(decode_body(compress(data)[:size], coding))


@given(st.binary() | st.binary().map(lambda data: gzip.compress(b"abc" * 100)[:20] + data), st.binary(max_size=8))
def test_arbitrary_bytes_raise_nothing_but_value_error(data: bytes, encoding: bytes) -> None:
    for coding in (b"gzip", b"deflate", b"br", b"zstd", b"gzip, deflate", encoding):
        try:
            decode_body(data, coding)
        except ValueError:
            continue


@pytest.mark.parametrize("coding", [b"snappy", b"gzip, lzma", b"\xff"])
def test_an_unknown_coding_is_named(coding: bytes) -> None:
    with pytest.raises(ValueError, match="no decoder for"):
        decode_body(b"x", coding)


def test_more_codings_than_anybody_sends_are_refused() -> None:
    with pytest.raises(ValueError, match="4 content codings"):
        decode_body(b"", b"gzip, gzip, gzip, gzip")


@pytest.mark.parametrize("coding", COMPRESS)
def test_a_bomb_is_refused_before_it_is_decoded(coding: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codings, "MAX_DECODED_BYTES", 1 << 20)
    bomb = COMPRESS[coding](b"\0" * (1 << 25))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="decodes to more than 1 MiB"):
            decode_body(bomb, coding)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("coding", [b"gzip", b"zstd"])
def test_a_bomb_in_two_members_is_refused_too(coding: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codings, "MAX_DECODED_BYTES", 1 << 20)
    with pytest.raises(ValueError, match="decodes to more"):
        decode_body(COMPRESS[coding](b"\0" * (1 << 19)) * 3, coding)


@pytest.mark.parametrize("coding", COMPRESS)
def test_data_at_the_limit_is_read(coding: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codings, "MAX_DECODED_BYTES", 1 << 20)
    assert decode_body(COMPRESS[coding](b"\0" * (1 << 20)), coding) == b"\0" * (1 << 20)


@given(st.lists(st.binary(max_size=20), min_size=1))
def test_all_frames_of_zstd_are_read(frames: list[bytes]) -> None:
    assert decode_body(b"".join(map(zstd.compress, frames)) + b"junk", b"zstd") == b"".join(frames)


@pytest.mark.parametrize(("coding", "modules"), [("br", ["brotli"]), ("zstd", ["compression", "backports"])])
def test_a_library_that_is_not_installed_is_named(coding: str, modules: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDecoderError) as raised:
        decode_body(b"x", f"gzip, {coding}".encode())
    assert raised.value.coding == coding


def test_the_limit_is_the_one_in_the_documentation() -> None:
    assert MAX_DECODED_BYTES == 64 << 20
