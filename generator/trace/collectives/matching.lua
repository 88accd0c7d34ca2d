-- Matches the events of different ranks that are the same collective: by group, by common metadata, and by
-- time. An event that one rank lost, or has too many, does not shift the others.
--
-- Ranks are aligned one after the other with the collectives found so far (slots, in order), at least cost: a
-- match costs the distance of the ends or the starts, in µs; an unmatched event costs a penalty. The penalty
-- is small if matches by order are good, so that one missing event is found, and large if the times do not
-- distinguish events; two events that overlap cost at most the penalty. If no other order can be cheaper,
-- which is the usual case, only the order decides.
local kinds = require "trace.collectives.kinds"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local statistics = require "base.statistics"

local matching = {}

local BAND = 64 -- events by which two ranks may differ within a window
local WINDOW = 256 -- events that are aligned at once
local NOISE_FACTOR, LEAST_SPACINGS, MOST_SPACINGS = 10, 0.25, 2
local SHIFT_SPACINGS = 12 -- the least saving of an offset between two clocks, in spacings

-- ---- groups and signatures ---------------------------------------------------------------------

-- The metadata that all events of a collective have in common.
local function signature_of(metadata, stream)
  if not metadata.name then return ("%s\0%s"):format(metadata.kernel, stream) end
  local kind = kinds.of(metadata.name)
  local parts = { kind.pair and "point to point" or metadata.name, metadata.dtype or "" }
  if kind.same_sizes then
    parts[#parts + 1] = metadata.in_elements or ""
    parts[#parts + 1] = metadata.out_elements or ""
  elseif kind.pair then
    parts[#parts + 1] = math.max(metadata.in_elements or 0, metadata.out_elements or 0)
  end
  return table.concat(parts, "\0")
end

-- Streams distinguish events without metadata only if all ranks have the same names for them.
local function streams_agree(ranks)
  local first
  for _, rank in ipairs(ranks) do
    local set, list = {}, {}
    for _, event in ipairs(rank.events) do
      if not rank.metadata[event.metadata].name and not set[event.stream] then
        set[event.stream] = true
        list[#list + 1] = event.stream
      end
    end
    table.sort(list)
    local text = table.concat(list, " ")
    first = first or text
    if text ~= first then return false end
  end
  return true
end

-- Whether events of this kind can be matched: not sends and receives of groups with more than two ranks,
-- because their partners are unknown.
local function is_matchable(metadata)
  local pair = metadata.name and kinds.of(metadata.name).pair
  return not pair or metadata.group_size == 2
end

-- A rank's items to match: { event, uid, metadata, rank_index, start, stop, signature }, sorted by start.
local function items_of(rank, rank_index, same_streams)
  local items = sequences.map(rank.events, function(event)
    local metadata, start = rank.metadata[event.metadata], event.start + (rank.shift or 0)
    return { event = event, uid = event.uid, metadata = metadata, rank_index = rank_index, start = start,
      stop = start + event.duration, signature = signature_of(metadata, same_streams and event.stream or "") }
  end)
  return ordering.sort(items, ordering.by("start", "uid"))
end

-- { name, ranks (texts or nil), lists = { [rank_index] = items to match }, alone = { [rank_index] = items
-- that cannot be matched } }, in order of first appearance.
local function groups_of(ranks)
  local groups, of_key, same_streams = {}, {}, streams_agree(ranks)
  for rank_index, rank in ipairs(ranks) do
    for _, item in ipairs(items_of(rank, rank_index, same_streams)) do
      local key = (item.metadata.group or "\0") .. "\0" .. (item.metadata.ranks or "")
      local group = sequences.entry(groups, of_key, key, function()
        return { name = item.metadata.group, ranks = item.metadata.ranks, lists = {}, alone = {} }
      end)
      local lists = is_matchable(item.metadata) and group.lists or group.alone
      table.insert(sequences.at(lists, rank_index), item)
    end
  end
  return groups
end

-- ---- alignment of one list with the slots ------------------------------------------------------

local function mean_spacing(list)
  if #list < 2 then return 1 end
  return math.max((list[#list].stop - list[1].stop) / (#list - 1), 1e-3)
end

-- The distance of two events in time; `offset`: the delay of the item's clock.
local function distance(slot, item, offset)
  return math.min(math.abs(item.stop - offset - slot.stop), math.abs(item.start - offset - slot.start))
end

local function match_cost(slot, item, offset, penalty)
  local apart = distance(slot, item, offset)
  if apart <= penalty then return apart end
  local overlap = item.start - offset < slot.stop and slot.start < item.stop - offset
  return overlap and penalty or apart
end

-- The cost of an unmatched event. `offset`: the delay of `list`'s clock.
local function penalty_of(slots, list, offset)
  local apart = {}
  for i = 1, math.min(#slots, #list) do
    apart[i] = distance(slots[i], list[i], offset)
  end
  local spacing = math.max(mean_spacing(slots), mean_spacing(list))
  local noise = NOISE_FACTOR * (statistics.median(apart) or 0)
  return math.min(math.max(noise, LEAST_SPACINGS * spacing), MOST_SPACINGS * spacing)
end

-- The cost of matching in order, or nil if that is impossible.
local function order_cost(slots, list, offset, penalty)
  if #slots ~= #list then return nil end
  local sum = 0
  for i, item in ipairs(list) do
    if item.signature ~= slots[i].signature then return nil end
    sum = sum + match_cost(slots[i], item, offset, penalty)
  end
  return sum
end

-- Aligns the window's `rows` items from `item` on and `columns` slots from `slot` on by dynamic programming
-- within a band. Returns the steps.
local function align_window(slots, list, window, offset, penalty)
  local band = math.abs(window.rows - window.columns) + BAND
  local above, steps = {}, {}
  for column = 0, math.min(window.columns, band) do above[column] = column * penalty end
  for row = 1, window.rows do
    local line, step, item = {}, {}, list[window.item + row - 1]
    for column = math.max(0, row - band), math.min(window.columns, row + band) do
      local best, way = (above[column] or math.huge) + penalty, "item"
      local left = (line[column - 1] or math.huge) + penalty
      if left < best then best, way = left, "slot" end
      local slot = slots[window.slot + column - 1]
      if column > 0 and slot.signature == item.signature and above[column - 1] then
        local both = above[column - 1] + match_cost(slot, item, offset, penalty)
        if both <= best then best, way = both, "match" end
      end
      line[column], step[column] = best, way
    end
    above, steps[row] = line, step
  end
  return steps
end

-- Follows the steps of a window back: its matches, { item, slot } by index, last first.
local function matches_of(steps, window)
  local found, row, column = {}, window.rows, window.columns
  while row > 0 do
    local way = steps[row][column]
    if way == "match" then
      found[#found + 1] = { window.item + row - 1, window.slot + column - 1 }
      row, column = row - 1, column - 1
    elseif way == "slot" then
      column = column - 1
    else
      row = row - 1
    end
  end
  return found
end

-- Whether these two match so clearly that no other alignment of them is cheaper.
local function clear(slot, item, offset, penalty)
  return slot.signature == item.signature and distance(slot, item, offset) < penalty / 8
end

-- The cost of these matches, and of all unmatched events.
local function cost_of(slots, list, matches, offset, penalty)
  local cost, count = 0, 0
  for item, slot in pairs(matches) do
    cost = cost + match_cost(slots[slot], list[item], offset, penalty)
    count = count + 1
  end
  return cost + penalty * (#slots + #list - 2 * count)
end

-- matches[index in list] = index in slots. Clear matches are taken directly; the rest is aligned in windows.
-- Of each window but the last only the first half counts.
local function align_by_time(slots, list, offset, penalty)
  local matches, window = {}, { item = 1, slot = 1 }
  while window.item <= #list and window.slot <= #slots do
    local slot, item = slots[window.slot], list[window.item]
    if clear(slot, item, offset, penalty) then
      matches[window.item] = window.slot
      window.item, window.slot = window.item + 1, window.slot + 1
    else
      window.rows = math.min(WINDOW, #list - window.item + 1)
      window.columns = math.min(WINDOW, #slots - window.slot + 1)
      local found = matches_of(align_window(slots, list, window, offset, penalty), window)
      local is_last = window.rows < WINDOW and window.columns < WINDOW
      local until_item = is_last and math.huge or window.item + window.rows // 2
      local next_item, next_slot = window.item + window.rows // 2, window.slot + window.columns // 2
      for i = #found, 1, -1 do
        if found[i][1] > until_item then break end
        matches[found[i][1]] = found[i][2]
        next_item, next_slot = found[i][1] + 1, found[i][2] + 1
      end
      if is_last then break end
      window.item, window.slot = next_item, next_slot
    end
  end
  return matches
end

-- matches[index in list] = index in slots, and the cost.
local function align(slots, list, offset)
  local penalty = penalty_of(slots, list, offset)
  local in_order = order_cost(slots, list, offset, penalty)
  if in_order and in_order <= 2 * penalty then
    local matches = {}
    for i = 1, #list do matches[i] = i end
    return matches, in_order
  end
  local matches = align_by_time(slots, list, offset, penalty)
  return matches, cost_of(slots, list, matches, offset, penalty)
end

-- The delay of `list`'s ends relative to the slots, by the matches or else by order.
local function offset_of(slots, list, matches)
  local differences = {}
  for i = 1, #list do
    local slot = slots[matches and matches[i] or not matches and i]
    if slot then differences[#differences + 1] = list[i].stop - slot.stop end
  end
  return statistics.median(differences) or 0
end

-- The best alignment, and 0; or, if it is much cheaper, the alignment with an offset of clocks, and that
-- offset in µs.
local function best_alignment(slots, list)
  local matches, cost = align(slots, list, 0)
  local spacing = math.max(mean_spacing(slots), mean_spacing(list))
  local offset = offset_of(slots, list)
  if math.abs(offset) < spacing / 2 then return matches, 0 end
  offset = offset_of(slots, list, (align(slots, list, offset)))
  local shifted, shifted_cost = align(slots, list, offset)
  if shifted_cost + SHIFT_SPACINGS * spacing < cost then return shifted, offset end
  return matches, 0
end

-- ---- slots -------------------------------------------------------------------------------------

local function new_slot(item, offset)
  return { signature = item.signature, start = item.start - offset, stop = item.stop - offset,
    items = { item } }
end

-- Puts the items of `list` into their slots, and adds slots for items without one.
local function with_matches(slots, list, matches, offset)
  local all, next_slot = {}, 1
  for i, item in ipairs(list) do
    local slot = matches[i]
    if slot then
      table.move(slots, next_slot, slot, #all + 1, all)
      next_slot = slot + 1
      table.insert(slots[slot].items, item)
    else
      while next_slot <= #slots and slots[next_slot].stop < item.stop - offset
        and not slots[next_slot].taken do
        all[#all + 1] = slots[next_slot]
        next_slot = next_slot + 1
      end
      all[#all + 1] = new_slot(item, offset)
    end
  end
  return table.move(slots, next_slot, #slots, #all + 1, all)
end

-- Marks the slots of the matched items, which unmatched items of the list may not pass.
local function mark_taken(slots, matches)
  for _, slot in ipairs(slots) do slot.taken = nil end
  for _, slot in pairs(matches) do slots[slot].taken = true end
end

-- The slots of a group; sets offsets[rank_index] if a rank's clock seems to be off.
local function slots_of(group, rank_count, offsets)
  local order = {}
  for rank_index = 1, rank_count do
    if group.lists[rank_index] then order[#order + 1] = rank_index end
  end
  ordering.falling(order, function(rank_index) return #group.lists[rank_index] end)
  local slots = sequences.map(group.lists[order[1]] or {}, function(item) return new_slot(item, 0) end)
  for i = 2, #order do
    local list = group.lists[order[i]]
    local matches, offset = best_alignment(slots, list)
    if offset ~= 0 then offsets[order[i]] = offset end
    mark_taken(slots, matches)
    slots = with_matches(slots, list, matches, offset)
  end
  return slots
end

-- ---- all ---------------------------------------------------------------------------------------

-- Whether a group's list of ranks, a text, contains this one; nil if that is unknown, because long lists are
-- cut.
function matching.names_rank(list, rank)
  if not list or not list:find("%d") or list:find("...", 1, true) then return nil end
  return ("," .. list:gsub("[%[%]%s]", "") .. ","):find("," .. rank .. ",", 1, true) ~= nil
end

-- The number of traced ranks in a group: by its list of ranks, else the ranks with its events.
local function expected_of(group, ranks)
  local count = 0
  for rank_index, rank in ipairs(ranks) do
    local is_in = matching.names_rank(group.ranks, rank.rank)
    if is_in == nil then is_in = group.lists[rank_index] ~= nil end
    if is_in then count = count + 1 end
  end
  return count
end

-- Adds the ranks to names that several groups share, so that ids stay unique.
local function give_names(groups)
  local count = {}
  for _, group in ipairs(groups) do
    local name = group.name or matching.NO_GROUP
    count[name] = (count[name] or 0) + 1
  end
  for _, group in ipairs(groups) do
    local name = group.name or matching.NO_GROUP
    group.id = count[name] > 1 and group.ranks and name .. " " .. group.ranks or name
  end
end

-- Appends the unmatched events of a group, each by itself, with the rank in its id.
local function append_alone(group, ranks, out)
  for rank_index = 1, #ranks do
    for index, item in ipairs(group.alone[rank_index] or {}) do
      out[#out + 1] = { id = ("%s_rank%d_%d"):format(group.id, ranks[rank_index].rank, index - 1),
        index = index - 1, metadata = item.metadata, expected = 1, items = { [rank_index] = item } }
    end
  end
end

matching.NO_GROUP = "Unknown_Group"

-- ranks = { { rank, events, metadata, shift = µs to add to its times | nil }... } (events and metadata as of
-- t:collectives()) -> collectives, offsets.
--   collectives: { { id, index, metadata, expected = the number of these ranks in its group,
--     items = { [rank_index] = { event, metadata, start, stop } } }... }, group by group
--   offsets[rank_index]: µs by which that rank's clock seems ahead of the others; used to match, not for
--     times. rank_index: of `ranks`.
function matching.match(ranks)
  local groups, out, offsets = groups_of(ranks), {}, {}
  give_names(groups)
  for _, group in ipairs(groups) do
    local expected = expected_of(group, ranks)
    for index, slot in ipairs(slots_of(group, #ranks, offsets)) do
      local items = {}
      for _, item in ipairs(slot.items) do items[item.rank_index] = item end
      out[#out + 1] = { id = ("%s_%d"):format(group.id, index - 1), index = index - 1,
        metadata = slot.items[1].metadata, expected = expected, items = items }
    end
    append_alone(group, ranks, out)
  end
  return out, offsets
end

return matching
