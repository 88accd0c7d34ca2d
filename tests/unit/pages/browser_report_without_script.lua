-- report.html without scripts: every table is visible, and nothing that needs a script. Names with markup and
-- quotes are text, with scripts and without.
local lu = require "luaunit"
local lib = require "unit.pages.lib"

if not lib.has_browser() then return 77 end

local nasty = [[</script><script>window.broken = 1</script><img src=x onerror="window.broken = 1">'"&<b>]]

local out = lib.folder "report"
lib.run("cp '%s'/tables/host/* '%s' && rm '%s'/transport.*", lib.source, out, out)
for _, tp in ipairs { 2, 4 } do
  local path = ("%s/benchmark.tp%d.host.json"):format(out, tp)
  local text = lib.read(path):gsub('"cpu": "[^"]*"', function()
    return '"cpu": "' .. nasty:gsub('"', '\\"') .. '"'
  end)
  text = text:gsub('"reason": "its message', function() return '"reason": "<i>its</i> \\"message' end)
  lib.write(path, text)
end
lib.gentables(("report --data-dir '%s' --arch host --out '%s' --against '%s/table.csv'"):format(out, out,
  out))

local function look(without_scripts)
  return lib.browse(out, ([[
    const page = await open("report.html", %s), { document } = page;
    const seen = (list) => [...list].filter((node) => node.offsetHeight > 0).length;
    return { tables: seen(document.querySelectorAll("table.new")),
      old: seen(document.querySelectorAll("table.old")),
      controls: seen(document.querySelectorAll("select, input, button")),
      pictures: seen(document.querySelectorAll(".small")), broken: page.broken ?? 0,
      images: document.querySelectorAll("img").length, bold: document.querySelectorAll("b, i").length,
      machine: document.querySelector("#machine").textContent,
      left: document.querySelector("#left-out").textContent,
      lead: document.querySelector(".lead").textContent,
      wide: document.documentElement.scrollWidth > document.documentElement.clientWidth };]])
    :format(tostring(without_scripts)))
end

local function check(page)
  lu.assertEquals(page.broken, 0)
  lu.assertEquals(page.images, 0)
  lu.assertEquals(page.bold, 0)
  lu.assertEquals(page.pictures, 8)
  lu.assertStrContains(page.machine, nasty)
  lu.assertStrContains(page.lead, nasty)
  lu.assertStrContains(page.lead, "Best: ")
  lu.assertStrContains(page.left, '<i>its</i> "message')
  lu.assertFalse(page.wide)
end

local tests = {}

function tests.test_without_scripts()
  local page = look(true)
  check(page)
  lu.assertEquals(page.tables, 8)
  lu.assertEquals(page.old, 8)
  lu.assertEquals(page.controls, 0)
end

function tests.test_with_scripts()
  local page = look(false)
  check(page)
  lu.assertEquals(page.tables, 1)
  lu.assertEquals(page.old, 1)
  lu.assertTrue(page.controls > 5)
end

-- The only address on the page is the name of SVG's elements.
function tests.test_nothing_from_outside()
  local text = lib.read(out .. "/report.html")
  for _, forbidden in ipairs { "https?://", "<link", "@import", "<[^>&]*%ssrc=", "url%(", "<img" } do
    lu.assertNil(text:find(forbidden), forbidden)
  end
  lu.assertStrContains(text, "default-src 'none'")
end

return require "suites" { { "browser_report_without_script", tests } }
