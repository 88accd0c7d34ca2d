// The root without its events is one small document.
#include "root.h"

#include <algorithm>
#include <new>
#include <simdjson.h>
#include <string>

#include "mend.h"
#include "values.h"

namespace trace {

namespace {

namespace od = simdjson::ondemand;
using simdjson::error_code;

class root {
  public:
    root(splitter &splitter, trace &to) : splitter_(splitter), to_(to) {}

    bool read(problem &problem) {
        std::string &text = splitter_.rest();
        mended done = mend(text.data(), text.size());
        uint64_t &count = to_.flaws[size_t(flaw::mended)], &first = to_.first_flaw[size_t(flaw::mended)];
        if (done.texts > 0) first = std::min(count > 0 ? first : UINT64_MAX, splitter_.offset_of(done.first));
        count += done.texts;
        text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
        od::document document;
        error_code error = parser_.iterate(text.data(), text.size(), text.capacity()).get(document);
        const char *where = text.data();
        if (error == simdjson::MEMALLOC) throw std::bad_alloc();
        if (error != simdjson::SUCCESS) return damaged(problem, where, error);
        error = read_fields(document);
        if (error == simdjson::SUCCESS) return true;
        if (document.current_location().get(where) != simdjson::SUCCESS) where = text.data();
        return damaged(problem, where, error);
    }

  private:
    bool damaged(problem &problem, const char *where, error_code error) {
        uint64_t offset = splitter_.offset_of(size_t(where - splitter_.rest().data()));
        return splitter_.fail(problem, offset, simdjson::error_message(error));
    }

    error_code read_fields(od::document &document) {
        od::json_type type;
        od::object fields;
        error_code error = document.type().get(type);
        if (error != simdjson::SUCCESS || type == od::json_type::array) return error;
        if ((error = document.get_object().get(fields)) != simdjson::SUCCESS) return error;
        for (simdjson::simdjson_result<od::field> entry : fields) {
            od::field field;
            if ((error = std::move(entry).get(field)) != simdjson::SUCCESS) return error;
            if (is_of_document(error = read_field(field))) return error;
        }
        return simdjson::SUCCESS;
    }

    error_code read_field(od::field &field) {
        od::raw_json_string key = field.key();
        any_value value(std::move(field.value()));
        if (key == "baseTimeNanoseconds") return read_integer(value, to_.base_nanoseconds);
        if (key == "gentables") return read_own(value);
        if (key == "distributedInfo") return read_distributed(value);
        return key == "deviceProperties" ? read_devices(value) : simdjson::SUCCESS;
    }

    error_code read_distributed(any_value value) {
        od::object info;
        error_code error = value.get_object().get(info);
        if (error != simdjson::SUCCESS) return error;
        if (is_of_document(error = read_integer(info.find_field_unordered("rank"), to_.rank))) return error;
        return read_integer(info.find_field_unordered("world_size"), to_.world_size);
    }

    error_code read_own(any_value value) {
        od::object own, types;
        to_.is_own = true;
        error_code error = value.get_object().get(own);
        if (error == simdjson::SUCCESS)
            error = own.find_field_unordered("computed_in").get_object().get(types);
        if (error != simdjson::SUCCESS) return error;
        for (simdjson::simdjson_result<od::field> entry : types) {
            od::field field;
            std::string_view from, to;
            if ((error = std::move(entry).get(field)) != simdjson::SUCCESS) return error;
            error = field.unescaped_key().get(from);
            if (error == simdjson::SUCCESS) error = field.value().get_string().get(to);
            if (is_of_document(error)) return error;
            if (error == simdjson::SUCCESS) to_.computed_in.emplace_back(from, to);
        }
        return simdjson::SUCCESS;
    }

    // The number of devices, and the name of the first: those of a node are equal.
    error_code read_devices(any_value value) {
        od::array devices;
        error_code error = value.get_array().get(devices);
        if (error != simdjson::SUCCESS) return error;
        to_.devices = 0;
        for (simdjson::simdjson_result<od::value> entry : devices) {
            od::object device;
            std::string_view name;
            if ((error = entry.error()) != simdjson::SUCCESS) return error;
            if (to_.devices++ > 0) continue;
            error = entry.get_object().get(device);
            if (error == simdjson::SUCCESS)
                error = device.find_field_unordered("name").get_string().get(name);
            if (is_of_document(error)) return error;
            if (error != simdjson::SUCCESS) continue;
            to_.device_name = name;
            error = read_integer(device.find_field_unordered("numSms"), to_.multiprocessors);
            if (is_of_document(error)) return error;
        }
        return simdjson::SUCCESS;
    }

    splitter &splitter_;
    trace &to_;
    od::parser parser_;
};

} // namespace

bool read_root(splitter &splitter, trace &to, problem &problem) {
    return root(splitter, to).read(problem);
}

} // namespace trace
