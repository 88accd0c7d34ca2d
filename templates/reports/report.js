// The last script of report.html: its controls and its start.

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

// Shows the state `wanted`, with defaults for missing values.
function show(wanted) {
  choice = setState(wanted);
  showControls();
  showGrid();
  markOverview();
  LIST.all = false;
  byId("scope").elements.scope.value = state.scope;
  showList();
  if (!byId("ask")) return; // all blocks are by bytes
  const form = byId("ask").elements;
  if (form.tp.value === "" || form.tp.dataset.own !== "yes") form.tp.value = state.tp;
  if (byId("answer").childElementCount > 0) showLookup(readShape());
}

function listenToLookup() {
  byId("ask").elements.tp.addEventListener("input", (event) => { event.target.dataset.own = "yes"; });
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    showLookup(readShape());
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
  if (byId("ask")) listenToLookup();
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
    showLookup(readShape());
  }
}

start();
