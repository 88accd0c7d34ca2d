// A clock that hurries: see clock.c.
#ifndef TESTS_FAULTS_CLOCK_H
#define TESTS_FAULTS_CLOCK_H

// From now on a deadline of the case passes soon: for who is about to hang, or to be stopped.
void fault_clock_hurry(void);

#endif
