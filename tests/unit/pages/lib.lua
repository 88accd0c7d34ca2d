-- Shared by the tests of pages: files, the program, and a headless Chromium that drives a page.
local csv = require "codec.csv"
local file = require "core.file"
local json = require "codec.json"

local lib = {}

lib.work, lib.source, lib.program = os.getenv "WORK", os.getenv "SOURCE", os.getenv "GENTABLES"

function lib.write(path, text) assert(file.write(path, text)) end

function lib.read(path) return assert(file.read(path)) end

-- Runs a shell command. Returns its exit code and its output, with stderr.
function lib.run(command, ...)
  if select("#", ...) > 0 then command = command:format(...) end
  local handle = assert(io.popen(command .. " 2>&1"))
  local text = handle:read("a")
  local ok, _, code = handle:close()
  return ok and 0 or code, text
end

-- An empty folder below WORK.
function lib.folder(name)
  local path = lib.work .. "/" .. name
  assert(lib.run("rm -rf '%s' && mkdir -p '%s'", path, path) == 0)
  return path
end

-- Runs a verb of the program; raises an error with its output if the verb fails.
function lib.gentables(arguments, code)
  local ended, text = lib.run("'%s' %s", lib.program, arguments)
  if ended ~= (code or 0) then error(("exit code %d: gentables %s\n%s"):format(ended, arguments, text)) end
  return text
end

-- The rows of a CSV by the names in its head.
function lib.csv(path) return assert(csv.read(path)).rows end

local function find_browser()
  for _, name in ipairs { "chromium", "chromium-browser", "google-chrome" } do
    local code, path = lib.run("command -v %s", name)
    if code == 0 then return (path:gsub("%s+$", "")) end
  end
end

local harness = [[
<!DOCTYPE html><meta charset="utf-8"><body><pre id="result"></pre><script>
"use strict";
const open = (url, sandbox) => new Promise((resolve) => {
  const frame = document.createElement("iframe");
  frame.style.cssText = "width: 1200px; height: 900px";
  if (sandbox) frame.sandbox = "allow-same-origin";
  frame.addEventListener("load", () => resolve(frame.contentWindow));
  frame.src = url;
  document.body.append(frame);
});
const go = (page, fragment) => new Promise((resolve) => {
  page.addEventListener("hashchange", () => resolve(), { once: true });
  page.location.hash = fragment;
});
const texts = (list) => [...list].map((node) => node.textContent);
(async () => {
  let result;
  try { result = await (async () => { %s })(); } catch (error) { result = { error: String(error.stack) }; }
  document.getElementById("result").textContent = "RESULT " + encodeURIComponent(
    JSON.stringify(result ?? null)) + " END";
})();
</script>]]

-- Whether there is a Chromium; if not, prints that, and the test has to return 77.
function lib.has_browser()
  local found = find_browser() ~= nil
  if not found then print("skipped: there is no Chromium here") end
  return found
end

-- Runs the body of an async JavaScript function, in a page beside those in `folder`, and returns its result.
-- It has open(url[, without scripts]) -> window, go(window, fragment), and texts(nodes).
function lib.browse(folder, script)
  local browser = assert(find_browser(), "there is no Chromium here")
  lib.write(folder .. "/harness.html", (harness:gsub("%%s", function() return script end)))
  local code, text = lib.run("timeout 300 '%s' --headless --no-sandbox --disable-gpu " ..
    "--allow-file-access-from-files --user-data-dir='%s/profile' --virtual-time-budget=60000 --dump-dom " ..
    "'file://%s/harness.html'", browser, folder, folder)
  local result = text:match("RESULT (%S+) END")
  if not result then error(("no result from it (exit code %d): %s"):format(code, text:sub(1, 2000))) end
  local decoded = result:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
  local value = assert(json.decode(decoded))
  if type(value) == "table" and value.error then error("in the page: " .. value.error) end
  return value
end

return lib
