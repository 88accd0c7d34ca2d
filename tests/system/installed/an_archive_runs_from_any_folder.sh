#!/bin/sh
# an_archive_runs_from_any_folder.sh CPACK BUILD_TREE: the .tar.gz of the target `packages`, unpacked
# somewhere: its program has the first version of CHANGELOG.md, as the recipes for Spack and EasyBuild, makes
# tables from rows, and starts its own bench. It states that no licence has been chosen.
. "$(dirname -- "$0")/../package/lib.sh"

begin archive
mkdir "$work/packages" "$work/there"
passes "$1" --config "$2/CPackConfig.cmake" -G TGZ -B "$work/packages"
version=$(sed -n 's/^## \([0-9.]*\).*/\1/p' "$GENTABLES_SOURCE/CHANGELOG.md" | head -n 1)
passes tar -xzf "$work/packages/gentables-$version-$(uname -s)-$(uname -m).tar.gz" -C "$work/there"
root=$(echo "$work"/there/*)
program=$root/bin/gentables
packaging=$GENTABLES_SOURCE/packaging
passes grep -q "version(\"$version\")" "$packaging/spack/package.py"
passes grep -q "^version = '$version'" "$packaging/easybuild/gentables-$version"-*.eb

passes "$program" --version
printed "gentables $version"
passes "$program" generate --data-dir "$project/tables/sm90" --arch sm90 --out "$work/tables" --formats table
passes cmp "$work/tables/table.csv" "$golden/table.csv"
if [ -e "$GENTABLES_PREFIX/bin/gentables-bench" ]; then
    passes "$root/bin/gentables-bench" --help
    passes test -s "$root/share/gentables/tables/host/spec.lua"
fi
passes cat "$root/share/doc/gentables/copyright"
printed "No licence has been chosen"
