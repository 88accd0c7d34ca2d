-- Columns of the page's tables: of names, which may be long, and of numbers with this many decimals.
local overview_columns = {}

function overview_columns.named(title) return { title = title, class = "name" } end

function overview_columns.fixed(title, decimals)
  return { title = title, format = ("%%.%df"):format(decimals) }
end

return overview_columns
