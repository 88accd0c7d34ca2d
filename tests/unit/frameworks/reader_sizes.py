"""Shared by the proofs of files for frameworks: rows with planned winners, and the sizes at which to ask."""

HEADER = "world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us),mode"
HIDDEN_SIZE = 1024
BYTES = 2  # of bfloat16


def print_counts(asked, listed, form, reader, version):
    """The line of a proof for tests/readers/table.sh; counts() of tests/lib.sh describes it."""
    print("asked %d obeyed %d: %s | %s | %s" % (asked, asked - listed, form, reader, version))


def write_rows(path, world, plan, fusion="NONE", mode="eager", more=()):
    """Rows of one number of ranks. plan: [(last tokens, winner)...]; each winner takes 10 us there, and the other
    strategies 20 us and more. Returns the lines; `more` are lines in front."""
    names = list(dict.fromkeys(name for _, name in plan))
    lines, tokens = list(more), 1
    for last, winner in plan:
        while tokens <= last:
            for place, name in enumerate(names):
                time = 10 if name == winner else 20 + place
                size = tokens * HIDDEN_SIZE * BYTES
                lines.append("%d,bfloat16,%d,%d,%d,%s,%s,allreduce,%d,%s"
                             % (world, size, tokens, HIDDEN_SIZE, name, fusion, time, mode))
            tokens *= 2
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([HEADER] + lines) + "\n")
    return lines


def sizes_of(thresholds, world):
    """Every measured size, every border with its neighbours, and sizes beyond both ends."""
    table = thresholds["world_sizes"][str(world)]
    first, last = table["measured_bytes"]
    sizes = {1, 2, 16, first, last, last + 1, last * 4, 1 << 40}
    size = first
    while size <= last:
        sizes.add(size)
        size *= 2
    for rule in table["rules"][:-1]:
        border = rule["max_bytes"]
        sizes |= {border + step for step in (-17, -16, -1, 0, 1, 2, 15, 16, 17)}
        sizes |= {border // 16 * 16, border // 16 * 16 + 16}
    return sorted(size for size in sizes if size > 0)


def strategy_of(thresholds, world, size):
    """The table's choice, by the rules of thresholds.json."""
    for rule in thresholds["world_sizes"][str(world)]["rules"]:
        if rule["max_bytes"] is None or size <= rule["max_bytes"]:
            return rule["strategy"]
    raise AssertionError("no rule")


def is_listed(gaps, key, size, wanted, answered):
    """Whether a gap (ranks, fusion or mode, first, last, wanted, answered) lists this answer."""
    return any(gap[:2] == key and gap[2] <= size <= (gap[3] or size) and gap[4:] == (wanted, answered) for gap in gaps)


def check_gaps(gaps, wanted, answered, step):
    """At both ends of each gap the table's choice and the reader's answer are those that the gap lists. wanted(gap,
    size), answered(gap, size) -> way; the reader has multiples of `step` only."""
    for gap in gaps:
        first = max(-(-gap[2] // step), 1) * step
        for size in (first, gap[3] // step * step if gap[3] else first << 20):
            assert gap[4:] == (wanted(gap, size), answered(gap, size)), (gap, size)
