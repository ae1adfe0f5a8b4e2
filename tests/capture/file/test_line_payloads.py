"""Payloads of records are read again as they were, while the capture is still being read too."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.file.format import frame_line, header_line
from mcpspy.capture.file.line_payloads import LinePayloads
from mcpspy.capture.file.reader import Reader, sound_record
from mcpspy.records import Frame, Header

HEADER = header_line(
    Header(capture_id="1", wall_ns=0, monotonic_ns=0, pid=1, tapped={"transport": "stdio", "argv": ["server"]})
)


@given(st.lists(st.tuples(st.binary(max_size=20), st.integers(0, 400), st.booleans()), min_size=1, max_size=400))
def test_what_was_read_can_be_read_again_while_its_block_grows(steps: list[tuple[bytes, int, bool]]) -> None:
    lines = [frame_line(number, Frame(0, number, number, data, number=number)) for number, (data, _, _) in enumerate(steps, 1)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "growing.mcpspy"
        path.write_bytes(HEADER + b"".join(lines))
        payloads = LinePayloads(os.open(path, os.O_RDONLY), str(path), sound_record)
        reader = Reader(str(path), payloads)
        reader.feed(HEADER)
        for count, (line, (_, back, whole)) in enumerate(zip(lines, steps, strict=True), 1):
            reader.feed(line)
            number = max(1, count - back)
            data = steps[number - 1][0]
            if whole:
                record = payloads.record(number)
                assert isinstance(record, Frame)
                assert record.data == data
            else:
                assert payloads.payload(number) == data
