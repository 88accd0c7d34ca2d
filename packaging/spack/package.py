# A recipe for Spack, from a checkout of gentables:
#
#   spack repo create ~/gentables_repo gentables
#   mkdir ~/gentables_repo/spack_repo/gentables/packages/gentables
#   cp packaging/spack/package.py ~/gentables_repo/spack_repo/gentables/packages/gentables
#   spack repo add ~/gentables_repo/spack_repo/gentables
#   spack dev-build -d . gentables@0.1.0
#
# For Spack 1.0 and later.
#
# No licence has been chosen yet, so the recipe has none.
from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Gentables(CMakePackage):
    """Measures collectives on a machine, and writes tables of the best ones."""

    version("0.1.0")

    variant("mpi", default=True, description="measure CPUs")
    variant("cuda", default=False, description="measure NVIDIA GPUs")
    variant("traces", default=True, description="compressed traces, databases of profilers, pictures")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("lua@5.4")
    depends_on("simdjson")
    depends_on("openmpi@4:5", when="+mpi")
    depends_on("hwloc@2.1:", when="+mpi")
    depends_on("openblas", type="run", when="+mpi")
    depends_on("cuda@12.4:", when="+cuda")
    depends_on("nccl", when="+cuda")
    depends_on("libyaml", when="+traces")
    depends_on("sqlite", when="+traces")
    depends_on("zlib-api", when="+traces")
    depends_on("zstd", when="+traces")
    depends_on("gnuplot", type="run", when="+traces")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("BUILD_TESTING", False),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_MPI", not self.spec.satisfies("+mpi")),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit", not self.spec.satisfies("+cuda")),
        ]
