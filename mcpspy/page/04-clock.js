// Positions of times on the axis. Idle time is folded, to leave room for the calls.

const IDLE_SHARE = 0.04; // a gap longer than this share of the whole is folded
const FOLDED_SHARE = 0.015; // to this share

function measured() {
  const some = rows.filter((row) => row.kind !== "log");
  if (some.some((row, at) => at && row.at < some[at - 1].at)) some.sort((a, b) => a.at - b.at);
  const until = (row) => row.at + (isPending(row) ? lasted(row) : (row.took ?? 0));
  const end = some.reduce((last, row) => Math.max(last, until(row)), Math.max(1, data.end)); // the heading says how long it is
  const gaps = [];
  let busy = 0;
  const idle = (to) => to - busy > end * IDLE_SHARE && gaps.push([busy, to]);
  for (const row of some) {
    idle(row.at);
    busy = Math.max(busy, until(row));
  }
  if (some.length) idle(end);
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
