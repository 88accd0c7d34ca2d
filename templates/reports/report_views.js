// The views of report.html: the value, text and colour that each cell of the chosen table shows.

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

// `value` of a cell (NaN: none), its text, and the scale from `low` to `high`. `needs`: a field that a fusion
// must have.
const VIEWS = {
  best: { title: "the choice" },
  time: { title: "its time (µs)", scale: "time", logarithmic: true, value: (cell) => cell.time,
    text: (value) => value >= 1000 ? value.toFixed(0) : value.toPrecision(3),
    words: "Time of the choice at the shape, in µs, on a logarithmic scale" },
  margin: { title: "margin over the runner-up", scale: "certainty", low: 0, high: 0.2,
    value: (cell) => cell.margin,
    text: percent, words: "How much more the runner-up loses" },
  confidence: { title: "confidence", needs: (fusion) => fusion.confidence, scale: "certainty", low: 0.5,
    high: 1,
    value: (cell) => cell.confidence, text: percent,
    words: "Probability of a loss up to 2 % over the shapes of the cell's bin" },
  expected: { title: "expected loss", needs: (fusion) => fusion.expected, scale: "loss", low: 0, high: 0.05,
    value: (cell) => cell.expected, text: (value) => percent(value, 2),
    words: "Mean loss over the shapes of the cell's bin" },
  worst: { title: "worst loss", needs: (fusion) => fusion.worst, scale: "loss", low: 0, high: 0.2,
    value: (cell) => cell.worst, text: percent,
    words: "95 % quantile of the loss over the shapes of the cell's bin" },
  bound: { title: "share of the bound", scale: "sequence",
    needs: (fusion) => Object.values(fusion.rows).some((row) => row.b), low: 0, high: 1,
    value: (cell) => cell.best === null ? NaN
      : cell.rows.find((row) => row.letter === cell.best).bound / cell.time,
    text: (value) => percent(value, 0),
    words: "The share of the choice's time that memory and links need at least" },
  incumbent: { title: "loss of the incumbent", needs: (fusion) => fusion.old, scale: "loss", low: 0,
    high: 0.2, value: incumbentLoss, text: percent,
    words: "How much longer the incumbent's choice takes than the fastest strategy at the shape" },
};

function incumbentLoss(cell) {
  const row = cell.rows.find((entry) => entry.letter === cell.old);
  return row && cell.best !== null ? row.time / cell.least - 1 : NaN;
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
      td.textContent = strategy.mark + (isUncertain(cell) ? "?" : "");
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

// Shows the names of the strategies that are best in this table, or the incumbent's choice in it.
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
