# Shared by shell tests of pictures. Sourced, after tests/lib.sh.
# shellcheck shell=sh

# has_colours PNG COLOUR...: each colour, as #rrggbb, fills 10 pixels at least of every fourth one in every
# fourth row.
has_colours() {
    picture=$1
    shift
    cat >"$WORK/pixels.gp" <<END
set table "$WORK/pixels"
plot "$picture" binary filetype=png using 1:2:3 every 4:4 with rgbimage
END
    gnuplot -d "$WORK/pixels.gp" >"$WORK/gnuplot" 2>&1 ||
        die "gnuplot cannot read $picture: $(cat "$WORK/gnuplot")"
    for colour in "$@"; do
        awk -v colour="$colour" '
            !/^#/ && NF > 5 && sprintf("#%02x%02x%02x", $3, $4, $5) == colour { found++ }
            END { exit found < 10 }' "$WORK/pixels" || die "$picture has nothing in the colour $colour"
    done
}
