# Writes bench_identity.h: a hash of all sources that affect measurements, and the compiler's name.
# cmake -DOUT=file -DCOMPILER=name -DFLAGS=flags -DROOT=folder of the bench -DLEAVE_OUT=folder in it
#   -DRENDERED=files -P identity.cmake
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/*.c ${ROOT}/*.h ${ROOT}/*.txt)
list(FILTER sources EXCLUDE REGEX # other programs
     "^(workload/|replay/|incumbent/|plugins/examples/|libraries/(blas|functions)\\.)")
list(FILTER sources EXCLUDE REGEX "^${LEAVE_OUT}/")
list(SORT sources)
set(all "${COMPILER} ${FLAGS}")
foreach(source IN LISTS sources)
  file(SHA256 ${ROOT}/${source} digest)
  string(APPEND all " ${source} ${digest}")
endforeach()
foreach(source IN LISTS RENDERED)
  file(SHA256 ${source} digest)
  cmake_path(GET source FILENAME name)
  string(APPEND all " ${name} ${digest}")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(CONFIGURE OUTPUT ${OUT} CONTENT
  "#define BENCH_HASH \"${digest}\"\n#define BENCH_COMPILER \"${COMPILER}\"\n")
