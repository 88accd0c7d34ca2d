-- The work of each rank in a step: a workload (description.lua) as GEMMs, collectives and the order in which
-- they are computed, started and waited for, as request lines of gentables-workload
-- (bench/workload/program.h).
--
--   local program = steps.of(workload, ranks, backend)  { gemms, collectives, actions }, lists of words
--   steps.text(program)                                 the request lines
--
-- A GEMM's operands, result and gradient are of its dtype; each bucket and its collective have one dtype.
-- Steps that gentables-workload would reject (limits.lua) are rejected here, with their position in the file.
local fail = require "base.fail"
local limits = require "workload.limits"
local lists = require "lists.lists"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local description = require "workload.description"

local steps = {}

-- ---- building ----------------------------------------------------------------------------------

local builder = {}
builder.__index = builder

local function line(kind, fields)
  local words = { kind }
  for i, field in ipairs(fields) do words[i + 1] = ("%s=%s"):format(field[1], field[2]) end
  return table.concat(words, " ")
end

-- `where`: the layer or the GEMM of the file.
local function reject(self, where, message, ...)
  fail.input("%s: %s: %s", self.workload.path, where, message:format(...))
end

-- A name that is composed of those in the file.
local function check_name(self, name)
  if #name <= limits.name then return end
  reject(self, name, "has %d characters; maximum %d", #name, limits.name)
end

-- Adds a collective that sends or receives `most` elements on a rank: the `what` of `where`, for messages.
-- Returns its number.
function builder:collective(where, most, what, fields)
  if most > limits.elements then
    reject(self, where, "%s: %d elements in one collective; maximum %d", what, most,
      limits.elements)
  end
  check_name(self, fields[1][2])
  table.insert(self.collectives, line("collective", fields))
  return #self.collectives - 1
end

local function add_gemm(self, fields)
  check_name(self, fields[1][2])
  table.insert(self.gemms, line("gemm", fields))
  table.insert(self.actions, ("do gemm=%d"):format(#self.gemms - 1))
end

function builder:post(number) table.insert(self.actions, ("do post=%d"):format(number)) end

-- Adds a wait for a collective, unless the step already has one.
function builder:await(number)
  if number == nil or self.awaited[number] then return end
  self.awaited[number] = true
  table.insert(self.actions, ("do await=%d"):format(number))
end

-- A number, or one for each rank.
local function by_rank(value)
  return type(value) == "table" and table.concat(value, ",") or tostring(value)
end

-- The key in the file that is the number of products in each element of a result; for the weights' gradients
-- it is the key that gives rows.
local SUMMED = { forward = "k", input = "n" }

-- Checks a sum of `k` products, or of one number for each rank, added to `before`. Returns the total number.
local function check_sums(self, one, phase, k, before)
  local products = before + (type(k) == "table" and math.max(table.unpack(k)) or k)
  if products * self.ranks > limits.products then
    reject(self, one.label, "%s: a float32 is not exact for sums of %d products on each of %d ranks;"
      .. " maximum %d products", SUMMED[phase] or one.rows_come_by, products,
      self.ranks, limits.products // self.ranks)
  end
  return products
end

-- One of the three GEMMs of a layer's GEMM. `operands`: { a =, b =, into = } as words.
function builder:gemm(one, phase, rows, operands, accumulate)
  local forms = {
    forward = { m = rows, n = one.n, k = one.k, layout = "NT" },
    input = { m = rows, n = one.k, k = one.n, layout = "NN" },
    weight = { m = one.n, n = one.k, k = rows, layout = "TN" },
  }
  local form = forms[phase]
  local fields = { { "name", one.label }, { "m", by_rank(form.m) }, { "n", form.n }, { "k", by_rank(form.k) },
    { "layout", form.layout }, { "phase", phase == "forward" and "forward" or "backward" },
    { "sequence", one.sequence }, { "dtype", one.dtype } }
  for _, name in ipairs { "a", "b", "into" } do
    if operands and operands[name] then fields[#fields + 1] = { name, operands[name] } end
  end
  if accumulate then fields[#fields + 1] = { "accumulate", 1 } end
  local products = check_sums(self, one, phase, form.k, accumulate and one.products or 0)
  if phase == "weight" then one.products = products end
  add_gemm(self, fields)
end

-- ---- experts -----------------------------------------------------------------------------------

-- `rows` divided by weights, as whole numbers: the largest remainders get one more.
local function share(rows, weights)
  local total, out, left, order = 0, {}, rows, {}
  for _, weight in ipairs(weights) do total = total + weight end
  for i, weight in ipairs(weights) do
    out[i] = rows * weight // total
    left = left - out[i]
    order[i] = i
  end
  ordering.falling(order, function(i) return rows * weights[i] % total end)
  for i = 1, left do out[order[i]] = out[order[i]] + 1 end
  return out
end

-- The rows that each rank sends to each at the `call`-th call of experts: every rank's tokens are routed
-- alike. Returns sent[to] of any rank, and the rows that each rank gets.
local function routing(workload, layer, ranks, call)
  local weights, load = {}, layer.experts.load
  for rank = 0, ranks - 1 do weights[rank + 1] = load[(rank + call) % #load + 1] end
  local sent = share(workload.tokens // workload.micro_batches * layer.experts.top_k, weights)
  local rows = {}
  for rank = 1, ranks do
    rows[rank] = sent[rank] * ranks
    if rows[rank] == 0 then
      fail.input("%s: %s: rank %d of %d gets no tokens; give more tokens, or less uneven loads",
        workload.path, layer.name, rank - 1, ranks)
    end
    if rows[rank] > limits.longest then
      fail.input("%s: %s: rank %d of %d gets %d tokens; maximum %d; give fewer tokens or a smaller top_k",
        workload.path, layer.name, rank - 1, ranks, rows[rank], limits.longest)
    end
  end
  return sent, rows
end

-- The all_to_all of rows of this GEMM, each of so many elements, to the experts or back: `sent` to each of
-- them by each rank.
function builder:exchange(name, sent, one, width, back)
  local matrix, all, most = {}, 0, 0
  for from = 1, self.ranks do
    all, most = all + sent[from], math.max(most, sent[from] * self.ranks)
    for to = 1, self.ranks do
      matrix[#matrix + 1] = (back and sent[from] or sent[to]) * width
    end
  end
  return self:collective(one.label, math.max(all, most) * width, "tokens of experts", { { "name", name },
    { "kind", "all_to_all" }, { "dtype", one.dtype }, { "matrix", table.concat(matrix, ",") } })
end

-- The four exchanges of each micro-batch of an experts' layer, of the type of the GEMM at that end.
local function route(self, layer)
  layer.routes = {}
  local first, last = layer.gemms[1], layer.gemms[#layer.gemms]
  for part = 1, self.workload.micro_batches do
    local sent, rows = routing(self.workload, layer, self.ranks, self.calls)
    self.calls = self.calls + 1
    local function exchange(what, one, width, back)
      return self:exchange(("%s.%s.%d"):format(layer.name, what, part), sent, one, width, back)
    end
    layer.routes[part] = { rows = rows, dispatch = exchange("dispatch", first, first.k),
      combine = exchange("combine", last, last.n, true),
      gradient_dispatch = exchange("gradient_dispatch", last, last.n),
      gradient_combine = exchange("gradient_combine", first, first.k, true) }
  end
end

-- ---- gradients and weights ---------------------------------------------------------------------

-- GEMMs in buckets: the gradients of a bucket are summed together, in the order in which they are ready. Each
-- dtype fills its own bucket, which is closed when it has `limit_bytes` or at the end, as in PyTorch's
-- DistributedDataParallel (torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size).
local function gradients_by_bucket(layers, limit_bytes)
  local buckets, open, number = {}, {}, 0
  for l = #layers, 1, -1 do
    for g = #layers[l].gemms, 1, -1 do
      local one = layers[l].gemms[g]
      if not layers[l].experts and one.backward then
        local bucket = open[one.dtype]
        if not bucket then
          bucket = { dtype = one.dtype, size = 0 }
          open[one.dtype], buckets[#buckets + 1] = bucket, bucket
        end
        number = number + 1
        one.offset, bucket.size, bucket.ready = bucket.size, bucket.size + one.n * one.k, number
        bucket[#bucket + 1] = one
        if bucket.size * lists.find("dtypes", one.dtype).bytes >= limit_bytes then open[one.dtype] = nil end
      end
    end
  end
  return ordering.sort(buckets, ordering.by("ready"))
end

-- Sets the bucket of each gradient, one.into, and one.closes of a bucket's last GEMM.
local function make_buckets(self, limit_bytes)
  for i, bucket in ipairs(gradients_by_bucket(self.layers, limit_bytes)) do
    local number = self:collective(bucket[#bucket].label, bucket.size, "gradients, n * k",
      { { "name", ("bucket%d"):format(i) }, { "kind", "allreduce" }, { "dtype", bucket.dtype },
        { "elements", bucket.size } })
    for _, one in ipairs(bucket) do one.into = ("%d@%d"):format(number, one.offset) end
    bucket[#bucket].closes = number
  end
end

-- A layer's GEMMs by dtype: each array has one dtype.
local function by_dtype(gemms)
  local groups = ordering.groups(gemms, function(one) return one.dtype end)
  for _, group in ipairs(groups) do
    group.dtype, group.size = group.key, 0
    for _, one in ipairs(group) do
      one.offset, group.size = group.size, group.size + one.n * one.k
    end
  end
  return groups
end

-- The gathers of weights of one dtype, and the scatter of their gradients, if they have any. `suffix`
-- distinguishes them from those of the layer's other dtypes.
local function spread_group(self, layer, group, suffix)
  local part = (group.size + self.ranks - 1) // self.ranks
  local function collective(what, kind)
    return self:collective(layer.name, part * self.ranks, "weights, n * k", {
      { "name", layer.name .. "." .. what .. suffix }, { "kind", kind }, { "dtype", group.dtype },
      { "elements", part } })
  end
  local gather, gather_again = collective("gather", "all_gather"), collective("gather_again", "all_gather")
  local scatter
  for _, one in ipairs(group) do
    one.weights = ("%d@%d"):format(gather, one.offset)
    one.weights_again = ("%d@%d"):format(gather_again, one.offset)
    if one.backward then
      scatter = scatter or collective("scatter", "reduce_scatter")
      one.into = ("%d@%d"):format(scatter, one.offset)
    end
  end
  table.insert(layer.gathers, gather)
  table.insert(layer.gathers_again, gather_again)
  layer.scatters[#layer.scatters + 1] = scatter
end

-- Weights spread over the ranks: a gather before each pass, and a scatter of the gradients.
local function spread(self)
  for _, layer in ipairs(self.layers) do
    local groups = layer.experts and {} or by_dtype(layer.gemms)
    for _, group in ipairs(groups) do
      spread_group(self, layer, group, #groups > 1 and "." .. lists.find("dtypes", group.dtype).short or "")
    end
  end
end

-- ---- passes ------------------------------------------------------------------------------------

-- Posts the collectives that are not posted yet.
local function post_once(self, numbers)
  for _, number in ipairs(numbers) do
    if not self.gathered[number] then self:post(number) end
    self.gathered[number] = true
  end
end

-- Posts the gathers of this layer and of the next one in this direction that has any, and waits for this
-- layer's.
local function gather(self, at, step, field)
  local layer, next_at = self.layers[at], at + step
  if #layer[field] == 0 then return end
  post_once(self, layer[field])
  while self.layers[next_at] and #self.layers[next_at][field] == 0 do next_at = next_at + step end
  if self.layers[next_at] then post_once(self, self.layers[next_at][field]) end
  for _, number in ipairs(layer[field]) do self:await(number) end
end

local function operand(number) return number and ("%d@0"):format(number) or nil end

local function forward_layer(self, l, part)
  local layer, before, after = self.layers[l], self.layers[l - 1], self.layers[l + 1]
  local route_here = layer.routes and layer.routes[part]
  if before and before.routes then self:await(before.routes[part].combine) end
  if route_here then
    if before and before.routes then self:post(route_here.dispatch) end
    self:await(route_here.dispatch)
  end
  gather(self, l, 1, "gathers")
  for g, one in ipairs(layer.gemms) do
    self:gemm(one, "forward", route_here and route_here.rows or one.m, {
      a = route_here and g == 1 and operand(route_here.dispatch) or nil, b = one.weights,
      into = route_here and g == #layer.gemms and operand(route_here.combine) or nil })
  end
  if route_here then self:post(route_here.combine) end
  if not route_here and after and after.routes then self:post(after.routes[part].dispatch) end
end

-- The backward GEMMs of one of a layer's GEMMs; starts the collectives with complete input.
local function backward_gemm(self, layer, g, part)
  local one, here = layer.gemms[g], layer.routes and layer.routes[part]
  local rows = here and here.rows or one.m
  local from = here and g == #layer.gemms and operand(here.gradient_dispatch) or nil
  self:gemm(one, "input", rows, { a = from, b = one.weights_again,
    into = here and g == 1 and operand(here.gradient_combine) or nil })
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
  gather(self, l, -1, "gathers_again")
  for g = #layer.gemms, 1, -1 do
    if layer.gemms[g].backward then backward_gemm(self, layer, g, part) end
  end
  if here then self:post(here.gradient_combine) end
  if not here and before and before.routes then self:post(before.routes[part].gradient_dispatch) end
  if part == self.workload.micro_batches then
    for _, number in ipairs(layer.scatters) do self:post(number) end
  end
end

-- The input of experts in the first layer exists from the beginning, for every micro-batch.
local function begin(self)
  for _, routes in ipairs(self.layers[1].routes or {}) do self:post(routes.dispatch) end
end

-- The end of the forward pass: after the last layer come the losses, and with each micro-batch's loss its
-- gradients.
local function turn(self)
  for _, routes in ipairs(self.layers[#self.layers].routes or {}) do
    self:await(routes.combine)
    self:post(routes.gradient_dispatch)
  end
end

-- ---- public ------------------------------------------------------------------------------------

-- Copies of the layers; their GEMMs have labels, sequence numbers and the dtype of this backend.
local function layers_of(workload, backend)
  local layers, sequence, dtype = {}, 0, description.dtype_on(workload, backend)
  for l, layer in ipairs(workload.layers) do
    layers[l] = { name = layer.name, experts = layer.experts, gemms = {}, gathers = {}, gathers_again = {},
      scatters = {} }
    for g, one in ipairs(layer.gemms) do
      layers[l].gemms[g] = { label = layer.name .. "." .. one.name, n = one.n, k = one.k, m = one.m,
        rows_come_by = one.rows_come_by, backward = one.backward, sequence = sequence,
        dtype = one.dtype[backend] or dtype }
      sequence = sequence + 1
    end
  end
  return layers
end

-- Experts' GEMMs follow each other on the received rows; if the first or the last has no backward part, the
-- buffer that is sent back stays empty.
local function check_experts(workload, layer)
  local gemms = layer.gemms
  if gemms[1].backward and gemms[#gemms].backward then return end
  fail.input("%s: %s: the first and the last GEMM of experts need their backward ones", workload.path,
    layer.name)
end

-- A collective is at least one action, so this limits collectives, too.
local function check_actions(self)
  if #self.actions <= limits.items then return end
  reject(self, "layers", "a step has %d actions: GEMMs, starts and waits of collectives;"
    .. " maximum %d", #self.actions, limits.items)
end

function steps.of(workload, ranks, backend)
  local self = setmetatable({ workload = workload, ranks = ranks, layers = layers_of(workload, backend),
    gemms = {}, collectives = {}, actions = {}, awaited = {}, gathered = {}, calls = 0 }, builder)
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
  check_actions(self)
  return { name = workload.name, gemms = self.gemms, collectives = self.collectives, actions = self.actions }
end

function steps.text(program)
  local head = ("begin name=%s gemms=%d collectives=%d actions=%d seed=1"):format(program.name,
    #program.gemms, #program.collectives, #program.actions)
  local lines = sequences.join { { head }, program.collectives, program.gemms, program.actions, { "end\n" } }
  return table.concat(lines, "\n")
end

return steps
