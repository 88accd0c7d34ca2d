#!/bin/sh
# The time of a lookup: the C header's against TensorRT-LLM's, an unordered_map of nested vectors, in one
# program, over the same shapes: prints figures, judges none.
#
#   sh tests/perf/lookup.sh [GENTABLES]       default: build/bin/gentables; needs python3 and a C++ compiler
#
# Tables: the measured header of tables/host; and make_rows.py's on TensorRT-LLM's grid, with random winners,
# so that nearly every cell has a border. The nested vectors contain the header's answers at powers of two.
# Shapes are drawn uniformly in log space. Two kinds of look-ups: those of a server, with a fixed TP size,
# fusion and hidden size; and random ones, which the processor cannot predict. Rounds of the two lookups
# alternate; each figure is the least of all rounds.
. "$(dirname -- "$0")/lib.sh"

mkdir "$work/host" "$work/noise"
cp "$here/../../tables/host/allreduce_table.h" "$work/host"
python3 "$here/make_rows.py" "$work/noise" small
"$gentables" generate --data-dir "$work/noise" --arch sm90 --formats c >/dev/null
cat >"$work/lookup.cpp" <<'END'
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <unordered_map>
#include <vector>

#include "allreduce_table.h"
#define PASTE(a, b) a##b
#define NAME(prefix, what) PASTE(prefix, what)
#define SELECT NAME(PREFIX, _select)
#define FUSION NAME(PREFIX, _fusion)

struct Shape {
    int tp, fusion, hidden, tokens;
};

// As TensorRT-LLM has it: indices by the floor of log2, the fusion's by a map, the table of the SM version
// by a map that is asked anew for each bound and for the answer.
using Table = std::vector<std::vector<std::vector<std::vector<int>>>>;
static std::unordered_map<int, Table> table_of;
static std::unordered_map<int, int> const index_of = {{0, 0}, {1, 1}, {4, 2}, {5, 3}};
static int const number_of[] = {0, 1, 4, 5}; // the numbers of our fusions there
static int volatile sm_version = 90;

static int nested(Shape const &shape) {
    int const sm = sm_version;
    auto const tp = static_cast<size_t>(std::log2(shape.tp) - 1);
    auto const fusion = static_cast<size_t>(index_of.find(number_of[shape.fusion])->second);
    auto const tokens = static_cast<size_t>(std::log2(shape.tokens));
    auto const hidden = static_cast<size_t>(std::log2(shape.hidden) - 7);
    if (table_of.find(sm) == table_of.end() || tp >= table_of.at(sm).size()) return -1;
    if (fusion >= table_of.at(sm).at(tp).size()) return -1;
    if (hidden >= table_of.at(sm).at(tp).at(fusion).size()) return -1;
    if (tokens >= table_of.at(sm).at(tp).at(fusion).at(hidden).size()) return -1;
    return table_of.at(sm)[tp][fusion][hidden][tokens];
}

static int header(Shape const &shape) {
    return SELECT(shape.tp, static_cast<FUSION>(shape.fusion), shape.hidden, shape.tokens);
}

static void fill() {
    Table table(3, std::vector<std::vector<std::vector<int>>>(4, std::vector<std::vector<int>>(7)));
    for (int at = 0; at < 3 * 4 * 7 * 15; at++) {
        int const tokens = at % 15, hidden = at / 15 % 7, fusion = at / 105 % 4, tp = at / 420;
        Shape const shape = {2 << tp, fusion, 128 << hidden, 1 << tokens};
        table[size_t(tp)][size_t(fusion)][size_t(hidden)].push_back(header(shape));
    }
    table_of[90] = table_of[100] = table;
}

static long sink = 0;

template <typename Lookup> static double nanoseconds(std::vector<Shape> const &shapes, Lookup lookup) {
    auto const begin = std::chrono::steady_clock::now();
    long sum = 0;
    for (auto const &shape : shapes) sum += lookup(shape);
    auto const end = std::chrono::steady_clock::now();
    sink += sum;
    std::chrono::duration<double, std::nano> const taken = end - begin;
    return taken.count() / static_cast<double>(shapes.size());
}

static void compare(char const *name, std::vector<Shape> const &shapes) {
    double ours = 1e9, theirs = 1e9;
    for (int round = 0; round < 60; round++) {
        // Both are functions of a header, which a compiler may inline.
        theirs = std::min(theirs, nanoseconds(shapes, [](Shape const &shape) { return nested(shape); }));
        ours = std::min(ours, nanoseconds(shapes, [](Shape const &shape) { return header(shape); }));
    }
    std::printf("  %-20s nested vectors %6.2f ns   header %5.2f ns   %5.1f x\n", name, theirs, ours,
                theirs / ours);
}

int main() {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> hidden_log(7, 13.9), tokens_log(0, 14.9);
    std::uniform_int_distribution<int> tp_log(1, MOST_TP), fusion(0, 3);
    std::vector<Shape> any(50000), server(50000);
    for (auto &shape : any) {
        shape = {1 << tp_log(random), fusion(random), static_cast<int>(std::exp2(hidden_log(random))),
                 static_cast<int>(std::exp2(tokens_log(random)))};
    }
    for (auto &shape : server) shape = {2, 1, 7168, static_cast<int>(std::exp2(tokens_log(random)))};
    fill();
    compare("as a server asks", server);
    compare("anything at random", any);
    return sink == 42;
}
END
for table in host noise; do
    prefix=gentables_host most_tp=2 # TP 2 and 4 were measured
    if [ "$table" = noise ]; then prefix=gentables_sm90 most_tp=3; fi
    folder=$work/$table
    places=$(sed -n 's/.*_SEGMENTS = \([0-9]*\),.*/\1/p' "$folder/allreduce_table.h")
    echo "$table: rows with places for $places strategies"
    for compiler in g++ clang++; do
        command -v "$compiler" >/dev/null || continue
        "$compiler" -std=c++17 -O2 -DPREFIX=$prefix -DMOST_TP=$most_tp -I "$folder" -o "$work/lookup" \
            "$work/lookup.cpp"
        echo " $compiler -O2"
        "$work/lookup"
    done
done
