-- gentables trace plots: the longest minus the shortest kernel time of GEMMs over threads, channels and
-- ranks: five pictures of the CSV that trace variance writes; and a picture of the CSV nccl_all2allv_traffic
-- of trace collectives. It measures nothing.
local example_of = require("trace.runs.example").of
local fail = require "base.fail"
local traffic_plot = require "trace.collectives.traffic_plot"
local variance_plots = require "trace.gemm.variance_plots"

local command = {}

command.summary =
  "Draws CSVs: longest minus shortest kernel times of GEMMs, and the MB of all_to_allv from rank to rank."
command.positional = { name = "CSV...", min = 0, max = math.huge,
  help = "output of trace variance (five PNGs); or nccl_all2allv_traffic.csv of trace collectives (one)" }
command.options = {
  { name = "out", aliases = { "output-dir" }, value = "DIR",
    help = "folder of the pictures (default: plots beside the CSV)" },
  { name = "csv-path", value = "CSV", many = true, help = "the same as CSV" },
}
command.example = example_of("trace variance {SWEEP} --out .\n"
  .. "  gentables trace plots top5_gemm_kernels_time_variance.csv --out plots")

function command.run(args)
  local paths = table.move(args.csv_path or {}, 1, #(args.csv_path or {}), #args + 1, { table.unpack(args) })
  if #paths == 0 then fail.input("trace plots needs a CSV; see gentables trace plots --help") end
  local out = args.out or (paths[1]:match("^(.*/)[^/]*$") or "") .. "plots"
  out = out:gsub("(.)/+$", "%1")
  local traffic = traffic_plot.read(paths[1])
  if traffic then
    if #paths > 1 then fail.input("%s: is drawn alone; give one CSV", paths[1]) end
    io.stdout:write("written   ", traffic_plot.draw(traffic, paths[1], out), "\n")
    return
  end
  local drawn, notes = variance_plots.draw(variance_plots.read(paths), out)
  for _, note in ipairs(notes) do fail.note(note) end
  for _, path in ipairs(drawn) do io.stdout:write("written   ", path, "\n") end
end

return command
