-- What each rank does in a step: a workload (model.lua) as GEMMs, collectives and the order in which they are
-- computed, handed over and waited for, in the words of gentables-workload (bench/workload/program.h).
--
--   local program = steps.of(workload, ranks, dtype)  { gemms, collectives, actions }, lists of words; of
--                                                 elements of the host's floats, unless dtype says others
--   steps.text(program)                           the request lines
local fail = require "fail"

local steps = {}

local ELEMENT_BYTES = { float32 = 4, bfloat16 = 2, float16 = 2 }

-- ---- building ----------------------------------------------------------------------------------

local builder = {}
builder.__index = builder

local function line(kind, fields)
  local words = { kind }
  for i, field in ipairs(fields) do words[i + 1] = ("%s=%s"):format(field[1], field[2]) end
  return table.concat(words, " ")
end

-- Adds a collective; returns its number.
function builder:collective(fields)
  table.insert(self.collectives, line("collective", fields))
  return #self.collectives - 1
end

local function add_gemm(self, fields)
  table.insert(self.gemms, line("gemm", fields))
  table.insert(self.actions, ("do gemm=%d"):format(#self.gemms - 1))
end

function builder:post(number) table.insert(self.actions, ("do post=%d"):format(number)) end

-- Once: a second wait for the same is none.
function builder:await(number)
  if number == nil or self.awaited[number] then return end
  self.awaited[number] = true
  table.insert(self.actions, ("do await=%d"):format(number))
end

-- A number, or one for each rank.
local function by_rank(value)
  return type(value) == "table" and table.concat(value, ",") or tostring(value)
end

-- One of the three GEMMs that a layer's GEMM stands for. `places`: { a =, b =, into = } as words.
function builder:gemm(one, phase, rows, places, accumulate)
  local forms = {
    forward = { m = rows, n = one.n, k = one.k, layout = "NT" },
    input = { m = rows, n = one.k, k = one.n, layout = "NN" },
    weight = { m = one.n, n = one.k, k = rows, layout = "TN" },
  }
  local form = forms[phase]
  local fields = { { "name", one.label }, { "m", by_rank(form.m) }, { "n", form.n }, { "k", by_rank(form.k) },
    { "layout", form.layout }, { "phase", phase == "forward" and "forward" or "backward" },
    { "sequence", one.sequence } }
  for _, place in ipairs { "a", "b", "into" } do
    if places and places[place] then fields[#fields + 1] = { place, places[place] } end
  end
  if accumulate then fields[#fields + 1] = { "accumulate", 1 } end
  add_gemm(self, fields)
end

-- ---- experts -----------------------------------------------------------------------------------

-- `rows` shared out by weights, as whole numbers: the largest remainders get one more.
local function share(rows, weights)
  local total, out, left, order = 0, {}, rows, {}
  for _, weight in ipairs(weights) do total = total + weight end
  for i, weight in ipairs(weights) do
    out[i] = rows * weight // total
    left = left - out[i]
    order[i] = { i, rows * weight % total }
  end
  table.sort(order, function(a, b)
    if a[2] ~= b[2] then return a[2] > b[2] end
    return a[1] < b[1]
  end)
  for i = 1, left do out[order[i][1]] = out[order[i][1]] + 1 end
  return out
end

-- How many rows each rank sends to each, the `call`-th time that experts are called: every rank's tokens are
-- routed alike. Returns sent[to] of any rank, and the rows that each rank gets.
local function routing(workload, layer, ranks, call)
  local weights, load = {}, layer.experts.load
  for rank = 0, ranks - 1 do weights[rank + 1] = load[(rank + call) % #load + 1] end
  local sent = share(workload.tokens // workload.micro_batches * layer.experts.top_k, weights)
  local rows = {}
  for rank = 1, ranks do
    rows[rank] = sent[rank] * ranks
    if rows[rank] == 0 then
      fail.input("%s: %s: rank %d of %d gets no tokens; more tokens, or less uneven loads, would be right",
        workload.path, layer.name, rank - 1, ranks)
    end
  end
  return sent, rows
end

-- The all_to_all that brings rows of this width to the experts, or back.
function builder:exchange(name, sent, width, back)
  local matrix = {}
  for from = 1, self.ranks do
    for to = 1, self.ranks do
      matrix[#matrix + 1] = (back and sent[from] or sent[to]) * width
    end
  end
  return self:collective { { "name", name }, { "kind", "all_to_all" },
    { "matrix", table.concat(matrix, ",") } }
end

-- The four exchanges of each micro-batch of an experts' layer.
local function route(self, layer)
  layer.routes = {}
  local first, last = layer.gemms[1], layer.gemms[#layer.gemms]
  for part = 1, self.workload.micro_batches do
    local sent, rows = routing(self.workload, layer, self.ranks, self.calls)
    self.calls = self.calls + 1
    local function exchange(what, width, back)
      return self:exchange(("%s.%s.%d"):format(layer.name, what, part), sent, width, back)
    end
    layer.routes[part] = { rows = rows, dispatch = exchange("dispatch", first.k),
      combine = exchange("combine", last.n, true), gradient_dispatch = exchange("gradient_dispatch", last.n),
      gradient_combine = exchange("gradient_combine", first.k, true) }
  end
end

-- ---- gradients and weights ---------------------------------------------------------------------

-- Where each gradient goes: buckets in the order in which they are ready. one.bucket, one.offset; and a
-- bucket's last GEMM has one.closes.
local function make_buckets(self, limit_bytes)
  local bucket, size = {}, 0
  local function close()
    if #bucket == 0 then return end
    self.buckets = self.buckets + 1
    local number = self:collective { { "name", ("bucket%d"):format(self.buckets) }, { "kind", "allreduce" },
      { "elements", size } }
    for _, one in ipairs(bucket) do one.into = ("%d@%d"):format(number, one.offset) end
    bucket[#bucket].closes, bucket, size = number, {}, 0
  end
  for l = #self.layers, 1, -1 do
    for g = #self.layers[l].gemms, 1, -1 do
      local one = self.layers[l].gemms[g]
      if not self.layers[l].experts and one.backward then
        one.offset, size = size, size + one.n * one.k
        bucket[#bucket + 1] = one
        if size * ELEMENT_BYTES[self.dtype] >= limit_bytes then close() end
      end
    end
  end
  close()
end

-- Weights spread over the ranks: a gather before each pass, and a scatter of the gradients.
local function spread(self)
  for _, layer in ipairs(self.layers) do
    local size = 0
    for _, one in ipairs(layer.gemms) do
      one.offset, size = size, size + one.n * one.k
    end
    local part = (size + self.ranks - 1) // self.ranks
    local function collective(what, kind)
      return self:collective { { "name", layer.name .. "." .. what }, { "kind", kind }, { "elements", part } }
    end
    if not layer.experts then
      layer.gather = collective("gather", "all_gather")
      layer.gather_again = collective("gather_again", "all_gather")
      local scatter = collective("scatter", "reduce_scatter")
      local has_gradient = false
      for _, one in ipairs(layer.gemms) do
        one.weights = ("%d@%d"):format(layer.gather, one.offset)
        one.weights_again = ("%d@%d"):format(layer.gather_again, one.offset)
        if one.backward then
          one.into, has_gradient = ("%d@%d"):format(scatter, one.offset), true
        end
      end
      layer.scatter = has_gradient and scatter or nil
    end
  end
end

-- ---- passes ------------------------------------------------------------------------------------

-- Posts the gather of the next layer in this direction that has one, and waits for this one's.
local function gather(self, at, step, field)
  local layer = self.layers[at]
  if not layer[field] then return end
  if not self.gathered[layer[field]] then self:post(layer[field]) end
  self.gathered[layer[field]] = true
  local next_at = at + step
  while self.layers[next_at] and not self.layers[next_at][field] do next_at = next_at + step end
  local following = self.layers[next_at] and self.layers[next_at][field]
  if following and not self.gathered[following] then
    self.gathered[following] = true
    self:post(following)
  end
  self:await(layer[field])
end

local function place(number) return number and ("%d@0"):format(number) or nil end

local function forward_layer(self, l, part)
  local layer, before, after = self.layers[l], self.layers[l - 1], self.layers[l + 1]
  local route_here = layer.routes and layer.routes[part]
  if before and before.routes then self:await(before.routes[part].combine) end
  if route_here then
    if before and before.routes then self:post(route_here.dispatch) end
    self:await(route_here.dispatch)
  end
  gather(self, l, 1, "gather")
  for g, one in ipairs(layer.gemms) do
    self:gemm(one, "forward", route_here and route_here.rows or one.m, {
      a = route_here and g == 1 and place(route_here.dispatch) or nil, b = one.weights,
      into = route_here and g == #layer.gemms and place(route_here.combine) or nil })
  end
  if route_here then self:post(route_here.combine) end
  if not route_here and after and after.routes then self:post(after.routes[part].dispatch) end
end

-- The backward GEMMs of one of a layer's GEMMs; hands over what is whole then.
local function backward_gemm(self, layer, g, part)
  local one, here = layer.gemms[g], layer.routes and layer.routes[part]
  local rows = here and here.rows or one.m
  local from = here and g == #layer.gemms and place(here.gradient_dispatch) or nil
  self:gemm(one, "input", rows, { a = from, b = one.weights_again,
    into = here and g == 1 and place(here.gradient_combine) or nil })
  self:gemm(one, "weight", rows, { a = from, into = one.into }, one.into and part > 1)
  local last_part = part == self.workload.micro_batches
  if last_part and one.closes then self:post(one.closes) end
end

local function backward_layer(self, l, part)
  local layer, before, after = self.layers[l], self.layers[l - 1], self.layers[l + 1]
  local here = layer.routes and layer.routes[part]
  if after and after.routes then self:await(after.routes[part].gradient_combine) end
  if here then
    if after and after.routes then self:post(here.gradient_dispatch) end
    self:await(here.gradient_dispatch)
  end
  gather(self, l, -1, "gather_again")
  for g = #layer.gemms, 1, -1 do
    if layer.gemms[g].backward then backward_gemm(self, layer, g, part) end
  end
  if here then self:post(here.gradient_combine) end
  if not here and before and before.routes then self:post(before.routes[part].gradient_dispatch) end
  if layer.scatter and part == self.workload.micro_batches then self:post(layer.scatter) end
end

-- What experts in the first layer compute on is there from the beginning, for every micro-batch.
local function begin(self)
  for _, routes in ipairs(self.layers[1].routes or {}) do self:post(routes.dispatch) end
end

-- The forward pass is over: behind the last layer come the losses, and with each micro-batch's its gradients.
local function turn(self)
  for _, routes in ipairs(self.layers[#self.layers].routes or {}) do
    self:await(routes.combine)
    self:post(routes.gradient_dispatch)
  end
end

-- ---- public ------------------------------------------------------------------------------------

-- Copies of the layers, whose GEMMs have labels and sequence numbers.
local function layers_of(workload)
  local layers, sequence = {}, 0
  for l, layer in ipairs(workload.layers) do
    layers[l] = { name = layer.name, experts = layer.experts, gemms = {} }
    for g, one in ipairs(layer.gemms) do
      layers[l].gemms[g] = { label = layer.name .. "." .. one.name, n = one.n, k = one.k, m = one.m,
        backward = one.backward, sequence = sequence }
      sequence = sequence + 1
    end
  end
  return layers
end

-- Experts' GEMMs follow each other on the rows that came; where the first or last has no backward part,
-- nothing would fill what is sent back.
local function check_experts(workload, layer)
  local gemms = layer.gemms
  if gemms[1].backward and gemms[#gemms].backward then return end
  fail.input("%s: %s: the first and the last GEMM of experts need their backward ones", workload.path,
    layer.name)
end

function steps.of(workload, ranks, dtype)
  local self = setmetatable({ workload = workload, ranks = ranks, dtype = dtype or "float32",
    layers = layers_of(workload), gemms = {}, collectives = {}, actions = {}, awaited = {}, gathered = {},
    calls = 0, buckets = 0 }, builder)
  for _, layer in ipairs(self.layers) do
    if layer.experts then
      check_experts(workload, layer)
      route(self, layer)
    end
  end
  if workload.gradients.collective == "allreduce" then make_buckets(self, workload.gradients.bucket_bytes) end
  if workload.gradients.collective == "reduce_scatter" then spread(self) end
  begin(self)
  for l = 1, #self.layers do
    for part = 1, workload.micro_batches do forward_layer(self, l, part) end
  end
  turn(self)
  for l = #self.layers, 1, -1 do
    for part = 1, workload.micro_batches do backward_layer(self, l, part) end
  end
  return { name = workload.name, dtype = self.dtype, gemms = self.gemms, collectives = self.collectives,
    actions = self.actions }
end

function steps.text(program)
  local out = { ("begin name=%s gemms=%d collectives=%d actions=%d seed=1 dtype=%s"):format(program.name,
    #program.gemms, #program.collectives, #program.actions, program.dtype) }
  for _, list in ipairs { program.collectives, program.gemms, program.actions } do
    table.move(list, 1, #list, #out + 1, out)
  end
  out[#out + 1] = "end\n"
  return table.concat(out, "\n")
end

return steps
