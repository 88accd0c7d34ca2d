# Compares the CSVs of a report with those of an oracle: every sheet, row and column. Rows are matched by key,
# floats agree to 1e-9 relative, Python literals are compared as values (np.float64(x) is x).
#
#   python3 report_oracle.py ORACLE OURS
#
# DEVIATIONS lists the cells in which the oracle is wrong, with the right values, which ours must have.
import ast
import csv
import math
import re
import sys
from pathlib import Path

TOLERANCE = 1e-9

ARGUMENTS = ["Input Dims", "Input type", "Input Strides", "Concrete Inputs"]
PLACE = ["process_name", "process_label", "thread_name"]
KEYS = {
    "gpu_timeline": ["type"],
    "ops_summary": ["name"],
    "ops_summary_by_category": ["op category"],
    "ops_unique_args": ["name", "op category", *PLACE, *ARGUMENTS],
    "unified_perf_summary": ["name", "op category", *PLACE, *ARGUMENTS],
    "kernel_summary": ["Parent op category", "Parent cpu_op", "Kernel name", "Kernel stream"],
    "short_kernels_summary": ["Parent cpu_op", "Input dims", "Input strides", "Concrete Inputs", "Kernel name"],
}


def parsed(cell):
    """The value of a cell: a number, a Python literal, or text."""
    plain = re.sub(r"np\.float64\(([^)]*)\)", r"\1", cell)
    try:
        return ast.literal_eval(plain)
    except (ValueError, SyntaxError):
        return cell


def same(a, b):
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=0)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return a == b


def key_of(sheet, row):
    if sheet == "short_kernel_histogram":
        return None  # its rows are numbered
    names = KEYS.get(sheet) or ["name", *[name for name in row if name.startswith("param:")]]
    ignored = IGNORED_IN_KEYS.get(sheet, ())
    return tuple(row.get(name) for name in names if name not in ignored)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
        file.seek(0)
        return next(csv.reader(file)), rows


def matched(sheet, rows):
    """{ key: row }; a key that stands twice is an error."""
    result = {}
    for number, row in enumerate(rows):
        key = key_of(sheet, row)
        key = number if key is None else key
        if key in result:
            raise SystemExit(f"{sheet}: two rows with the key {key}")
        result[key] = row
    return result


# ---- Wrong values of the oracle ----------------------------------------------------------------------------

def reduced(row):
    """The elements that come out of a reduction, from its shape and dimensions: here they are text, as [-1],
    which the oracle takes for none, so that to it one element comes out of every reduction."""
    shape = parsed(row["Input Dims_first"])[0]
    for dimension in parsed(parsed(row["Concrete Inputs_first"])[1]):
        shape[dimension] = 1
    return math.prod(shape)


def reduction_cells(oracle):
    """What is right where num_output_elems is wrong: that, the bytes, and what is divided by them."""
    width = {"float": 4}[parsed(oracle["param: dtype_in_out"])[0]]
    went_in = parsed(oracle["param: num_input_elems"])
    moved = (went_in + reduced(oracle)) * width
    factor = moved / ((went_in + 1) * width)
    right = {"param: num_output_elems": reduced(oracle), "Data Moved (MB)_first": moved / 2**20,
             "FLOPS/Byte_first": went_in / moved}
    for name in ("mean", "median", "std", "min", "max"):
        right[f"TB/s_{name}"] = parsed(oracle[f"TB/s_{name}"]) * factor
    return right


def reduction_in_unified(oracle):
    """The same op in unified_perf_summary."""
    if not oracle["perf_params"].startswith("{'num_input_elems'"):
        return {}
    params = parsed(oracle["perf_params"])
    shape = list(parsed(oracle["Input Dims"])[0])
    for dimension in parsed(parsed(oracle["Concrete Inputs"])[1]):
        shape[dimension] = 1
    came_out, went_in = math.prod(shape), params["num_input_elems"]
    width = {"float": 4}[params["dtype_in_out"][0]]
    moved = (went_in + came_out) * width
    factor = moved / ((went_in + 1) * width)
    right = {"perf_params": {**params, "num_output_elems": came_out}, "Data Moved (MB)": moved / 2**20,
             "FLOPS/Byte": went_in / moved}
    for name in ("mean", "median", "std", "min", "max"):
        right[f"TB/s_{name}"] = parsed(oracle[f"TB/s_{name}"]) * factor
    return right


# ---- What the oracle lacks ---------------------------------------------------------------------------------

# Ops with a model that the oracle lacks, and ops in a category of the oracle that does not name them.
NEWLY_MODELLED = {"aten::all", "aten::arange", "aten::cat", "aten::cos", "aten::eq", "aten::fill_",
                  "aten::gelu", "aten::index_select", "aten::sin", "aten::_local_scalar_dense"}
CATEGORIES = {"aten::_flash_attention_forward": "SDPA_fwd"}
OF_MODELS = re.compile(r"GFLOPS|Data Moved|FLOPS/Byte|Compute Spec|TB/s|TFLOPS/s|perf_params|has_perf_model")


def with_categories(row):
    """The row of the oracle with our categories."""
    for name, category in (("name", "op category"), ("Parent cpu_op", "Parent op category")):
        if row.get(name) in CATEGORIES and category in row:
            row[category] = CATEGORIES[row[name]]
    if row.get("name") in CATEGORIES and "Categories" in row:
        row["Categories"] = repr([CATEGORIES[row["name"]]])
    return row


def by_category(oracle):
    """The rows of ops_summary_by_category, from those of ops_unique_args with our categories."""
    sums = {}
    for row in read(oracle.with_name("ops_unique_args.csv"))[1]:
        row = with_categories(row)
        count, time = sums.get(row["op category"], (0, 0.0))
        sums[row["op category"]] = (count + parsed(row["operation_count"]),
                                    time + parsed(row["total_direct_kernel_time_sum"]))
    total, up_to, rows = sum(time for _, time in sums.values()), 0, []
    for category, (count, time) in sorted(sums.items(), key=lambda one: -one[1][1]):
        up_to += time
        cells = {"Count": count, "total_direct_kernel_time_ms": time / 1e3, "Percentage (%)": 100 * time / total,
                 "Cumulative Percentage (%)": 100 * up_to / total}
        rows.append({"op category": category, **{title: repr(value) for title, value in cells.items()}})
    return rows


def is_newly_modelled(sheet, oracle, ours):
    """Whether ours has a model of an op of unified_perf_summary, and the oracle none."""
    is_new = sheet == "unified_perf_summary" and oracle["name"] in NEWLY_MODELLED
    return is_new and (oracle["has_perf_model"], ours["has_perf_model"]) == ("False", "True")


def is_another_call(sheet, row):
    """Of the two calls of aten::arange, one in the other, the oracle lists the inner one; ours has a model, and
    lists the outer one."""
    return sheet == "unified_perf_summary" and row["name"] == "aten::arange"


def is_of_new_ops(path):
    """Whether a sheet of ops lists only ops with a model that the oracle lacks."""
    return all(row["name"] in NEWLY_MODELLED for row in read(path)[1])


# Cells: sheet → function of the oracle's row that gives the right values of its wrong cells.
DEVIATIONS = {"Reduce_fwd": reduction_cells, "unified_perf_summary": reduction_in_unified}
IGNORED_IN_KEYS = {"Reduce_fwd": ["param: num_output_elems"]}


def is_listed_twice(sheet, oracle):
    """Normalization lists layer_norm and the native_layer_norm within it: each kernel twice, so that the times
    of the sheet add up to more than the GPU worked. Ours lists the outer op."""
    return sheet == "Normalization" and oracle["name"] == "aten::native_layer_norm"


# ---- Comparing ---------------------------------------------------------------------------------------------

def compare_sheet(sheet, oracle_path, our_path, problems):
    titles, rows = read(oracle_path)
    rows = by_category(oracle_path) if sheet == "ops_summary_by_category" else list(map(with_categories, rows))
    our_titles, our_rows = read(our_path)
    our_titles = [title for title in our_titles if not title.startswith("Roofline ")]  # the oracle has no GPU
    if titles != our_titles:
        problems.append(f"{sheet}: the columns are {our_titles}, not {titles}")
    ours, oracle = matched(sheet, our_rows), matched(sheet, rows)
    for key, row in oracle.items():
        if is_listed_twice(sheet, row):
            if key in ours:
                problems.append(f"{sheet}: {key} is listed twice")
            continue
        if key not in ours and is_another_call(sheet, row):
            continue
        if key not in ours:
            problems.append(f"{sheet}: no row {key}")
            continue
        right = DEVIATIONS.get(sheet, lambda _: {})(row)
        is_new = is_newly_modelled(sheet, row, ours[key])
        for title in titles:
            if is_new and OF_MODELS.match(title):
                continue
            want = right.get(title, parsed(row[title]))
            got = parsed(ours[key].get(title) or "")
            if not same(want, got):
                problems.append(f"{sheet}: {key[0] if isinstance(key, tuple) else key}: {title} is {got}, not {want}")
    for key in ours.keys() - oracle.keys():
        is_new = "GFLOPS_first" in titles and ours[key]["name"] in NEWLY_MODELLED
        if is_new or is_another_call(sheet, ours[key]):
            continue
        problems.append(f"{sheet}: the oracle has no row {key}")
    order = [key for key in oracle if key in ours]
    if [key for key in ours if key in oracle] != order:
        problems.append(f"{sheet}: the rows stand in another order")


def main(oracle, ours):
    problems, sheets, cells = [], 0, 0
    for path in sorted(Path(oracle).glob("*.csv")):
        our_path = Path(ours) / path.name
        if not our_path.exists():
            problems.append(f"{path.stem}: there is no such sheet")
            continue
        compare_sheet(path.stem, path, our_path, problems)
        sheets += 1
        cells += sum(len(row) for row in read(path)[1])
    # Other sheets may be newer than the oracle; a sheet of ops that it lacks comes from a wrong family.
    extra = {path.name for path in Path(ours).glob("*.csv")} - {path.name for path in Path(oracle).glob("*.csv")}
    for name in sorted(extra):
        if "GFLOPS_first" in read(Path(ours) / name)[0] and not is_of_new_ops(Path(ours) / name):
            problems.append(f"{name}: the oracle has no such sheet of ops")
    for problem in problems[:40]:
        print(problem, file=sys.stderr)
    if len(problems) > 40:
        print(f"and {len(problems) - 40} more", file=sys.stderr)
    print(f"{oracle}: {sheets} sheets, {cells} cells, {len(problems)} differences")
    return 1 if problems or sheets == 0 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
