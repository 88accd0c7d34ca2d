-- The digest of a trace: a small file with the parts of a trace that results over ranks are made of. It is
-- read in place of its trace, and gives the same results. trace/digests/ makes digests.
--
--   local digest = trace_digest.open "rank0.json.digest"
--   local info = digest:get { field = "info" }
--
-- The file has two lines: "gentables digest", the format and the program's version; the size of the header
-- and its hash. Then come the header and the parts, each as trace/runs/pack.lua writes it. The header:
--   source, identity  the absolute path of the trace, and its identity (trace_digest.identity) when it was
--                     read
--   contents          the hash of the trace's bytes
--   kernels           the hash of the user's kernels that communicate ("": none)
--   selection         the selected steps and annotations, as of opening.selected
--   bytes             the size of all parts
--   parts             { [field] = { at = offset among the parts, bytes, hash } }
local communication = require "lists.communication"
local fail = require "base.fail"
local file = require "core.file"
local opening = require "trace.analysis.opening"
local ordering = require "base.ordering"
local pack = require "trace.runs.pack"
local sequences = require "base.sequences"
local system = require "core.system"

local trace_digest = {}
trace_digest.__index = trace_digest

-- The end of a digest's name, behind the name of its trace.
trace_digest.ENDING = ".digest"

local FORMAT = 2 -- one more with each change of a part
local FIRST = ("gentables digest %d of "):format(FORMAT)
local AGAIN = "make it again with gentables trace digest"

-- ---- the identity of a trace --------------------------------------------------------------------------

-- The boot of this machine, so that numbers of devices are compared only within one.
local boot = (file.read "/proc/sys/kernel/random/boot_id" or ""):match("%S*")

-- The identity of the file at `path`, or nil, message: { device, inode, size, changed, status_changed,
-- boot }.
function trace_digest.identity(path)
  local identity, message = system.identity(path)
  if identity then identity.boot = boot end
  return identity, message
end

-- Whether two identities are of one file, unchanged. Another machine, or another boot, may number its devices
-- otherwise.
function trace_digest.same(a, b)
  return a.inode == b.inode and a.size == b.size and a.changed == b.changed
    and a.status_changed == b.status_changed and (a.boot ~= b.boot or a.device == b.device)
end

-- The hash of the user's kernels of --collectives; "" without.
function trace_digest.kernels()
  local rows = sequences.map(communication.added, function(row)
    return table.concat({ row.pattern, row.operation or "", row.library or "", row.algorithm or "" }, "\0")
  end)
  return #rows > 0 and system.hash(table.concat(rows, "\1")) or ""
end

-- ---- writing ------------------------------------------------------------------------------------------

-- Writes the digest of the trace `source` (an absolute path), whole or not at all. values: { [field] = the
-- part }. Raises if that fails.
function trace_digest.write(path, source, identity, contents, values)
  local header = { source = source, identity = identity, contents = contents,
    kernels = trace_digest.kernels(), selection = opening.selected(), bytes = 0, parts = {} }
  local texts = {}
  for field, value in pairs(values) do
    local text = pack.pack(value)
    header.parts[field] = { at = header.bytes, bytes = #text, hash = system.hash(text) }
    header.bytes = header.bytes + #text
    texts[#texts + 1] = text
  end
  local head = pack.pack(header)
  local lines = ("%s%s\n%d %s\n"):format(FIRST, gentables.version, #head, system.hash(head))
  fail.unless_done(file.write(path, lines .. head .. table.concat(texts)))
end

-- ---- reading ------------------------------------------------------------------------------------------

-- Why a file with this first line is not read; nil: it is.
local function refusal(line)
  if line == FIRST .. gentables.version then return nil end
  if not (line or ""):find("^gentables digest ") then return "is not a digest of gentables trace digest" end
  local format, version = line:match("^gentables digest (%d+) of (.*)$")
  return ("is a digest of another version of gentables (%s, format %s; this is %s, format %d); %s"):format(
    fail.cut(version or "unknown", 40), fail.cut(format or "unknown", 10), gentables.version, FORMAT, AGAIN)
end

-- The next `size` bytes of a file; nil if their hash is another.
local function next_bytes(opened, size, hash)
  local bytes = opened:read(size)
  return bytes and system.hash(bytes) == hash and bytes or nil
end

-- The header and the offset of the parts, or nil, the reason.
local function header_of(opened)
  local why = refusal(opened:read("l"))
  if why then return nil, why end
  local size, hash = (opened:read("l") or ""):match("^(%d+) (%x+)$")
  local head = size and #size < 10 and next_bytes(opened, tonumber(size), hash)
  local header, at = head and pack.unpack(head), opened:seek()
  if not header or opened:seek("end") ~= at + header.bytes then return nil, "is truncated; " .. AGAIN end
  return header, at
end

-- Opens the digest at `path`; only its header is read. Returns nil, message if it cannot be used.
function trace_digest.open(path)
  local opened <close>, message = io.open(path, "rb")
  if not opened then return nil, message end
  local header, at = header_of(opened)
  if not header then return nil, ("%s: %s"):format(path, at) end
  if header.kernels ~= trace_digest.kernels() then
    return nil, ("%s: was made with other kernels of --collectives; give the same file, or %s"):format(path,
      AGAIN)
  end
  if header.selection ~= opening.selected() then
    return nil, ("%s: was made with other --steps, --annotation or --capture; give the same ones, or %s")
      :format(path, AGAIN)
  end
  return setmetatable({ path = path, header = header, at = at }, trace_digest)
end

local function bytes_at(self, place)
  local opened <close> = io.open(self.path, "rb")
  return opened and opened:seek("set", self.at + place.at) and next_bytes(opened, place.bytes, place.hash)
end

-- The bytes of a part; nil if they cannot be read or are damaged: self.damage is then the end of a message.
local function bytes_of(self, field)
  local place = self.header.parts[field] or fail.input("%s: has no %s; %s", self.path, field, AGAIN)
  local bytes = bytes_at(self, place)
  -- Another process may have made the digest again since it was opened, with the parts in another order.
  local again = not bytes and trace_digest.open(self.path)
  if again and trace_digest.same(again.header.identity, self.header.identity) then
    self.header, self.at = again.header, again.at
    bytes = bytes_at(self, self.header.parts[field])
  end
  if not bytes then self.damage = (again and ": is damaged in " or ": cannot be read again for ") .. field end
  return bytes
end

-- The value of a part { field }. Raises if it is damaged.
function trace_digest:get(part)
  local bytes = bytes_of(self, part.field)
  if bytes then return (pack.unpack(bytes)) end
  fail.input("%s%s; %s --verify", self.path, self.damage, AGAIN)
end

-- Whether all parts are undamaged.
function trace_digest:is_whole()
  return sequences.all(ordering.sorted_keys(self.header.parts), function(field)
    return bytes_of(self, field) ~= nil
  end)
end

-- Whether the trace at `path` is the one that was read, unchanged. false, if there is none.
function trace_digest:is_of(path)
  local identity = trace_digest.identity(path)
  return identity ~= nil and trace_digest.same(identity, self.header.identity)
end

-- Whether all bytes of the digest are undamaged, and the trace at `path` has those that were read.
function trace_digest:is_verified(path)
  return self:is_whole() and system.hash_file(path) == self.header.contents
end

return trace_digest
