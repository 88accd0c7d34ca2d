// Prints the number of tables in the header of all targets, and a choice.
#include <iostream>

int commonTables();
int runtimeTables();
int thopTables();
int kernelsStrategy(int tp, int hidden, int tokens);

int main() {
    if (runtimeTables() != commonTables() || thopTables() != commonTables()) return 1;
    std::cout << commonTables() << " tables, " << kernelsStrategy(2, 1024, 1) << '\n';
    return 0;
}
