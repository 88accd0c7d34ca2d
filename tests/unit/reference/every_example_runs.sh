#!/bin/sh
# Every example of --help, pasted into a clone, ends with exit code 0. Each example has a folder of its own.
# The command that many begin with runs once. Those that take longest only run at night.
# EXAMPLES: only those of verbs with this pattern in their names.
. "$SOURCE/tests/lib.sh"
needs bash cc mpirun gnuplot
PATH=$(dirname "$GENTABLES"):$PATH
export PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >"$WORK/examples.lua" <<'END'
for _, of in ipairs(require("reference.declarations").of(require("verbs").list)) do
  if not of.commands and of.name:find(os.getenv "EXAMPLES" or "") then
    local example = assert(of.verb.example, of.name .. " has no example")
    local path = ("%s/%s.example"):format(arg[1], of.name:gsub(" ", "_"))
    assert(require("core.file").write(path, (example:gsub("\n  ", "\n")) .. "\n"))
  end
end
END
"$GENTABLES" lua "$WORK/examples.lua" "$WORK"

# clone FOLDER: what the examples need of a clone.
clone() {
    mkdir "$1"
    cp -r "$SOURCE/tables" "$1"
    for part in tests templates bench docs; do ln -s "$SOURCE/$part" "$1/$part"; done
}

once="gentables workload sweep -f small -p 2 -c 2 -t 1 -o experiments/small"
clone "$WORK/once"
(cd "$WORK/once" && HOME=$WORK/once $once) >"$stdout" 2>"$stderr" </dev/null || die "fails: $once"

count=0
for example in "$WORK"/*.example; do
    case ${GENTABLES_NIGHTLY:-}$(basename "$example" .example) in
    compare | plot | sweep | workload_compare | workload_pipeline) continue ;;
    esac
    clone=${example%.example}
    clone "$clone"
    sed "s|^$once\$|cp -r '$WORK/once/experiments' .|" "$example" >"$clone/example"
    (cd "$clone" && HOME=$clone bash -e example) >"$stdout" 2>"$stderr" </dev/null ||
        die "the example of $(basename "$clone") fails: $(cat "$example")"
    rm -r "$clone"
    count=$((count + 1))
done
[ "$count" -gt "${LEAST:-30}" ] || die "only $count examples"
