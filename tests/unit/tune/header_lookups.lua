-- gentables lua header_lookups.lua TABLE.csv: a C program that calls the lookup of allreduce_table.h for
-- every size of the table, and beyond, and ends with 0 if all results are the table's.
local tables = require "core.table"

local canonical = assert(tables.read(arg[1]))
print('#include "allreduce_table.h"\n#include <stdio.h>\n#include <string.h>\n')
print("static int wrong;\n")
print("static void ask(const char *op, unsigned long long size, enum gentables_host_strategy is,")
print("                const char *should, int is_measured, int should_be) {")
print("    const char *name = gentables_host_strategy_name(is);")
print("    if (strcmp(name, should) == 0 && is_measured == should_be) return;")
print('    printf("%s of %llu bytes: %s, should be %s\\n", op, size, name, should);')
print("    wrong = 1;\n}\n")
print("int main(void) {")
local function ask(world_size, op, splits, size, should, is_measured)
  local arguments = ("%d, GENTABLES_HOST_OP_%s, GENTABLES_HOST_SPLITS_%s, %dull"):format(world_size,
    op:upper(), splits and splits:gsub(":", "_") or "NONE", size)
  print(('    ask("%s", %dull, gentables_host_select_size(%s), "%s",\n'):format(op, size, arguments, should)
    .. ("        gentables_host_is_measured_size(%s), %d);"):format(arguments, is_measured and 1 or 0))
end
assert(#canonical:blocks() > 0, "the table is empty")
for b, block in ipairs(canonical:blocks()) do
  assert(block.sizes_only, "a shape")
  for t, size in ipairs(block.num_tokens) do
    ask(block.world_size, block.op, block.splits, size, canonical:cell(b, 1, 1, t).strategy, true)
  end
  local last = #block.num_tokens
  ask(block.world_size, block.op, block.splits, 1, canonical:cell(b, 1, 1, 1).strategy, true)
  ask(block.world_size, block.op, block.splits, 1 << 40, canonical:cell(b, 1, 1, last).strategy, true)
  ask(7, block.op, block.splits, 4096, "MPI", false)
end
ask(2, "reducescatter", nil, 4096, "MPI", false)
print('    ask("a shape", 0, gentables_host_select(2, GENTABLES_HOST_FUSION_NONE, 4096, 1), "MPI",')
print("        gentables_host_is_measured(2, GENTABLES_HOST_FUSION_NONE, 4096, 1), 0);")
print("    return wrong;\n}")
