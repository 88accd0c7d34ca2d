// From a file to a trace: threads take turns at cutting a chunk off the file, each reads its own, and the
// parts are joined in order of the file. So a trace is the same for any number of threads and size of chunks.
#include "trace.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "joiner.h"
#include "root.h"
#include "system/cleanup.h"

namespace trace {

namespace {

// The workplace of a thread: a chunk, and its part.
struct desk {
    ::trace::chunk chunk;
    ::trace::part part;
    size_t turn = 0;
    bool is_json = false;
};

// Threads that cut, read and join.
class crew {
  public:
    crew(splitter &splitter, joiner &joiner, size_t workers, const read_options &options)
        : splitter_(splitter), joiner_(joiner), workers_(workers), options_(options),
          new_desks_(2 * workers) {}

    // Reads all chunks. false: `problem` is the first of the file. Throws bad_alloc.
    bool read(problem &problem) {
        std::vector<std::thread> others;
        others.reserve(workers_);
        work(&others);
        for (std::thread &other : others) other.join();
        if (out_of_memory_) throw std::bad_alloc();
        if (!is_whole_ || stopped_) problem = problem_;
        return is_whole_ && !stopped_;
    }

  private:
    // `others`: the further threads, which are started if the first chunk is not the last.
    void work(std::vector<std::thread> *others) {
        try {
            for (;;) {
                std::unique_ptr<desk> desk = take_desk();
                if (!desk || !cut(*desk)) return;
                if (others != nullptr && !splitter_.at_end()) hire(*others);
                others = nullptr;
                desk->is_json = desk->part.take(desk->chunk);
                hand_in(std::move(desk));
            }
        } catch (const std::bad_alloc &) {
            std::lock_guard<std::mutex> lock(joining_);
            out_of_memory_ = stopped_ = true;
            freed_.notify_all();
        }
    }

    void hire(std::vector<std::thread> &others) {
        try {
            for (size_t i = 1; i < workers_; i++) others.emplace_back([this] { work(nullptr); });
        } catch (const std::system_error &) { // fewer threads are enough
        }
    }

    // A free desk; null: the work has stopped.
    std::unique_ptr<desk> take_desk() {
        std::unique_lock<std::mutex> lock(joining_);
        freed_.wait(lock, [&] { return stopped_ || !free_.empty() || new_desks_ > 0; });
        if (stopped_) return nullptr;
        if (free_.empty()) {
            new_desks_--;
            auto made = std::make_unique<desk>();
            made->part.keeps_frames = options_.frames;
            made->part.keeps_launched = options_.launched;
            return made;
        }
        std::unique_ptr<desk> taken = std::move(free_.back());
        free_.pop_back();
        return taken;
    }

    // Cuts the next chunk off the file. An error of the cut is reported after all chunks.
    bool cut(desk &desk) {
        std::lock_guard<std::mutex> lock(cutting_);
        if (is_cut_) return false;
        is_cut_ = true; // also if memory is short now
        problem problem{};
        splitter::result result = splitter_.next(desk.chunk, problem);
        is_cut_ = result != splitter::result::chunk;
        desk.turn = turns_++;
        if (!is_cut_) return true;
        std::lock_guard<std::mutex> also(joining_);
        is_whole_ = result == splitter::result::end;
        if (!is_whole_ && !stopped_) problem_ = problem;
        return false;
    }

    // Joins the next part of the file, and the parts that wait for it.
    void hand_in(std::unique_ptr<desk> done) {
        std::lock_guard<std::mutex> lock(joining_);
        waiting_.emplace(done->turn, std::move(done));
        while (!stopped_ && !waiting_.empty() && waiting_.begin()->first == joined_) {
            std::unique_ptr<desk> next = std::move(waiting_.begin()->second);
            waiting_.erase(waiting_.begin());
            joined_++;
            if (next->is_json) {
                joiner_.join(next->part);
                free_.push_back(std::move(next));
            } else {
                stopped_ = true;
                splitter_.fail(problem_, next->part.damage.offset, next->part.damage.what);
            }
        }
        freed_.notify_all();
    }

    splitter &splitter_;
    joiner &joiner_;
    size_t workers_;
    const read_options &options_;

    std::mutex cutting_; // guards the splitter and
    bool is_cut_ = false;
    size_t turns_ = 0;

    std::mutex joining_; // taken within cutting_, never around it; guards the joiner and
    std::condition_variable freed_;
    size_t joined_ = 0, new_desks_;
    std::map<size_t, std::unique_ptr<desk>> waiting_;
    std::vector<std::unique_ptr<desk>> free_;
    bool is_whole_ = false, stopped_ = false, out_of_memory_ = false;
    problem problem_{};
};

} // namespace

bool read(const char *path, const read_options &options, trace &to, problem &problem) {
    out_of_memory_ends();
    try {
        std::unique_ptr<input> input = open_input(path, problem);
        if (!input) return false;
        splitter splitter(*input, path, options.chunk_size);
        joiner joiner(to, *input);
        size_t workers = size_t(std::max(1, options.workers));
        if (!crew(splitter, joiner, workers, options).read(problem)) return false;
        joiner.finish();
        return read_root(splitter, to, problem);
    } catch (const std::bad_alloc &) {
        return problem_set(&problem, "%s: out of memory", path);
    }
}

} // namespace trace
