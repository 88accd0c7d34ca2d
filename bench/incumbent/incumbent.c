// The lookup of the table that is there, for AUTO (host/auto.c), as a module beside the bench: the bench is
// the same whatever the table says. INCUMBENT_PREFIX begins the header's names.
#include INCUMBENT_HEADER

#define JOIN(prefix, name)          prefix##_##name
#define JOIN_EXPANDED(prefix, name) JOIN(prefix, name)
#define INCUMBENT(name)             JOIN_EXPANDED(INCUMBENT_PREFIX, name)

int incumbent_choose(int tp_size, int fusion, int hidden_size, int num_tokens);
const char *incumbent_name(int strategy);

// The number of the strategy to take.
int incumbent_choose(int tp_size, int fusion, int hidden_size, int num_tokens) {
    return (int)INCUMBENT(select)(tp_size, (enum INCUMBENT(fusion))fusion, hidden_size, num_tokens);
}

// Its name; "unknown" from the first number on that is none.
const char *incumbent_name(int strategy) {
    return INCUMBENT(strategy_name)((enum INCUMBENT(strategy))strategy);
}
