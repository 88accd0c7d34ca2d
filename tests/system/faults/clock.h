// A clock that runs fast: see clock.c.
#ifndef TESTS_FAULTS_CLOCK_H
#define TESTS_FAULTS_CLOCK_H

// From now on a deadline of the case passes soon. A rank calls this before it hangs or is stopped.
void fault_clock_hurry(void);

#endif
