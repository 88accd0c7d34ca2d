-- Shared by the tests of the page of trace report and trace pipeline: a sweep with a straggler, and the page
-- in a browser as data.
local browser = require "unit.pages.lib"
local file = require "core.file"
local traces = require "unit.trace.lib"

local lib = { work = traces.work }

-- The kernel of a collective without metadata, with markup in its name.
lib.KERNEL = [[ncclDevKernel_AllReduce<b title='x'>&amp;</b><script>window.broken=1</script>]]

-- Four steps of a model, each with three GEMMs: a prefill and three decodes, which only the names of their
-- kernels show.
local function add_phases(trace, rank)
  for step, phase in ipairs { "Prefill", "Decode", "Decode", "Decode" } do
    trace:embedding(300 * step - 214)
    for layer = 0, 2 do
      trace:attention { kernel = ("Batch%sWithPagedKVCacheKernel"):format(phase),
        start = 300 * step - 200 + 100 * layer + 80, duration = 5 + rank }
    end
  end
end

local function plant(path, threads, rank, shift)
  local trace = traces.trace { rank = rank, world_size = 4 }
  for i = 1, 12 do
    trace:gemm { m = i % 2 == 0 and 64 or 512, n = 64, k = 32, kernel = "nvjet_tst_64x64_NT", start = i * 100,
      duration = 20 + shift + (7 * i + threads // 16 + 5 * rank) % 33 }
    local late = rank == 1 and 24 or (rank * 7 + i * 3) % 11
    trace:collective { name = i % 4 == 0 and "_allgather_base" or "allreduce", elements = 64 * (1 + i % 3),
      start = i * 100 + 40 + late, duration = 50 - late }
  end
  add_phases(trace, rank)
  trace:collective { kernel = lib.KERNEL, start = rank == 1 and 1420 or 1400, duration = 30 }
  trace:write(path)
end

-- Plants ranks 0, 1 and 3 of 4, for two thread counts; rank 1 is always the last. `shift`: added to the times
-- of GEMMs.
function lib.plant_sweep(name, shift)
  for _, threads in ipairs { 256, 512 } do
    for _, rank in ipairs { 0, 1, 3 } do
      plant(traces.path(name, threads, 28, rank), threads, rank, shift or 0)
    end
  end
end

-- A trace of GEMMs alone; annotations: the names of a step around each of the first ones, or nil.
function lib.plant_gemms(path, annotations)
  local trace = traces.trace {}
  for i, name in ipairs(annotations or {}) do trace:annotation(name, i * 100 - 15, 30) end
  for i = 1, 4 do
    trace:gemm { m = 64, n = 64, k = 32, kernel = "nvjet", start = i * 100, duration = 20 + i }
  end
  trace:write(path)
end

-- The last line of a text.
function lib.last_line(text) return text:match "([^\n]*)\n?$" end

-- The functions read(page's path) and see(page's path, medium, width) for lib.browse.
local script = [[
  const sources = (node) => {
    while (node && !(node.matches && node.matches(".source"))) node = node.nextElementSibling;
    return node ? [...node.querySelectorAll("a")].map((link) => decodeURIComponent(
      link.getAttribute("href"))) : [];
  };
  const cell = (one) => ({ text: one.textContent, sort: one.dataset.sort ?? "",
    number: one.classList.contains("number") });
  const read = async (path) => {
    const page = await open(path), { document } = page;
    return {
      title: document.title, broken: page.broken ?? 0, bold: document.querySelectorAll("b, img").length,
      sections: [...document.querySelectorAll("section")].map((one) => one.id),
      text: document.body.textContent,
      links: [...document.querySelectorAll("a[href]")].map((link) => link.getAttribute("href"))
        .filter((href) => !href.startsWith("#")).map(decodeURIComponent),
      answers: [...document.querySelectorAll(".answer")].map((one) => ({
        question: one.querySelector("h3").textContent, figure: one.querySelector(".figure").textContent,
        words: one.querySelector(".figure + p").textContent, sources: sources(one.firstElementChild) })),
      tables: [...document.querySelectorAll(".table")].map((one) => ({
        section: one.closest("section").id, sources: sources(one),
        heads: texts(one.querySelectorAll("thead th")),
        rows: [...one.querySelectorAll("tbody tr")].map((row) => [...row.cells].map(cell)) })),
      strips: [...document.querySelectorAll(".strips")].map((one) => ({
        section: one.closest("section").id, sources: sources(one),
        rows: [...one.children].map((row) => ({ name: row.querySelector(".name").textContent,
          value: row.querySelector(".value").textContent, hint: row.querySelector("title").textContent,
          widths: [...row.querySelectorAll("rect")].map((part) => Number(part.getAttribute("width"))) })) })),
    };
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map(Number).map((value) => value / 255)
      .map((value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  // The rules of a medium apply after it is renamed.
  const see = async (path, medium, width) => {
    const page = await open(path), { document } = page, root = document.documentElement;
    page.frameElement.style.width = width + "px";
    for (const rule of [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])) {
      if (rule.media && rule.media.mediaText.includes(medium)) rule.media.mediaText = "all";
    }
    const style = (selector) => page.getComputedStyle(document.querySelector(selector));
    const overlaps = [...document.querySelectorAll(".strip")].filter((strip) => {
      const name = strip.querySelector(".name").getBoundingClientRect();
      const value = strip.querySelector(".value").getBoundingClientRect();
      return name.right > value.left && name.bottom > value.top;
    }).length;
    const back = style("body").backgroundColor, card = style(".answer").backgroundColor;
    return { wide: root.scrollWidth - root.clientWidth, overlaps, back: luminance(back),
      texts: [contrast(style("body").color, back), contrast(style(".source").color, back),
        contrast(style(".source a").color, card), contrast(style(".answer p").color, card)],
      bars: ["computation", "communication", "copies"].map((name) => contrast(
        style("rect." + name).fill, back)),
      menu: style("nav").display, copy: style(".copy").display,
      tables: Math.max(...[...document.querySelectorAll("details[open] table, section > .table table")]
        .map((one) => one.getBoundingClientRect().right - root.clientWidth)),
      first: document.querySelector(".answers").getBoundingClientRect().bottom };
  };]]

-- Runs the body of an async JavaScript function with `read` and `see` in a browser, beside the pages below
-- the test's folder, and returns its result.
function lib.browse(body) return browser.browse(lib.work, script .. "\n" .. body) end

-- The numbers in the CSVs of these paths below a folder, as a list.
function lib.numbers(folder, paths)
  local out = {}
  for _, path in ipairs(paths) do
    for _, row in ipairs(path:find "%.csv$" and traces.csv(folder .. "/" .. path) or {}) do
      for _, value in pairs(row) do out[#out + 1] = tonumber(value) end
    end
  end
  return out
end

-- The links of a page that name no file.
function lib.broken_links(folder, links)
  local out = {}
  for _, link in ipairs(links) do
    if not file.status(folder .. "/" .. link) then out[#out + 1] = link end
  end
  return out
end

return lib
