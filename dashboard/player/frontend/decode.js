// The bytes from Python: header length, JSON header, aligned blocks (see encode.py).

const TYPES = { f4: Float32Array, f8: Float64Array, u1: Uint8Array };

function decode(bytes) {
  const buffer = bytes.slice().buffer; // a copy, so that the blocks are aligned
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const body = Math.ceil((4 + length) / 8) * 8;
  const opened = new Map();
  const open = (value) => {
    if (!value || !value.block) return value;
    const [offset, count, type] = value.block;
    const name = `${offset}:${count}:${type}`;
    if (!opened.has(name)) opened.set(name, new TYPES[type](buffer, body + offset, count));
    return opened.get(name);
  };
  for (const panel of header.panels) {
    panel.values = open(panel.values);
    for (const curve of panel.curves) {
      // Equal numbers share a block, so the block's name tells whether two panels draw the same.
      curve.same = { x: JSON.stringify(curve.x), y: JSON.stringify(curve.y) };
      for (const part of ["x", "y", "lower", "upper"]) curve[part] = open(curve[part]);
      curve.last = lastPoint(curve);
      cutPadding(curve);
    }
  }
  for (const panel of header.panels) steadyRange(panel);
  for (const row of header.images) for (const image of row) image.frames = open(image.frames);
  if (header.stage) {
    for (const part of ["thumbnails", "owners"]) header.stage[part] = open(header.stage[part]);
    for (const side of header.stage.sides) {
      side.places = open(side.places);
      for (const part of ["message", "components"]) side[part].frames = open(side[part].frames);
    }
  }
  return header;
}

// The last index at which the curve has a value; -1 if none.
function lastPoint(curve) {
  if (curve.frames) return curve.x.length - 1;
  for (let k = curve.y.length - 1; k >= 0; k -= 1) if (Number.isFinite(curve.y[k])) return k;
  return -1;
}

// Values padded with NaN after the end would still stretch the x axis.
function cutPadding(curve) {
  if (curve.frames || curve.last < 0 || curve.last === curve.y.length - 1) return;
  for (const part of ["x", "y", "lower", "upper"]) {
    if (curve[part]) curve[part] = curve[part].slice(0, curve.last + 1);
  }
}

// Curves that change with the round need one y axis for all rounds, or it would jump in play.
function steadyRange(panel) {
  if (panel.yRange || !panel.curves.some((curve) => curve.frames)) return;
  let low = panel.kind === "bars" && !panel.logY ? 0 : Infinity;
  let high = panel.kind === "bars" && !panel.logY ? 0 : -Infinity;
  for (const curve of panel.curves) {
    for (const value of curve.y) {
      if (!Number.isFinite(value) || (panel.logY && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (!(low < high)) return;
  const spread = 0.05 * (high - low);
  const factor = (high / low) ** 0.05;
  if (panel.logY) panel.yRange = [low / factor, high * factor];
  else panel.yRange = [low === 0 ? 0 : low - spread, high === 0 ? 0 : high + spread];
}

// Whether the x values simply count the rounds.
function countsRounds(curve) {
  for (let k = 0; k < curve.x.length; k += 1) if (curve.x[k] !== k) return false;
  return true;
}

// The y values at a round, for a curve that has a row per round.
function rowOf(curve, round) {
  if (!curve.frames) return curve.y;
  const points = curve.y.length / curve.frames;
  return curve.y.subarray(round * points, (round + 1) * points);
}
