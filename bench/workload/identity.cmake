# Writes workload_identity.h: a hash over the sources of gentables-workload.
# cmake -DOUT=file -DROOT=folder of the sources -P identity.cmake
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/*.c ${ROOT}/*.h)
list(SORT sources)
set(all "")
foreach(source IN LISTS sources)
  file(SHA256 ${ROOT}/${source} digest)
  string(APPEND all " ${source} ${digest}")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define WORKLOAD_HASH \"${digest}\"\n")
