-- Multiplies the times of one strategy in the rows of a sweep: a simulated regression.
--
-- usage: gentables lua tests/perf/slower.lua BENCHMARK.csv STRATEGY FACTOR DIR
--   Writes the rows and their provenance to DIR, under the same name.
local fail = require "base.fail"
local file = require "core.file"
local provenance = require "rows.provenance"
local rows = require "core.rows"

local path, strategy, factor, folder = arg[1], arg[2], tonumber(arg[3]), arg[4]
local TIMES = { "time_us", "low_us", "high_us", "min_us", "p95_us", "p99_us" }

local records = fail.unless(rows.records(path))
for _, record in ipairs(records) do
  if record.strategy == strategy then
    for _, name in ipairs(TIMES) do record[name] = record[name] and record[name] * factor end
    for launch, time_us in pairs(record.launches or {}) do
      record.launches[launch] = time_us and time_us * factor
    end
  end
end
fail.unless(file.make_folder(folder))
local copy = folder .. "/" .. path:match("[^/]*$")
fail.unless(provenance.write(copy, fail.unless(rows.text(copy, records)),
  fail.unless(provenance.read(provenance.path_of(path)))))
