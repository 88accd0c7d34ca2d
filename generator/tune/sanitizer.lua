-- compute-sanitizer around the trial of a plug-in for GPUs: its path, the command line before the program,
-- and the errors in its output. Its memcheck names the kernel and the access; the driver only reports that
-- some access was invalid. Its errors exclude the plug-in; that it cannot run here excludes nothing.
local fail = require "base.fail"
local file = require "core.file"

local sanitizer = {}

local PROGRAM, NONE = "compute-sanitizer", "none"
local FOUND = 86 -- exit code of a program that ends well although compute-sanitizer reports errors
local MARK = "^========= ?"

-- The path of compute-sanitizer: that of --sanitizer (`given`), else of PATH or CUDA_HOME; nil for "none",
-- and if there is none.
function sanitizer.find(given)
  if given == NONE then return nil end
  if given then
    if not given:find("/", 1, true) or not file.exists(given) then
      fail.input("--sanitizer: %s is no path of a program; a path such as /usr/local/cuda/bin/%s, or %s, is "
        .. "required", given, PROGRAM, NONE)
    end
    return given
  end
  local home = os.getenv("CUDA_HOME")
  local folders = (os.getenv("PATH") or "") .. (home and home ~= "" and ":" .. home .. "/bin" or "")
  for folder in folders:gmatch("[^:]+") do
    local path = folder .. "/" .. PROGRAM
    if file.exists(path) then return path end
  end
  return nil
end

-- The command line before the program. Failed calls of the driver are not errors: a program may try functions
-- that an older driver does not have.
function sanitizer.words(path)
  return { path, "--tool", "memcheck", "--target-processes", "all", "--report-api-errors", "no",
    "--error-exitcode", tostring(FOUND) }
end

-- ---- its output -------------------------------------------------------------------------------

local report = {}
report.__index = report

function sanitizer.report() return setmetatable({}, report) end

-- Takes a line of the output. An error is a headline with a location in the line below it:
--   ========= Invalid __global__ write of size 4 bytes
--   =========     at copy(float *)+0x60 in copy.cu:6
function report:take(line)
  if not line:find(MARK) then return end
  local text = line:gsub(MARK, "")
  local location = text:match("^%s+(at .*)$")
  if location and self.headline and not self.error then self.error = self.headline .. " " .. location end
  self.headline = not text:find("^%s") and text ~= "" and text or nil
  local complaint = text:match("^Error: (.*)$") or text:match("^Internal Sanitizer Error: (.*)$")
  if complaint and not complaint:find("didn't terminate", 1, true) then -- so the program itself ended
    self.complaint = self.complaint or complaint
  end
end

-- The error of the program, which ended for `reason` (nil: well); nil without one. Then also why
-- compute-sanitizer could not check it (nil: it could), and whether that holds for every program.
function report:verdict(reason)
  if self.error then return self.error end
  if self.complaint then return nil, self.complaint, true end
  if reason == ("exit code %d"):format(FOUND) then return "errors without a location" end
  return nil, reason, false
end

return sanitizer
