// Prints the number of tables in the header, and a choice.
#include <iostream>

int commonTables();
int kernelsStrategy(int tp, int hidden, int tokens);

int main() {
    std::cout << commonTables() << " tables, " << kernelsStrategy(2, 1024, 1) << '\n';
    return 0;
}
