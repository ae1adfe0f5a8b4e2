// Positions of times on the axis. Idle time is folded, to leave room for the calls.

const IDLE_SHARE = 0.04; // a gap longer than this share of the whole is folded
const FOLDED_SHARE = 0.015; // to this share

function measured() {
  const spans = rows
    .filter((row) => row.kind !== "log")
    .map((row) => [row.at, row.at + (isPending(row) ? lasted(row) : (row.took ?? 0))])
    .sort((a, b) => a[0] - b[0]);
  const end = spans.reduce((last, span) => Math.max(last, span[1]), Math.max(1, data.end)); // the heading says how long it is
  if (spans.length) spans.push([end, end]);
  const gaps = [];
  let busy = 0;
  for (const [from, to] of spans) {
    if (from - busy > end * IDLE_SHARE) gaps.push([busy, from]);
    busy = Math.max(busy, to);
  }
  const folded = gaps.reduce((sum, [from, to]) => sum + to - from, 0);
  const active = end - folded + 1;
  const gapRoom = Math.min(FOLDED_SHARE, gaps.length ? 0.3 / gaps.length : 0);
  const scale = (1 - gapRoom * gaps.length) / active;
  // The position of a time, from 0 to 1.
  function place(at) {
    let left = at;
    let room = 0;
    for (const [from, to] of gaps) {
      if (at <= from) break;
      const within = Math.min(at, to) - from;
      left -= within;
      room += gapRoom * (within / (to - from));
    }
    return Math.min(1, left * scale + room);
  }
  return { end, gaps, place };
}

let clock = measured();
