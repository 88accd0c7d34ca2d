# The arch of gen-tables where no option names one, and the spec for an arch of GPUs.
include_guard(GLOBAL)

#[==[
gentables_default_arch(out has_bench)

Sets `out` to the arch of this machine's GPUs, such as sm90, if nvidia-smi lists at least two, all of one SM
version, and `has_bench` (the bench for GPUs is built, with its kernels); else to host. If there is a GPU, it
prints the decision, and the option for the other one.
]==]
function(gentables_default_arch out has_bench)
  set(${out} host PARENT_SCOPE)
  _gentables_listed_gpus(versions)
  list(LENGTH versions count)
  if(count EQUAL 0)
    return()
  endif()
  list(REMOVE_DUPLICATES versions)
  list(JOIN versions ", " names)
  list(LENGTH versions kinds)
  set(host "gentables: GPUs: ${count} (${names}); gen-tables measures the host")
  if(NOT has_bench)
    message(STATUS "${host}: the bench for GPUs is built only where nvcc of CUDA 12.4 or later is found")
  elseif(kinds GREATER 1)
    message(STATUS "${host}; -DGENTABLES_ARCH with one of these measures GPUs")
  elseif(count EQUAL 1)
    message(STATUS "${host}; -DGENTABLES_ARCH=${names}-loopback measures the GPU, with all ranks on it")
  else()
    message(STATUS "gentables: GPUs: ${count} (${names}); gen-tables measures them; "
                   "-DGENTABLES_ARCH=host measures the host")
    set(${out} ${names} PARENT_SCOPE)
  endif()
endfunction()

#[==[
gentables_gpu_spec(arch path)

Writes tables/gpu/spec.lua to `path`, for this arch. TP sizes above the number of GPUs that nvidia-smi lists
are left out, apart from the smallest, unless all ranks share one GPU.
]==]
function(gentables_gpu_spec arch path)
  file(READ ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../tables/gpu/spec.lua text)
  string(REPLACE "arch = \"gpu\"" "arch = \"${arch}\"" text "${text}")
  _gentables_listed_gpus(versions)
  list(LENGTH versions count)
  if(count GREATER 1 AND NOT arch MATCHES "-loopback$")
    set(sizes 2)
    foreach(size 4 8)
      if(NOT size GREATER count)
        string(APPEND sizes ", ${size}")
      endif()
    endforeach()
    string(REPLACE "tp = { 2, 4, 8 }" "tp = { ${sizes} }" text "${text}")
  endif()
  file(WRITE ${path} "${text}")
endfunction()

# The SM version of each GPU, such as sm90; empty without nvidia-smi.
function(_gentables_listed_gpus out)
  set(${out} "" PARENT_SCOPE)
  find_program(nvidia_smi nvidia-smi NO_CACHE)
  if(NOT nvidia_smi)
    return()
  endif()
  execute_process(
    COMMAND ${nvidia_smi} --query-gpu=compute_cap --format=csv,noheader
    RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_QUIET TIMEOUT 30)
  if(NOT result EQUAL 0)
    return()
  endif()
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" versions "${text}")
  list(TRANSFORM versions REPLACE "([0-9]+)\\.([0-9]+)" "sm\\1\\2")
  set(${out} "${versions}" PARENT_SCOPE)
endfunction()
