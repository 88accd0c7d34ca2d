# What all_reduce_perf -b 8 -e 8G -f 2 -g 16 of nccl-tests prints, with made-up times.
BEGIN {
    print "# Collective test starting: all_reduce_perf"
    print "# nThread 1 nGpus 16 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 1 graph: 0"
    print "#\n# Using devices"
    ranks = "#  Rank %2d Group  0 Pid   6899 on     node1 device %2d [0000:%02d:00] NVIDIA H100\n"
    for (rank = 0; rank < 16; rank++) printf ranks, rank, rank, rank
    print "#\n#       size         count      type   redop    root     time   algbw   busbw  #wrong"
    row = "%12.0f  %12.0f     float     sum      -1  %7.2f  1.00  1.00       0\n"
    for (size = 8; size <= 2 ^ 33; size *= 2) printf row, size, size / 4, 10 + size / 299593.14
}
