// Runs the kernel of instructions.lua, translated, and prints a line for each instruction form: its name and
// a hash of its results, or with "all" the results themselves.
//
//   instructions FOLDER [all]     FOLDER: that of instructions.lua
//
// Any NaN that an instruction computes counts as the same result: its bits are not defined.
#include "cuda/kernels/types.h"
#include "engine.h"
#include "ptx_kernels.h"

#include <cinttypes>
#include <fstream>
#include <string>
#include <vector>

const EngineMulticast &engine_multicast_at(const Word4 *) {
    static const EngineMulticast none = {};
    return none;
}
bool engine_joint = false;

void ptx_give_up() {
    std::abort();
}

namespace {

constexpr unsigned THREADS = 32;
constexpr uint64_t NAN_BITS = 0x7fc00000;

struct Parameters {
    const uint64_t *inputs; // four words of each thread, of which it takes three
    uint64_t *results;      // of each form, one of each thread
};

std::vector<uint64_t> read_inputs(const std::string &folder) {
    std::vector<uint64_t> inputs;
    std::ifstream file(folder + "/inputs");
    for (uint64_t a, b, c; file >> std::hex >> a >> b >> c;) inputs.insert(inputs.end(), {a, b, c, 0});
    return inputs;
}

std::vector<std::string> read_forms(const std::string &folder) {
    std::vector<std::string> forms;
    std::ifstream file(folder + "/forms");
    for (std::string line; std::getline(file, line);) forms.push_back(line);
    return forms;
}

void run(Parameters parameters) {
    EngineRun run;
    run.ranks = run.launches = 1;
    run.seed = 1;
    run.programmatic = run.one_gpu = run.preempts = run.stalls = false;
    run.resident = 0;
    run.shape = [](int, int) { return EngineLaunch{1, THREADS}; };
    run.body = [&](int, int) { ptx_kernels[0].run(&parameters); };
    engine_run(run);
}

void print(const std::string &form, const uint64_t *results, bool all) {
    bool is_float = form.size() > 2 && form.compare(form.size() - 2, 2, " f") == 0;
    uint64_t hash = 0xcbf29ce484222325; // FNV-1a
    std::printf("%s", form.c_str());
    for (unsigned thread = 0; thread < THREADS; thread++) {
        uint64_t result = results[thread];
        if (is_float && (result & 0x7fffffff) > 0x7f800000) result = NAN_BITS;
        for (unsigned byte = 0; byte < sizeof result; byte++)
            hash = (hash ^ (result >> 8 * byte & 0xff)) * 0x100000001b3;
        if (all) std::printf(" %" PRIx64, result);
    }
    if (!all) std::printf(" %016" PRIx64, hash);
    std::printf("\n");
}

} // namespace

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    std::vector<uint64_t> inputs = read_inputs(argv[1]);
    std::vector<std::string> forms = read_forms(argv[1]);
    if (inputs.size() != THREADS * 4) return 2;
    std::vector<uint64_t> results(forms.size() * THREADS);
    run({inputs.data(), results.data()});
    for (size_t i = 0; i < forms.size(); i++) print(forms[i], &results[i * THREADS], argc > 2);
    return 0;
}
