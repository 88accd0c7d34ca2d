// "All numbers" of report.html: a list of cells that sorts and copies.

const MOST_ROWS = 1000; // drawn at once
const LIST = { order: null, direction: 1, all: false };

// Blocks by bytes have sizes and bandwidths in place of tokens and hidden sizes.
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
    ["margin", (row) => row.cell.margin], ["state", (row) => STATES[row.cell.state]],
    ["confidence", (row) => row.cell.confidence], ["expected loss", (row) => row.cell.expected],
    ["worst loss", (row) => row.cell.worst],
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

// The list as text for a spreadsheet.
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
