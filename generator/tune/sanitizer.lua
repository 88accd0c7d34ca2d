-- compute-sanitizer around the trial of a plug-in for GPUs: where it is, the words before the program, and
-- what its own lines say. Its memcheck names the kernel and the access that the driver only knows to be
-- wrong. What it reports counts against the plug-in; that it cannot run here counts against nobody.
local fail = require "base.fail"
local file = require "core.file"

local sanitizer = {}

local PROGRAM, NONE = "compute-sanitizer", "none"
local FOUND = 86 -- the exit code of a program that ends well, and of which it reports errors
local MARK = "^========= ?"

-- Its program: what `asked` names ("none": no program), or what there is. nil: there is none.
function sanitizer.find(asked)
  if asked == NONE then return nil end
  if asked then
    if not asked:find("/", 1, true) or not file.exists(asked) then
      fail.input("--sanitizer: %s is no path of a program; /usr/local/cuda/bin/%s, or %s, would be right",
        asked, PROGRAM, NONE)
    end
    return asked
  end
  local home = os.getenv("CUDA_HOME")
  local folders = (os.getenv("PATH") or "") .. (home and home ~= "" and ":" .. home .. "/bin" or "")
  for folder in folders:gmatch("[^:]+") do
    local path = folder .. "/" .. PROGRAM
    if file.exists(path) then return path end
  end
  return nil
end

-- The words before the program that it looks at. Calls of the driver that fail are no errors to it: a program
-- asks in vain for what an older driver does not have.
function sanitizer.words(path)
  return { path, "--tool", "memcheck", "--target-processes", "all", "--report-api-errors", "no",
    "--error-exitcode", tostring(FOUND) }
end

-- ---- what it says -----------------------------------------------------------------------------

local report = {}
report.__index = report

function sanitizer.report() return setmetatable({}, report) end

-- Takes a line of the output. An error is a headline with a place in the line below it:
--   ========= Invalid __global__ write of size 4 bytes
--   =========     at copy(float *)+0x60 in copy.cu:6
function report:take(line)
  if not line:find(MARK) then return end
  local text = line:gsub(MARK, "")
  local place = text:match("^%s+(at .*)$")
  if place and self.headline and not self.error then self.error = self.headline .. " " .. place end
  self.headline = not text:find("^%s") and text ~= "" and text or nil
  local complaint = text:match("^Error: (.*)$") or text:match("^Internal Sanitizer Error: (.*)$")
  if complaint and not complaint:find("didn't terminate", 1, true) then -- so the program itself ended
    self.complaint = self.complaint or complaint
  end
end

-- What it has against the program, which ended for `reason` (nil: well); else nil, and why it told nothing
-- (nil: for there is nothing), and whether that is so with every program.
function report:verdict(reason)
  if self.error then return self.error end
  if self.complaint then return nil, self.complaint, true end
  if reason == ("exit code %d"):format(FOUND) then return "errors without a place" end
  return nil, reason, false
end

return sanitizer
