// The copy in the source tree, out of date: whoever compiles it is told.
#error "the copy in the source tree was compiled"
