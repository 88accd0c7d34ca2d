-- The output of TensorRT-LLM's first all_reduce.py (generation A): the size in elements, and the time of the
-- whole loop in milliseconds, so that --calls must give the number of calls in a loop. Lines without a comma
-- come from other programs and are skipped.
local COLUMNS = { "world_size", "dtype", "message size", "strategy", "fusion", "version", "duration (ms)" }

local function is_header(fields)
  for i, name in ipairs(COLUMNS) do
    if fields[i] ~= name then return false end
  end
  return #fields == #COLUMNS
end

-- The row that these fields hold. Fused epilogues need the shape, of which only the product is printed.
local function row(source, line, fields)
  local dtype = source:name(line, "dtypes", "dtype", fields[2])
  local elements = source:whole(line, "message size", fields[3])
  local fusion = source:name(line, "fusions", "fusion", fields[5])
  if fusion ~= "NONE" and not source.options.hidden_size then
    source:fail(line, "%s of a message of which only the size is printed; --hidden-size N gives its tokens",
      fusion)
  end
  local size = elements * source.bytes_of(dtype)
  local num_tokens, hidden_size = source:shape_of_row(line, size, elements)
  if num_tokens == false then return nil end
  return source.record { line = line, world_size = source:whole(line, "world_size", fields[1], 1, 65535),
    dtype = dtype, size = size, num_tokens = num_tokens,
    hidden_size = hidden_size, fusion = fusion,
    strategy = source:name(line, "strategies", "strategy", fields[4]),
    time_us = source:time(line, "duration (ms)", fields[7]) * 1000 / source.options.calls }
end

return function(source)
  if not source.options.calls then
    source:fail(nil, "has times of whole loops; give the number of calls in a loop with --calls N")
  end
  local records, seen_header = {}, false
  for line, text in source:lines() do
    local fields = source.fields(text)
    if is_header(fields) then
      seen_header = true
    elseif seen_header and #fields > 1 then
      if #fields ~= #COLUMNS then
        source:fail(line, "%d fields; the header has %d", #fields, #COLUMNS)
      end
      records[#records + 1] = row(source, line, fields)
    end
  end
  if not seen_header then source:fail(1, "has no line %s", table.concat(COLUMNS, ", ")) end
  return { rows = records, no_time = {}, facts = { calls = source.options.calls } }
end
