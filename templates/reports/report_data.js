// The first script of report.html: its data, numbers as text, and the state. The state is the fragment of the
// address: #tp=4&fusion=NONE&view=margin&cell=64x4096.
const DATA = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// ---- the data --------------------------------------------------------------------------------

// "1.5  2" -> [1.5, NaN, 2], cached
const unpacked = new Map();
function numbers(owner, field) {
  if (owner === undefined || owner[field] === undefined) return null;
  let fields = unpacked.get(owner);
  if (!fields) unpacked.set(owner, fields = {});
  fields[field] ??= owner[field].split(" ").map((text) => text === "" ? NaN : Number(text));
  return fields[field];
}

function numberAt(owner, field, index) {
  const list = numbers(owner, field);
  return list === null ? NaN : list[index];
}

function blockData(block) { return [block.dtype, block.op, block.mode].join("."); }

// The mode is left out if it is unknown.
function wordsOfData(data) { return data.replace(/\.unknown$/, "").replaceAll(".", " "); }

function dataWords(block) { return wordsOfData(blockData(block)); }

// Whether the block's "tokens" are bytes.
function goesByBytes(block) { return block.op.endsWith(".by.bytes"); }

function cellIndex(block, h, t) { return h * block.tokens.length + t; }

// Whether the time of a strategy at this place of its list is interpolated.
function isInterpolated(owner, index) { return numbers(owner, "d")?.includes(index) ?? false; }

// The same of a time that is predicted from fewer nodes.
function isPredicted(owner, index) { return numbers(owner, "p")?.includes(index) ?? false; }

// One cell: its place, the choice, and the times of every strategy, the fastest first.
function cellOf(choice, h, t) {
  const { block, fusion } = choice, index = cellIndex(block, h, t);
  const best = fusion.best[index], rows = [];
  for (const [letter, owner] of Object.entries(fusion.rows)) {
    const time = numberAt(owner, "t", index);
    if (Number.isNaN(time)) continue;
    rows.push({ letter, time, low: numberAt(owner, "l", index), high: numberAt(owner, "h", index),
      bound: numberAt(owner, "b", index), strategy: DATA.strategies[letter], owner,
      interpolated: isInterpolated(owner, index), predicted: isPredicted(owner, index) });
  }
  rows.sort((a, b) => a.time - b.time || a.strategy.place - b.strategy.place);
  const least = Math.min(...rows.filter((row) => !row.strategy.never).map((row) => row.time));
  return { h, t, index, rows, least, best: best === "." ? null : best, hidden: block.hidden[h],
    tokens: block.tokens[t], second: fusion.second[index], margin: numberAt(fusion, "margin", index),
    confidence: numberAt(fusion, "confidence", index), expected: numberAt(fusion, "expected", index),
    worst: numberAt(fusion, "worst", index), state: fusion.states[index],
    old: fusion.old && fusion.old[index] !== "." ? fusion.old[index] : null,
    time: best === "." ? NaN : numberAt(fusion.rows[best], "t", index) };
}

const STATES = { c: "certain", t: "tie", u: "uncertain", ".": "" };

function isUncertain(cell) { return cell.state === "u"; }

// ---- the state -------------------------------------------------------------------------------

let state = {};

function readFragment() {
  const wanted = {};
  for (const part of location.hash.slice(1).split("&")) {
    const at = part.indexOf("=");
    if (at < 0) continue;
    try {
      wanted[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1));
    } catch { /* not a valid value */ }
  }
  return wanted;
}

function writeFragment() {
  const parts = Object.entries(state).filter(([, value]) => value !== "" && value !== undefined);
  history.replaceState(null, "", "#" + parts.map(([key, value]) =>
    key + "=" + encodeURIComponent(value)).join("&"));
}

const own = (list, value, fallback) => list.includes(value) ? value : fallback;
const distinct = (list) => [...new Set(list)];

// The values that can be chosen, and the chosen ones; the default is the first of each list.
function choicesOf(wanted) {
  const arch = DATA.archs.find((entry) => entry.name === wanted.arch) ?? DATA.archs[0];
  const tps = distinct(arch.blocks.map((block) => String(block.tp)));
  const tp = own(tps, wanted.tp, tps[0]);
  const datas = distinct(arch.blocks.map(blockData));
  const here = arch.blocks.filter((block) => String(block.tp) === tp).map(blockData);
  const data = own(datas, wanted.data, here[0]);
  const fusions = distinct(arch.blocks.flatMap((block) => block.fusions.map((fusion) => fusion.name)));
  const fusion = own(fusions, wanted.fusion, fusions[0]);
  return { arch, tps, tp, datas, data, fusions, fusion };
}

function setState(wanted) {
  const chosen = choicesOf(wanted);
  const { arch } = chosen;
  const block = arch.blocks.find((entry) =>
    String(entry.tp) === chosen.tp && blockData(entry) === chosen.data);
  const fusion = block?.fusions.find((entry) => entry.name === chosen.fusion);
  const all = arch.blocks.flatMap((entry) => entry.fusions);
  const views = Object.keys(VIEWS).filter((name) => !VIEWS[name].needs || all.some(VIEWS[name].needs));
  state = { arch: arch.name, tp: chosen.tp, fusion: chosen.fusion, data: chosen.data,
    view: own(views, wanted.view, "best"), cell: wanted.cell ?? "",
    scope: own(["choice", "all"], wanted.scope, "choice") };
  return { ...chosen, views, block, fusion, fusionName: chosen.fusion };
}

let choice;

// ---- numbers as text -------------------------------------------------------------------------

function percent(share, digits) {
  if (Number.isNaN(share)) return "";
  const value = 100 * share;
  const text = value.toFixed(digits ?? (Math.abs(value) < 10 ? 1 : 0));
  return text.replace(/^-(0\.?0*)$/, "$1") + "\u202f%";
}

// A number as in table.csv.
function exact(value) {
  if (Number.isNaN(value)) return "";
  if (Math.abs(value) >= 1e11 || (value !== 0 && Math.abs(value) < 5e-5)) return String(value);
  return value.toFixed(4);
}

// The decimals that give the smallest number four digits; with the same for all, points are aligned.
function decimalsFor(least) { return Math.min(4, Math.max(0, 3 - Math.floor(Math.log10(least)))); }

function bytesInWords(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (bytes >= 1024 && at < units.length - 1) { bytes /= 1024; at++; }
  return (Number.isInteger(bytes) ? String(bytes) : bytes.toFixed(1)) + " " + units[at];
}

// The exact number of bytes.
function exactBytes(bytes) {
  const words = bytesInWords(bytes);
  return bytes % 1024 === 0 && !words.includes(".") ? words : bytes + " B";
}
