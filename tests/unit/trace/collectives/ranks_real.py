"""What trace collectives and trace overlap wrote, computed again from the traces by other means.

ranks_real.py pair CSVS DATA      the pair sampled_rank-0, -1
ranks_real.py sweep OUT SWEEP     a derived sweep of one configuration, all ranks with all collectives
"""
import csv
import glob
import gzip
import json
import re
import sys


def rows(path):
    with open(path, newline='', encoding='utf-8') as file:
        return list(csv.DictReader(file))


def events(path):
    with (gzip.open if path.endswith('gz') else open)(path, 'rb') as file:
        return json.load(file)['traceEvents']


def communicates(event):
    return event.get('cat') == 'kernel' and re.search('nccl|rccl|multimem_|::ep::internode::', event['name'], re.I)


def near(text, number, what):
    assert abs(float(text) - number) <= 1e-9 * max(1e-3, abs(number)), f'{what}: {text}, not {number}'


def pair(folder, data):
    long = rows(f'{folder}/nccl_long.csv')
    for rank in (0, 1):
        kernels = sorted((e['ts'], e['dur'], e['args']['stream'])
                         for e in events(f'{data}/sampled_rank-{rank}.json.gz') if communicates(e))
        ours = sorted((float(r['ts']), float(r['dur']), int(r['stream'])) for r in long
                      if r['rank'] == str(rank))
        assert ours == kernels and len(ours) == 10, f'rank {rank}: {ours}'
        mine = sorted((r for r in long if r["rank"] == str(rank)), key=lambda r: float(r["ts"]))
        order = [r["collective_id"] for r in mine]
        assert order == [f'Unknown_Group_{i}' for i in range(10)], order


FACTOR = {'allreduce': lambda n: 2 * (n - 1) / n, '_allgather_base': lambda n: (n - 1) / n,
          '_reduce_scatter_base': lambda n: (n - 1) / n}


def check_collectives(folder, ranks):
    """No record is lost here, so collectives are matched by their order. The trace's own collectives are of a
    group of the same name with more ranks."""
    group = '[0, 1, 2]'
    found = {r['collective_id']: r for r in rows(f'{folder}/nccl_implicit_sync.csv')
             if r['Process Group Ranks'] == group}
    by_rank = [sorted((e for e in mine if communicates(e) and e['args'].get('Process Group Ranks') == group),
                      key=lambda e: e['ts']) for mine in ranks]
    count = 0
    for i, same in enumerate(zip(*by_rank)):
        name, args = same[0]['args']['Collective name'], same[0]['args']
        if name not in FACTOR:
            continue
        count += 1
        row, latency = found[f'0 {group}_{i}'], min(e['dur'] for e in same)
        starts, ends = [e['ts'] for e in same], [e['ts'] + e['dur'] for e in same]
        near(row['comm_latency'], latency, 'latency')
        near(row['skew in start time'], max(starts) - min(starts), 'start skew')
        near(row['skew in end time'], max(ends) - min(ends), 'end skew')
        near(row['avg_wait_time'], sum(max(starts) - s for s in starts) / len(starts), 'wait')
        elements = args['Out msg nelems'] if name == '_allgather_base' else args['In msg nelems']
        bandwidth = 2 * elements / 2**30 / (latency / 1e6)
        near(row['algo bw (GB/s)'], bandwidth, 'algbw')
        near(row['bus bw (GB/s)'], bandwidth * FACTOR[name](args['Group size']), 'busbw')
    assert count == len(found) > 100, f'{len(found)} of {count} collectives'


def overlap(start, stop, collectives):
    """Count and µs covered, by cutting the stretch at every end of an interval."""
    inside = [(max(a, start), min(b, stop)) for a, b in collectives if a < stop and b > start]
    cuts = sorted({start, stop, *(t for interval in inside for t in interval)})
    return len(inside), sum(b - a for a, b in zip(cuts, cuts[1:])
                            if any(x <= a and b <= y for x, y in inside))


def check_overlap(folder, ranks):
    instances = rows(f'{folder}/top5_gemm_kernels_instances_with_collective_overlap.csv')
    longest = rows(f'{folder}/top5_gemm_kernels_time_variance_with_collective_overlap.csv')
    some = 0
    for row in instances + longest:
        mine = ranks[int(row['rank'])]
        at = float(row.get('timestamp_ms') or row['max_duration_timestamp_ms']) * 1000
        kernels = [e for e in mine if e.get('cat') == 'kernel' and e['name'] == row['kernel_name']
                   and abs(e['ts'] - at) < 0.01]
        assert len(kernels) == 1, f'{len(kernels)} kernels at {at}'
        kernel = kernels[0]
        near(row.get('duration_us') or row['max_duration_found_us'],
             kernel['ts'] + kernel['dur'] - kernel['ts'], 'duration')
        count, covered = overlap(kernel['ts'], kernel['ts'] + kernel['dur'],
                                 [(e['ts'], e['ts'] + e['dur']) for e in mine if communicates(e)])
        assert int(row['overlapping_collective_count']) == count, row
        near(row['total_overlap_duration_ms'], covered / 1000, 'overlap')
        some += count
    assert len(instances) > len(longest) > 0 and some > 0, 'nothing to compare'


def sweep(out, folder):
    ranks = [events(path) for path in sorted(glob.glob(f'{folder}/*/*/torch_profiler/rank*/*.json'))]
    check_collectives(f'{out}/256thread/collective_reports/collective_28ch_csvs', ranks)
    check_overlap(out, ranks)


{'pair': pair, 'sweep': sweep}[sys.argv[1]](*sys.argv[2:])
