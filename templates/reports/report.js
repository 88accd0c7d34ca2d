// The script of report.html: one choice of table, seen in several ways, its times, and what the tables answer
// for a shape. The state is the fragment of the address: #tp=4&fusion=NONE&view=margin&cell=64x4096.
const DATA = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// element("td", { className: "x" }, child...)
function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// ---- the data --------------------------------------------------------------------------------

// "1.5  2" -> [1.5, NaN, 2], once
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

// The mode is left out where the rows do not say it.
function wordsOfData(data) { return data.replace(/\.unknown$/, "").replaceAll(".", " "); }

function dataWords(block) { return wordsOfData(blockData(block)); }

// Whether its "tokens" are bytes.
function goesByBytes(block) { return block.op.endsWith(".by.bytes"); }

function cellIndex(block, h, t) { return h * block.tokens.length + t; }

// One cell: its place, the choice, and every strategy's times, the fastest first.
function cellOf(choice, h, t) {
  const { block, fusion } = choice, index = cellIndex(block, h, t);
  const best = fusion.best[index], rows = [];
  for (const [letter, owner] of Object.entries(fusion.rows)) {
    const time = numberAt(owner, "t", index);
    if (Number.isNaN(time)) continue;
    rows.push({ letter, time, low: numberAt(owner, "l", index), high: numberAt(owner, "h", index),
      bound: numberAt(owner, "b", index), strategy: DATA.strategies[letter] });
  }
  rows.sort((a, b) => a.time - b.time || a.strategy.place - b.strategy.place);
  return { h, t, index, rows, best: best === "." ? null : best, hidden: block.hidden[h],
    tokens: block.tokens[t], second: fusion.second[index], margin: numberAt(fusion, "margin", index),
    confidence: numberAt(fusion, "confidence", index), regret: numberAt(fusion, "regret", index),
    old: fusion.old && fusion.old[index] !== "." ? fusion.old[index] : null,
    time: best === "." ? NaN : numberAt(fusion.rows[best], "t", index) };
}

function isDoubtful(arch, cell) {
  if (cell.best === null) return false;
  return Number.isNaN(cell.confidence) ? cell.margin < arch.margin : cell.confidence < arch.confidence;
}

// ---- the state -------------------------------------------------------------------------------

let state = {};

function readFragment() {
  const wanted = {};
  for (const part of location.hash.slice(1).split("&")) {
    const at = part.indexOf("=");
    if (at < 0) continue;
    try {
      wanted[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1));
    } catch { /* no value of ours */ }
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

// What can be chosen, given what was; each list begins with what is taken where nothing was.
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

// ---- numbers in words ------------------------------------------------------------------------

function percent(share, digits) {
  if (Number.isNaN(share)) return "";
  const value = 100 * share;
  return value.toFixed(digits ?? (Math.abs(value) < 10 ? 1 : 0)) + "\u202f%";
}

// As table.csv has it.
function exact(value) {
  if (Number.isNaN(value)) return "";
  if (Math.abs(value) >= 1e11 || (value !== 0 && Math.abs(value) < 5e-5)) return String(value);
  return value.toFixed(4);
}

// Four digits of the smallest of them, so that points stand below each other.
function decimalsFor(least) { return Math.min(4, Math.max(0, 3 - Math.floor(Math.log10(least)))); }

function bytesInWords(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (bytes >= 1024 && at < units.length - 1) { bytes /= 1024; at++; }
  return (Number.isInteger(bytes) ? String(bytes) : bytes.toFixed(1)) + " " + units[at];
}

// To the byte.
function exactBytes(bytes) {
  const words = bytesInWords(bytes);
  return bytes % 1024 === 0 && !words.includes(".") ? words : bytes + " B";
}

// ---- views: what the cells of the chosen table show --------------------------------------------

function luminance(colour) {
  const linear = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function mix(scale, share) {
  const place = Math.max(0, Math.min(1, share)) * (scale.length - 1);
  const first = Math.min(Math.floor(place), scale.length - 2), part = place - first;
  return "#" + [1, 3, 5].map((at) => {
    const [a, b] = [scale[first], scale[first + 1]].map((colour) => parseInt(colour.slice(at, at + 2), 16));
    return Math.round(a + (b - a) * part).toString(16).padStart(2, "0");
  }).join("");
}

// `value` of a cell (NaN: none), its text, and where it lies on the scale from `low` to `high`. `needs`: what
// a fusion must have.
const VIEWS = {
  best: { title: "the best strategy" },
  time: { title: "its time (µs)", scale: "time", logarithmic: true, value: (cell) => cell.time,
    text: (value) => value >= 1000 ? value.toFixed(0) : value.toPrecision(3),
    words: "Time of the best strategy, in µs, on a logarithmic scale" },
  margin: { title: "margin over the next", scale: "doubt", low: 0, high: 0.2, value: (cell) => cell.margin,
    text: percent, words: "How much longer the runner-up takes" },
  confidence: { title: "how sure", needs: (fusion) => fusion.confidence, scale: "doubt", low: 0.5, high: 1,
    value: (cell) => cell.confidence, text: percent, words: "How likely the choice is to be right" },
  regret: { title: "what it could lose", needs: (fusion) => fusion.regret, scale: "loss", low: 0, high: 0.2,
    value: (cell) => cell.regret, text: percent,
    words: "The most that the choice can lose if the medians lie anywhere in their intervals" },
  bound: { title: "share of the bound", scale: "sequence",
    needs: (fusion) => Object.values(fusion.rows).some((row) => row.b), low: 0, high: 1,
    value: (cell) => cell.best === null ? NaN
      : cell.rows.find((row) => row.letter === cell.best).bound / cell.time,
    text: (value) => percent(value, 0),
    words: "The part of the best time that memory and links need at least" },
  incumbent: { title: "what the incumbent loses", needs: (fusion) => fusion.old, scale: "loss", low: 0,
    high: 0.2, value: incumbentLoss, text: percent,
    words: "How much longer the incumbent's choice takes than the best" },
};

function incumbentLoss(cell) {
  const row = cell.rows.find((entry) => entry.letter === cell.old);
  return row && cell.best !== null ? row.time / cell.time - 1 : NaN;
}

function gridOf() {
  return byId(`arch=${state.arch}&tp=${state.tp}&fusion=${state.fusion}&data=${state.data}`);
}

// Calls each(td, h, t) for every cell of a table of the page.
function eachCell(table, each) {
  const rows = table.tBodies[0].rows;
  for (let r = 0; r < rows.length; r++) {
    const cells = rows[r].cells;
    for (let c = 1; c < cells.length; c++) each(cells[c], rows.length - 1 - r, c - 1);
  }
}

function limitsOf(view, cells) {
  if (view.low !== undefined) return [view.low, view.high];
  const values = cells.map(view.value).filter((value) => value > 0);
  const low = Math.min(...values), high = Math.max(...values);
  return [low, high > low ? high : 2 * low];
}

function showView(table) {
  const view = VIEWS[state.view], { fusion, arch } = choice;
  const cells = [];
  eachCell(table, (td, h, t) => cells.push({ td, cell: cellOf(choice, h, t) }));
  const [low, high] = view.scale ? limitsOf(view, cells.map((entry) => entry.cell)) : [0, 1];
  const place = view.logarithmic ? (value) => Math.log(value / low) / Math.log(high / low)
    : (value) => (value - low) / (high - low);
  for (const { td, cell } of cells) {
    const changed = fusion.old && cell.old !== cell.best ? " differs" : "";
    const value = view.scale ? view.value(cell) : NaN;
    const strategy = cell.best !== null ? DATA.strategies[cell.best] : null;
    if (!view.scale && strategy) {
      td.className = "s" + strategy.place + changed;
      td.textContent = strategy.mark + (isDoubtful(arch, cell) ? "?" : "");
      td.removeAttribute("style");
      continue;
    }
    td.className = (Number.isNaN(value) ? "none" : "") + changed;
    td.textContent = Number.isNaN(value) ? "–" : view.text(value);
    const colour = Number.isNaN(value) ? null : mix(DATA.scales[view.scale], place(value));
    td.style.background = colour ?? "";
    td.style.color = colour === null ? "" : luminance(colour) > 0.179 ? "#000" : "#fff";
  }
  if (view.scale) showScale(view, low, high);
  else showLegend(fusion);
}

// The names of the strategies that are best in this table, or that the incumbent has in it.
function showLegend(fusion) {
  const letters = distinct([...fusion.best, ...(fusion.old ?? "")]).filter((letter) => letter !== ".")
    .sort((a, b) => DATA.strategies[a].place - DATA.strategies[b].place);
  byId("scale").replaceChildren(element("ul", { className: "legend" },
    ...letters.map((letter) => element("li", {}, key(letter), " " + nameOf(letter)))));
}

function showScale(view, low, high) {
  const scale = byId("scale");
  scale.replaceChildren();
  const ramp = element("span", { className: "ramp" });
  ramp.style.background = `linear-gradient(to right, ${DATA.scales[view.scale].join(", ")})`;
  const open = view.low !== undefined && high !== 1 ? " and more" : "";
  scale.append(view.words + ": ", view.text(low), ramp, view.text(high) + open);
}

// ---- the details of a cell -------------------------------------------------------------------

function key(letter) {
  const strategy = DATA.strategies[letter];
  return element("span", { className: "key s" + strategy.place, title: strategy.help }, strategy.mark);
}

const nameOf = (letter) => DATA.strategies[letter]?.name ?? "";

function sureness(share) {
  return share > 0.9994 ? "more than " + percent(0.999, 1) : percent(share, 1);
}

function verdict(cell) {
  if (cell.best === null) return "Nothing that may win was measured here.";
  const words = [`${nameOf(cell.best)} is best.`];
  if (cell.second !== ".") words.push(`${nameOf(cell.second)} takes ${percent(cell.margin)} longer.`);
  else words.push("No other was measured.");
  if (!Number.isNaN(cell.confidence)) {
    words.push(`The choice is ${sureness(cell.confidence)} likely to be right.`);
  }
  if (cell.regret > 0) words.push(`It can lose ${percent(cell.regret)} at most.`);
  if (isDoubtful(choice.arch, cell)) words.push("It is in doubt.");
  const loss = incumbentLoss(cell);
  if (cell.old !== null && cell.old !== cell.best) {
    words.push(`The incumbent, ${nameOf(cell.old)}, ` +
      (Number.isNaN(loss) ? "was not measured here." : `takes ${percent(loss)} longer.`));
  } else if (choice.fusion.old && cell.old === null) {
    words.push("The incumbent has no choice here.");
  }
  return words.join(" ");
}

// What choosing this row could lose, at most, as the table says it of the winner.
function regretOf(rows, row) {
  const others = rows.filter((other) => other !== row && !other.strategy.never).map((other) => other.low);
  if (others.length === 0 || others.some(Number.isNaN) || Number.isNaN(row.high)) return NaN;
  return Math.max(0, row.high / Math.min(...others) - 1);
}

function bar(row, longest) {
  const box = element("div", { className: "bar" });
  const fill = element("div", { className: "s" + row.strategy.place });
  fill.style.width = 100 * row.time / longest + "%";
  box.append(fill);
  if (!Number.isNaN(row.low)) {
    const interval = element("div", { className: "interval" });
    interval.style.left = 100 * row.low / longest + "%";
    interval.style.width = 100 * (row.high - row.low) / longest + "%";
    box.append(interval);
  }
  return box;
}

function detailsTable(cell) {
  const longest = Math.max(...cell.rows.map((row) => Number.isNaN(row.high) ? row.time : row.high));
  const digits = decimalsFor(cell.rows[0].time);
  const has = { interval: cell.rows.some((row) => !Number.isNaN(row.low)),
    bound: cell.rows.some((row) => !Number.isNaN(row.bound)) };
  const columns = [["strategy"], [""], ["time (µs)", "number"]];
  if (has.interval) columns.push(["95 % interval", "number"]);
  columns.push(["longer than the best", "number"]);
  if (has.interval) columns.push(["could lose", "number"]);
  if (has.bound) columns.push(["share of bound", "number"]);
  const head = element("tr", {}, ...columns.map(([title, className]) =>
    element("th", { scope: "col", className: className ?? "" }, title)));
  const rows = cell.rows.map((row) => {
    const number = (text) => element("td", { className: "number" }, text);
    const tr = element("tr", {}, element("td", {}, key(row.letter), " " + row.strategy.name +
      (row.strategy.never ? " (never chosen)" : row.letter === cell.old ? " (incumbent)" : "")),
      element("td", {}, bar(row, longest)), number(row.time.toFixed(digits)));
    if (has.interval) {
      tr.append(number(Number.isNaN(row.low) ? ""
        : `${row.low.toFixed(digits)} to ${row.high.toFixed(digits)}`));
    }
    tr.append(number(row.letter === cell.best ? "best" : percent(row.time / cell.time - 1)));
    const regret = row.letter === cell.best ? cell.regret : regretOf(cell.rows, row);
    if (has.interval) tr.append(number(percent(regret)));
    if (has.bound) tr.append(number(percent(row.bound / row.time, 0)));
    return tr;
  });
  return element("div", { className: "table" },
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

function showDetails(h, t) {
  const { block } = choice, cell = cellOf(choice, h, t);
  const title = goesByBytes(block) ? `${exactBytes(cell.tokens)}, ${dataWords(block)}`
    : `${cell.tokens} tokens × hidden size ${cell.hidden}, a message of ` +
      bytesInWords(cell.hidden * cell.tokens * block.bytes);
  byId("details").replaceChildren(
    element("h3", {}, title),
    element("p", {}, verdict(cell)), cell.rows.length > 0 ? detailsTable(cell) : "");
}

// ---- moving in the table ---------------------------------------------------------------------

let current = null; // the cell that was chosen, { h, t }

function tdAt(table, h, t) {
  const rows = table?.tBodies[0].rows;
  return rows?.[rows.length - 1 - h]?.cells[t + 1];
}

function placeOf(td) {
  const table = td.closest("table");
  return { h: table.tBodies[0].rows.length - td.parentNode.rowIndex, t: td.cellIndex - 1 };
}

function select(h, t, focus) {
  const table = gridOf()?.querySelector("table.new");
  table?.querySelectorAll(".current").forEach((td) => {
    td.classList.remove("current");
    td.tabIndex = -1;
  });
  current = { h, t };
  const td = tdAt(table, h, t);
  if (!td) return;
  td.classList.add("current");
  td.tabIndex = 0;
  if (focus) td.focus();
  state.cell = `${choice.block.tokens[t]}x${choice.block.hidden[h]}`;
  showDetails(h, t);
}

function cellUnder(event) {
  return choice.fusion ? event.target.closest?.(".grid.chosen .cells td") : null;
}

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, 0], ArrowDown: [-1, 0] };

function onKey(event) {
  const td = cellUnder(event);
  if (!td) return;
  const { h, t } = placeOf(td), { block } = choice;
  let place = null;
  if (MOVES[event.key]) place = { h: h + MOVES[event.key][0], t: t + MOVES[event.key][1] };
  if (event.key === "Home") place = { h, t: 0 };
  if (event.key === "End") place = { h, t: block.tokens.length - 1 };
  if (!place) return;
  event.preventDefault();
  if (!block.hidden[place.h] || !block.tokens[place.t]) return;
  select(place.h, place.t, true);
  writeFragment();
}

function listen() {
  const tables = byId("tables");
  tables.addEventListener("mouseover", (event) => {
    const td = cellUnder(event);
    if (td) showDetails(placeOf(td).h, placeOf(td).t);
  });
  tables.addEventListener("mouseleave", () => {
    if (current && choice.fusion) showDetails(current.h, current.t);
  });
  tables.addEventListener("click", (event) => {
    const td = cellUnder(event);
    if (!td) return;
    select(placeOf(td).h, placeOf(td).t, td.closest("table").classList.contains("new"));
    writeFragment();
  });
  tables.addEventListener("focusin", (event) => {
    const td = cellUnder(event);
    if (td && td.tabIndex === 0) select(placeOf(td).h, placeOf(td).t, false);
  });
  tables.addEventListener("keydown", onKey);
}

// ---- asking for a shape ----------------------------------------------------------------------

// The place of the first border that is not below `size`, as the C header has it.
function placeByBorders(borders, size) {
  let place = 0;
  while (size > borders[place]) place++;
  return place;
}

function rangeInWords(borders, place) {
  const from = place === 0 ? 1 : borders[place - 1] + 1;
  if (place < borders.length - 1) return `${from} to ${borders[place]}`;
  return from === 1 ? "any" : `${from} and more`;
}

function axisWords(what, size, values, borders, place) {
  if (values[place] === size) return `${what} ${size}: measured.`;
  return `${what} ${size}: ${values[place]} is the nearest that was measured, as a ratio ` +
    `(it answers for ${rangeInWords(borders, place)}).`;
}

// What allreduce_table.h answers, and why.
function askHeader(header, ask) {
  const { tp, hidden, tokens, fusion } = ask;
  const answer = { file: "allreduce_table.h", letter: header.fallback, why: "" };
  const world = header.worlds.find((entry) => entry.tp === tp);
  const otherwise = `the fallback, ${nameOf(header.fallback)}, is taken`;
  if (!world) return { ...answer, why: `TP ${tp} was not measured: ${otherwise}.` };
  if (!world.fusions[fusion]) {
    return { ...answer, why: `${fusion} was not measured for TP ${tp}: ${otherwise}.` };
  }
  const h = placeByBorders(world.hidden_borders, hidden), t = placeByBorders(world.token_borders, tokens);
  const letter = world.fusions[fusion][h * world.tokens.length + t];
  const why = axisWords("Tokens", tokens, world.tokens, world.token_borders, t) + " " +
    axisWords("Hidden size", hidden, world.hidden, world.hidden_borders, h);
  const cell = { hidden: world.hidden[h], tokens: world.tokens[t], mode: world.mode };
  if (letter === ".") return { ...answer, cell, why: `${why} That cell has no time: ${otherwise}.` };
  return { ...answer, letter, cell, why };
}

const floorLog2 = (value) => 31 - Math.clz32(value);

// Its tables are indexed by the floor of log2; what lies outside has the fallback.
function askTrtllm(table, ask) {
  const answer = { file: "TensorRT-LLM's table", letter: table.fallback };
  const fusion = table.fusions.indexOf(ask.fusion);
  const at = (values, size) => floorLog2(size) - floorLog2(values[0]);
  const p = at(table.tp, ask.tp), h = at(table.hidden, ask.hidden), t = at(table.tokens, ask.tokens);
  const inside = (values, place) => place >= 0 && place < values.length;
  if (fusion < 0 || !inside(table.tp, p) || !inside(table.hidden, h) || !inside(table.tokens, t)) {
    return { ...answer,
      why: `That lies outside of its table: the fallback, ${nameOf(table.fallback)}, is taken.` };
  }
  const index = ((p * table.fusions.length + fusion) * table.hidden.length + h) * table.tokens.length + t;
  const rounded = [["TP", ask.tp, table.tp[p]], ["tokens", ask.tokens, table.tokens[t]],
    ["hidden size", ask.hidden, table.hidden[h]]].filter(([, asked, read]) => asked !== read)
    .map(([what, asked, read]) => `${what} ${asked} reads ${read}`);
  const why = rounded.length > 0 ? "It rounds down to a power of two: " + rounded.join(", ") + "."
    : "All three stand in its table.";
  return { ...answer, letter: table.cells[index], why };
}

function answerLine(answer) {
  const line = element("p", {}, answer.file + " answers ", key(answer.letter), " ",
    element("strong", {}, nameOf(answer.letter)), ". " + answer.why);
  line.dataset.file = answer.file;
  line.dataset.strategy = nameOf(answer.letter);
  return line;
}

// Says what the tables answer, and shows the cell that does.
function answerAsk(ask) {
  const out = byId("answer"), { arch } = choice;
  const whole = (value) => Number.isInteger(value) && value >= 1 && value <= 2147483647;
  if (![ask.tp, ask.tokens, ask.hidden].every(whole)) {
    out.replaceChildren(element("p", { className: "missing" },
      "TP size, tokens and hidden size are whole numbers from 1 to 2147483647."));
    return;
  }
  const answers = [arch.header && askHeader(arch.header, ask), arch.trtllm && askTrtllm(arch.trtllm, ask)]
    .filter(Boolean);
  out.replaceChildren(element("p", { className: "note" },
    `TP ${ask.tp}, ${ask.fusion}, ${ask.tokens} tokens × hidden size ${ask.hidden}`),
  ...answers.map(answerLine));
  if (answers.length === 0) {
    out.append(element("p", {}, "No table of this arch answers: see the last section."));
  }
  const axes = arch.header?.axes;
  if (axes && !state.data.startsWith(`${axes.dtype}.${axes.op}.`)) {
    out.append(element("p", { className: "note" },
      `These tables hold ${axes.dtype} ${axes.op}, and answer so for all data.`));
  }
  markAnswer(arch.header && answers[0].cell, ask);
}

function markAnswer(cell, ask) {
  document.querySelectorAll(".answer").forEach((td) => td.classList.remove("answer"));
  const { block, arch } = choice;
  if (!cell || !block || block.tp !== ask.tp) return;
  if (blockData(block) !== blockData({ ...arch.header.axes, mode: cell.mode })) return;
  const h = block.hidden.indexOf(cell.hidden), t = block.tokens.indexOf(cell.tokens);
  tdAt(gridOf()?.querySelector("table.new"), h, t)?.classList.add("answer");
}

function readAsk() {
  const form = byId("ask").elements;
  const number = (name) => /^\s*\d+\s*$/.test(form[name].value) ? Number(form[name].value) : NaN;
  return { tp: number("tp"), tokens: number("tokens"), hidden: number("hidden"), fusion: state.fusion };
}

// ---- all numbers -----------------------------------------------------------------------------

const MOST_ROWS = 1000; // that are drawn at once
const LIST = { order: null, direction: 1, all: false };

// By bytes there are sizes and bandwidths in place of tokens and hidden sizes.
function placeColumns(blocks) {
  const ofSizes = (value) => (row) => goesByBytes(row.block) ? value(row) : "";
  const ofShapes = (value) => (row) => goesByBytes(row.block) ? "" : value(row);
  const sizes = [["size (bytes)", ofSizes((row) => row.cell.tokens)],
    ["algbw (GB/s)", ofSizes((row) => row.cell.tokens / row.cell.time / 1000)],
    ["busbw (GB/s)", ofSizes((row) => (row.block.bus ?? NaN) * row.cell.tokens / row.cell.time / 1000)]];
  const shapes = [["tokens", ofShapes((row) => row.cell.tokens)],
    ["hidden", ofShapes((row) => row.cell.hidden)]];
  return [...(blocks.some(goesByBytes) ? sizes : []),
    ...(blocks.every(goesByBytes) && blocks.length > 0 ? [] : shapes)];
}

function listColumns(all) {
  const { arch } = choice, hasOld = arch.blocks.some((block) => block.fusions.some((fusion) => fusion.old));
  const where = all ? [["TP", (row) => row.block.tp], ["fusion", (row) => row.fusion.name],
    ["data", (row) => dataWords(row.block)]] : [];
  return [...where, ...placeColumns(all ? arch.blocks : [choice.block].filter(Boolean)),
    ["strategy", (row) => row.cell.best === null ? "unmeasured" : nameOf(row.cell.best)],
    ["time (us)", (row) => row.cell.time], ["runner_up", (row) => nameOf(row.cell.second)],
    ["margin", (row) => row.cell.margin], ["confidence", (row) => row.cell.confidence],
    ["regret", (row) => row.cell.regret],
    ...(hasOld ? [["incumbent", (row) => row.cell.old === null ? "" : nameOf(row.cell.old)]] : [])];
}

function listRows() {
  const { arch, block, fusion } = choice, rows = [];
  const add = (one, of) => {
    for (let h = 0; h < one.hidden.length; h++) {
      for (let t = 0; t < one.tokens.length; t++) {
        rows.push({ block: one, fusion: of, cell: cellOf({ block: one, fusion: of }, h, t) });
      }
    }
  };
  if (state.scope === "all") arch.blocks.forEach((one) => one.fusions.forEach((of) => add(one, of)));
  else if (fusion) add(block, fusion);
  return rows;
}

function sortList(rows, columns) {
  const column = columns.find(([title]) => title === LIST.order);
  if (!column) return rows;
  const keyOf = (row) => {
    const value = column[1](row);
    return typeof value === "number" ? { number: value, text: Number.isNaN(value) ? "" : String(value) }
      : { number: NaN, text: value };
  };
  return rows.map((row, place) => ({ row, place, key: keyOf(row) }))
    .sort((a, b) => compareKeys(a.key, b.key, LIST.direction) || a.place - b.place).map((entry) => entry.row);
}

function listHead(columns, sample) {
  return element("tr", {}, ...columns.map(([title, value]) => {
    const number = sample !== undefined && typeof value(sample) === "number";
    const button = element("button", { type: "button" }, title);
    button.addEventListener("click", () => {
      LIST.direction = LIST.order === title ? -LIST.direction : 1;
      LIST.order = title;
      showList();
    });
    const head = element("th", { scope: "col", className: number ? "number" : "" }, button);
    if (LIST.order === title) head.setAttribute("aria-sort", LIST.direction > 0 ? "ascending" : "descending");
    return head;
  }));
}

function textOfValue(value, title) {
  if (typeof value !== "number") return value;
  return ["tokens", "hidden", "TP", "size (bytes)"].includes(title) ? String(value) : exact(value);
}

function listRow(row, columns) {
  return element("tr", {}, ...columns.map(([title, value]) => {
    const cell = value(row);
    return element("td", { className: typeof cell === "number" ? "number" : "" }, textOfValue(cell, title));
  }));
}

// The list as a spreadsheet takes it.
function listText(rows, columns) {
  const lines = [columns.map(([title]) => title),
    ...rows.map((row) => columns.map(([title, value]) => textOfValue(value(row), title)))];
  return lines.map((line) => line.join("\t") + "\n").join("");
}

function showList() {
  const columns = listColumns(state.scope === "all"), rows = sortList(listRows(), columns);
  const shown = LIST.all ? rows : rows.slice(0, MOST_ROWS);
  const table = element("table", {}, element("thead", {}, listHead(columns, rows[0])),
    element("tbody", {}, ...shown.map((row) => listRow(row, columns))));
  const parts = [copyButton(() => listText(rows, columns)), element("div", { className: "table" }, table)];
  if (shown.length < rows.length) {
    const more = element("button", { type: "button" }, `Show all ${rows.length} rows`);
    more.addEventListener("click", () => { LIST.all = true; showList(); });
    parts.push(element("p", { className: "note" },
      `The first ${shown.length} of ${rows.length} rows; copying takes all. `, more));
  }
  if (rows.length === 0) parts.splice(0, 2, element("p", { className: "missing" }, "missing: no rows"));
  byId("list").replaceChildren(...parts);
}

// ---- the whole -------------------------------------------------------------------------------

function selectBox(name, title, values, words) {
  if (values.length < 2) return null;
  const box = element("select", { name }, ...values.map((value) =>
    element("option", { value, selected: state[name] === value }, words ? words(value) : value)));
  box.addEventListener("change", () => {
    show({ ...state, [name]: box.value });
    writeFragment();
  });
  return element("label", {}, title, box);
}

function showControls() {
  const focused = document.activeElement?.name, controls = byId("controls");
  controls.replaceChildren(...[
    selectBox("arch", "arch", DATA.archs.map((arch) => arch.name)),
    selectBox("tp", "TP size", choice.tps),
    selectBox("fusion", "fusion", choice.fusions),
    selectBox("data", "data type, operation, mode", choice.datas, wordsOfData),
    selectBox("view", "cells show", choice.views, (value) => VIEWS[value].title),
  ].filter(Boolean));
  controls.querySelector(`[name="${focused}"]`)?.focus();
}

function showGrid() {
  document.querySelectorAll(".grid.chosen").forEach((grid) => grid.classList.remove("chosen"));
  byId("nothing")?.remove();
  byId("scale").replaceChildren();
  byId("details").replaceChildren();
  const grid = gridOf(), table = grid?.querySelector("table.new");
  grid?.classList.add("chosen");
  if (!grid) {
    const { arch, tp, fusion, data } = state;
    byId("tables").append(element("p", { className: "missing", id: "nothing" },
      `missing: no rows of ${arch}, TP ${tp}, ${fusion}, ${data.replaceAll(".", " ")}`));
  }
  if (!table) return;
  showView(table);
  const [tokens, hidden] = state.cell.split("x").map(Number);
  const t = choice.block.tokens.indexOf(tokens), h = choice.block.hidden.indexOf(hidden);
  if (t >= 0 && h >= 0) {
    select(h, t, false);
  } else {
    state.cell = "";
    current = null;
    const first = tdAt(table, choice.block.hidden.length - 1, 0);
    if (first) first.tabIndex = 0;
  }
}

function markOverview() {
  document.querySelectorAll(".small[aria-current]").forEach((link) => link.removeAttribute("aria-current"));
  const id = gridOf()?.id;
  for (const link of document.querySelectorAll(".small")) {
    if (link.getAttribute("href") === "#" + id) link.setAttribute("aria-current", "true");
  }
}

// Shows what `wanted` asks for; what it leaves out is taken from what there is.
function show(wanted) {
  choice = setState(wanted);
  showControls();
  showGrid();
  markOverview();
  LIST.all = false;
  byId("scope").elements.scope.value = state.scope;
  showList();
  if (!byId("ask")) return; // all goes by bytes
  const form = byId("ask").elements;
  if (form.tp.value === "" || form.tp.dataset.own !== "yes") form.tp.value = state.tp;
  if (byId("answer").childElementCount > 0) answerAsk(readAsk());
}

function listenToAsk() {
  byId("ask").elements.tp.addEventListener("input", (event) => { event.target.dataset.own = "yes"; });
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    answerAsk(readAsk());
  });
}

function start() {
  listen();
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("scope").elements.scope.addEventListener("change", (event) => {
    state.scope = event.target.value;
    showList();
    writeFragment();
  });
  if (byId("ask")) listenToAsk();
  window.addEventListener("hashchange", () => {
    const wanted = readFragment();
    if (Object.keys(wanted).length === 0) return; // a section of the page
    show({ ...state, cell: "", ...wanted });
    byId("choice").scrollIntoView();
  });
  const wanted = readFragment();
  show(wanted);
  if (Object.keys(wanted).length > 0) byId("choice").scrollIntoView();
  if (wanted.ask && byId("ask")) {
    const [tokens, hidden] = wanted.ask.split("x");
    Object.assign(byId("ask").elements.tokens, { value: tokens });
    Object.assign(byId("ask").elements.hidden, { value: hidden ?? "" });
    answerAsk(readAsk());
  }
}

start();
