#!/bin/sh
# A plug-in on GPUs that hangs, crashes, fails, leaks or waits for the GPU: one clear line leaves out the
# candidate with the fault, and no other.
. "$(dirname "$0")/../lib_stand_in.sh"
. "$(dirname "$0")/lib_plugins.sh"
only cuda nccl nvidia-ml

beside hang left_out hang "did not return in time" 10
beside waits left_out waits "its run waits for the GPU, and does not only enqueue" 10
beside later_hang left_out later_hang "did not return in time" 10
left_out crash "crashed (abort)"
left_out fails "run: a planted failure"
left_out leak "its plug-in leaks device memory" 20 2 "" # the leak has no known origin
left_out init "crashed (abort)" 20 2 ""                 # and so is this crash
left_out later_crash "crashed (abort)"
all_beside
