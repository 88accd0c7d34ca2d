// The script of every page: tables sort and copy. Without it, pages are complete.
"use strict";

// element("td", { className: "x" }, child...)
function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// The sort key of a cell: its number, if it has one, and its text.
function sortKey(cell) {
  const text = cell.dataset.sort ?? cell.textContent.trim();
  const number = text === "" ? NaN : Number(text);
  return { text, number };
}

// Numbers before texts before empty cells, whatever the direction.
function compareKeys(a, b, direction) {
  const aNumber = !Number.isNaN(a.number), bNumber = !Number.isNaN(b.number);
  if (aNumber && bNumber) return direction * (a.number - b.number);
  if (aNumber !== bNumber) return aNumber ? -1 : 1;
  if ((a.text === "") !== (b.text === "")) return a.text === "" ? 1 : -1;
  return direction * a.text.localeCompare(b.text, "en", { numeric: true });
}

function sortTable(table, index) {
  const heads = table.tHead.rows[0].cells, body = table.tBodies[0];
  const direction = heads[index].getAttribute("aria-sort") === "ascending" ? -1 : 1;
  const keyed = [...body.rows].map((row, place) => ({ row, place, key: sortKey(row.cells[index]) }));
  keyed.sort((a, b) => compareKeys(a.key, b.key, direction) || a.place - b.place);
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[index].setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
  body.append(...keyed.map((entry) => entry.row));
}

// The table as text for a spreadsheet: tabs between cells.
function tableText(table) {
  return [...table.rows].map((row) =>
    [...row.cells].map((cell) => cell.textContent.trim().replace(/\s+/g, " ")).join("\t")).join("\n") + "\n";
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element("textarea", { value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// A button that copies the result of text(), and then shows whether it succeeded.
function copyButton(text) {
  const button = element("button", { type: "button", className: "copy" }, "Copy table");
  button.addEventListener("click", async () => {
    button.textContent = await copyText(text()) ? "Copied" : "Could not copy";
    setTimeout(() => { button.textContent = "Copy table"; }, 1500);
  });
  return button;
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, index) => {
    const button = element("button", { type: "button" }, ...head.childNodes);
    button.addEventListener("click", () => sortTable(table, index));
    head.append(button);
  });
  table.closest(".table").before(copyButton(() => tableText(table)));
}

document.querySelectorAll("table.sortable").forEach((table) => {
  if (table.tBodies[0] && table.tBodies[0].rows.length > 1) makeSortable(table);
});
