// The copy in the source tree, out of date: a compiler that reads it prints an error.
#error "the copy in the source tree was compiled"
