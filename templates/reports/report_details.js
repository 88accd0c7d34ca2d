// The chosen cell of report.html: the times of all its strategies, and how keys and mouse choose a cell.

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
  if (cell.best === null) return "No strategy that may be chosen was measured here.";
  const words = [`${nameOf(cell.best)} is chosen.`];
  if (cell.rows.some((row) => row.letter === cell.best && row.interpolated)) {
    words.push("Its time here is interpolated.");
  }
  const predicted = cell.rows.some((row) => row.predicted);
  if (predicted) words.push("The times are predicted from fewer nodes.");
  if (cell.second !== ".") {
    const margin = `${percent(Math.abs(cell.margin))} ${cell.margin < 0 ? "less" : "more"}`;
    words.push(`${nameOf(cell.second)} loses ${margin}.`);
  } else {
    words.push(predicted ? "No other strategy is surely faster than the library's own decision."
      : "No other strategy was measured.");
  }
  if (!Number.isNaN(cell.confidence)) {
    words.push(`The choice is ${sureness(cell.confidence)} likely to lose at most 2 %; its expected loss is ` +
      `${percent(cell.expected, 2)}, its worst loss ${percent(cell.worst)}.`);
  }
  if (cell.state === "t") words.push("It is a tie.");
  if (isUncertain(cell)) words.push("It is uncertain.");
  const loss = incumbentLoss(cell);
  if (cell.old !== null && cell.old !== cell.best) {
    words.push(`The incumbent, ${nameOf(cell.old)}, ` +
      (Number.isNaN(loss) ? "was not measured here."
        : `takes ${percent(loss)} longer than the fastest here.`));
  } else if (choice.fusion.old && cell.old === null) {
    words.push("The incumbent has no choice here.");
  }
  return words.join(" ");
}

// The loss of choosing this row at this shape if its time and those of the others lie at the ends of their
// intervals.
function lossByIntervals(rows, row) {
  const others = rows.filter((other) => other !== row && !other.strategy.never).map((other) => other.low);
  if (others.length === 0 || others.some(Number.isNaN) || Number.isNaN(row.high)) return NaN;
  return Math.max(0, row.high / Math.min(...others) - 1);
}

const NEAREST = 3; // the measured shapes that a label of an interpolated time names

// The measured shapes of a row's strategy, [tokens, hidden size], those with the most weight in an
// interpolation (choose/interpolation.lua) first.
function measuredShapes(row, cell) {
  const { block } = choice, shapes = [];
  block.hidden.forEach((hidden, h) => block.tokens.forEach((tokens, t) => {
    const index = cellIndex(block, h, t);
    if (Number.isNaN(numberAt(row.owner, "t", index)) || isInterpolated(row.owner, index)) return;
    shapes.push([tokens, hidden]);
  }));
  const between = numbers(row.owner, "o") ?? [];
  for (let i = 0; i < between.length; i += 2) shapes.push([between[i], between[i + 1]]);
  const distance = ([tokens, hidden]) =>
    Math.hypot(Math.log2(tokens / cell.tokens), Math.log2(hidden / cell.hidden));
  return shapes.sort((a, b) => distance(a) - distance(b));
}

function basis(row, cell) {
  if (row.predicted) return "predicted from fewer nodes";
  if (!row.interpolated) return "measured";
  return "interpolated from " + measuredShapes(row, cell).slice(0, NEAREST)
    .map(([tokens, hidden]) => `${tokens} × ${hidden}`).join(", ") + ", …";
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
    bound: cell.rows.some((row) => !Number.isNaN(row.bound)),
    basis: cell.rows.some((row) => row.interpolated || row.predicted) };
  const columns = [["strategy"], [""], ["time (µs)", "number"]];
  if (has.interval) columns.push(["95 % interval", "number"]);
  columns.push(["longer than the fastest", "number"]);
  if (has.interval) columns.push(["loss by intervals", "number"]);
  if (has.bound) columns.push(["share of bound", "number"]);
  if (has.basis) columns.push(["basis (tokens × hidden size)"]);
  const head = element("tr", {}, ...columns.map(([title, className]) =>
    element("th", { scope: "col", className: className ?? "" }, title)));
  const rows = cell.rows.map((row) => {
    const number = (text) => element("td", { className: "number" }, text);
    const tr = element("tr", {}, element("td", {}, key(row.letter), " " + row.strategy.name +
      (row.strategy.never ? " (never chosen)" : row.letter === cell.best ? " (choice)"
        : row.letter === cell.old ? " (incumbent)" : "")),
      element("td", {}, bar(row, longest)), number(row.time.toFixed(digits)));
    if (has.interval) {
      tr.append(number(Number.isNaN(row.low) ? ""
        : `${row.low.toFixed(digits)} to ${row.high.toFixed(digits)}`));
    }
    tr.append(number(row.time === cell.least ? "fastest" : percent(row.time / cell.least - 1)));
    if (has.interval) tr.append(number(percent(lossByIntervals(cell.rows, row))));
    if (has.bound) tr.append(number(percent(row.bound / row.time, 0)));
    if (has.basis) tr.append(element("td", {}, basis(row, cell)));
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

let current = null; // the chosen cell, { h, t }

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
