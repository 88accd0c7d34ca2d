// "Look up a shape" of report.html: the results of allreduce_table.h and of TensorRT-LLM's table.

// The place of the first border that is not below `size`, as in the C header.
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
  return `${what} ${size}: ${values[place]} is the nearest measured value, as a ratio ` +
    `(for ${rangeInWords(borders, place)}).`;
}

// The result of allreduce_table.h, with its reason.
function lookUpHeader(header, shape) {
  const { tp, hidden, tokens, fusion } = shape;
  const answer = { file: "allreduce_table.h", letter: header.fallback, why: "" };
  const tpTable = header.tpTables.find((entry) => entry.tp === tp);
  const otherwise = `the result is the fallback, ${nameOf(header.fallback)}`;
  if (!tpTable) return { ...answer, why: `TP ${tp} was not measured: ${otherwise}.` };
  if (!tpTable.fusions[fusion]) {
    return { ...answer, why: `${fusion} was not measured for TP ${tp}: ${otherwise}.` };
  }
  const h = placeByBorders(tpTable.hidden_borders, hidden), t = placeByBorders(tpTable.token_borders, tokens);
  const letter = tpTable.fusions[fusion][h * tpTable.tokens.length + t];
  const why = axisWords("Tokens", tokens, tpTable.tokens, tpTable.token_borders, t) + " " +
    axisWords("Hidden size", hidden, tpTable.hidden, tpTable.hidden_borders, h);
  const cell = { hidden: tpTable.hidden[h], tokens: tpTable.tokens[t], mode: tpTable.mode };
  if (letter === ".") return { ...answer, cell, why: `${why} That cell has no time: ${otherwise}.` };
  return { ...answer, letter, cell, why };
}

const floorLog2 = (value) => 31 - Math.clz32(value);

// The result of TensorRT-LLM's table, which is indexed by the floor of log2; outside of it, the fallback.
function lookUpTrtllm(table, shape) {
  const answer = { file: "TensorRT-LLM's table", letter: table.fallback };
  const fusion = table.fusions.indexOf(shape.fusion);
  const at = (values, size) => floorLog2(size) - floorLog2(values[0]);
  const p = at(table.tp, shape.tp), h = at(table.hidden, shape.hidden), t = at(table.tokens, shape.tokens);
  const inside = (values, place) => place >= 0 && place < values.length;
  if (fusion < 0 || !inside(table.tp, p) || !inside(table.hidden, h) || !inside(table.tokens, t)) {
    return { ...answer,
      why: `The shape is outside of its table: the result is the fallback, ${nameOf(table.fallback)}.` };
  }
  const index = ((p * table.fusions.length + fusion) * table.hidden.length + h) * table.tokens.length + t;
  const rounded = [["TP", shape.tp, table.tp[p]], ["tokens", shape.tokens, table.tokens[t]],
    ["hidden size", shape.hidden, table.hidden[h]]].filter(([, given, read]) => given !== read)
    .map(([what, given, read]) => `${what} ${given} to ${read}`);
  const why = rounded.length > 0 ? "It rounds down to a power of two: " + rounded.join(", ") + "."
    : "All three are in its table.";
  return { ...answer, letter: table.cells[index], why };
}

function answerLine(answer) {
  const line = element("p", {}, answer.file + ": ", key(answer.letter), " ",
    element("strong", {}, nameOf(answer.letter)), ". " + answer.why);
  line.dataset.file = answer.file;
  line.dataset.strategy = nameOf(answer.letter);
  return line;
}

// Shows the results of the tables, and marks the cell of the C header's.
function showLookup(shape) {
  const out = byId("answer"), { arch } = choice;
  const whole = (value) => Number.isInteger(value) && value >= 1 && value <= 2147483647;
  const spansNodes = typeof shape.tp === "string"; // 16 on 2 nodes
  if (![spansNodes ? 1 : shape.tp, shape.tokens, shape.hidden].every(whole)) {
    out.replaceChildren(element("p", { className: "missing" },
      "TP size, tokens and hidden size must be whole numbers from 1 to 2147483647."));
    return;
  }
  const answers = [arch.header && lookUpHeader(arch.header, shape),
    arch.trtllm && !spansNodes && lookUpTrtllm(arch.trtllm, shape)].filter(Boolean);
  out.replaceChildren(element("p", { className: "note" },
    `TP ${shape.tp}, ${shape.fusion}, ${shape.tokens} tokens × hidden size ${shape.hidden}`),
  ...answers.map(answerLine));
  if (answers.length === 0) {
    out.append(element("p", {}, "This arch has no table to look up: see the last section."));
  }
  const axes = arch.header?.axes;
  if (axes && !state.data.startsWith(`${axes.dtype}.${axes.op}.`)) {
    out.append(element("p", { className: "note" },
      `These tables are made for ${axes.dtype} ${axes.op}; their results for other data are the same.`));
  }
  markAnswer(arch.header && answers[0].cell, shape);
}

function markAnswer(cell, shape) {
  document.querySelectorAll(".answer").forEach((td) => td.classList.remove("answer"));
  const { block, arch } = choice;
  if (!cell || !block || block.tp !== shape.tp) return;
  if (blockData(block) !== blockData({ ...arch.header.axes, mode: cell.mode })) return;
  const h = block.hidden.indexOf(cell.hidden), t = block.tokens.indexOf(cell.tokens);
  tdAt(gridOf()?.querySelector("table.new"), h, t)?.classList.add("answer");
}

function readShape() {
  const form = byId("ask").elements;
  const number = (name) => /^\s*\d+\s*$/.test(form[name].value) ? Number(form[name].value) : NaN;
  const placement = form.tp.value.trim();
  const tp = /^\d+ on \d+ nodes$/.test(placement) ? placement : number("tp");
  return { tp, tokens: number("tokens"), hidden: number("hidden"), fusion: state.fusion };
}
