-- Measurements for optimize_config.py of NCCL's example tuner: a strategy for each algorithm, protocol and
-- number of channels (NCCL_RING_LL128_8CH). --nodes chooses one of several numbers of nodes.

local REQUIRED = { "collective", "size_bytes", "algorithm", "protocol", "channels", "nodes", "ranks",
  "latency_us" }
local KNOWN = { pipeOps = true, regBuff = true, cost_metric = true, bandwidth_gbps = true }
for _, name in ipairs(REQUIRED) do KNOWN[name] = true end
local COLLECTIVES = { broadcast = true, reduce = true, allgather = true, reducescatter = true }

local function columns_of(source, line, text)
  local names, indices = source.fields(text), {}
  for i, name in ipairs(names) do
    if not KNOWN[name] then source:fail(line, "unknown column %s", source.shown(name)) end
    if indices[name] then source:fail(line, "the column %s occurs twice", name) end
    indices[name] = i
  end
  for _, name in ipairs(REQUIRED) do
    if not indices[name] then source:fail(line, "there is no column %s", name) end
  end
  return names
end

local function row(source, line, named, nodes)
  local dtype = source:dtype("bfloat16")
  local size, bytes = source:whole(line, "size_bytes", named.size_bytes), source.bytes_of(dtype)
  if size % bytes ~= 0 then source:fail(line, "%d B are no whole elements of %s", size, dtype) end
  local num_tokens, hidden_size = source:shape_of_row(line, size, size // bytes)
  if num_tokens == false then return nil end
  local placement = source:placement(line, source:whole(line, "ranks", named.ranks, 1, 65535), nodes)
  local channels = source:whole(line, "channels", named.channels, -1, 1024)
  return source.record { line = line, world_size = placement.world_size, nodes = placement.nodes,
    ranks_per_node = placement.ranks_per_node, dtype = dtype, size = size, num_tokens = num_tokens,
    hidden_size = hidden_size, time_us = source:time(line, "latency_us", named.latency_us),
    strategy = source:nccl_strategy(line, named.algorithm, named.protocol, channels, source.shown) }
end

return function(source)
  local records, names = {}, nil
  for line, text in source:lines() do
    if not names then
      names = columns_of(source, line, text)
    elseif text:find("%S") then
      local fields, named = source.fields(text), {}
      if #fields ~= #names then source:fail(line, "%d fields; the header has %d", #fields, #names) end
      for i, name in ipairs(names) do named[name] = fields[i] end
      local nodes = source:whole(line, "nodes", named.nodes)
      if named.collective ~= "allreduce" then
        if not COLLECTIVES[named.collective] then
          source:fail(line, "unknown collective %s", source.shown(named.collective))
        end
        source:leave_out("of other collectives than allreduce")
      elseif source.options.nodes and nodes ~= source.options.nodes then
        source:leave_out("of another number of nodes")
      else
        records[#records + 1] = row(source, line, named, nodes)
      end
    end
  end
  return { rows = records, no_time = {}, facts = {} }
end
