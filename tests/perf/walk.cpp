// Walks a trace with simdjson's on-demand reader alone: every event, and every field of it and of its args. A
// floor for programs that read traces with it. Prints the numbers of events and fields. walk.sh builds it.
//
//   walk FILE
#include <cstdio>
#include <simdjson.h>

namespace od = simdjson::ondemand;

static size_t walk(od::object object, int levels) {
    size_t fields = 0;
    for (auto field : object) {
        fields++;
        if (levels == 0 || field.value().type() != od::json_type::object) continue;
        fields += walk(field.value().get_object(), levels - 1);
    }
    return fields;
}

int main(int argc, char **argv) {
    simdjson::padded_string text;
    if (argc != 2 || simdjson::padded_string::load(argv[1]).get(text)) return 2;
    od::parser parser;
    od::document document = parser.iterate(text);
    size_t events = 0, fields = 0;
    for (auto event : document["traceEvents"].get_array()) {
        fields += walk(event.get_object(), 1);
        events++;
    }
    std::printf("%zu events, %zu fields\n", events, fields);
    return 0;
}
