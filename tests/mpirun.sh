#!/bin/sh
# shellcheck disable=SC2034 # variables for the scripts that source it
# How tests start ranks by hand; sourced by scripts in a folder beside this file. Needs GENTABLES (the
# program).
#
#   $mpirun -n 2 PROGRAM...
mpirun=$("${GENTABLES:?}" lua "$SOURCE/tests/mpirun.lua")
