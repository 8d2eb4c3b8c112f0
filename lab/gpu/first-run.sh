#!/usr/bin/env bash
# The first run on a machine with an NVIDIA GPU, in one command: conformance, speed, memory errors, a peer, a call.
#
#   lab/gpu/first-run.sh FOLDER [MEDIA]
#
# FOLDER gets a file for each step, and summary.txt. MEDIA has a q.ivf to publish (docs: lab/loadtest.md); without it the
# drawn scene is sent. Steps follow each other by what is lost least if the machine is taken away: each has a limit, and
# a step that fails or is cut off leaves what it printed. Needs the driver and libnvrtc; compute-sanitizer, ncu and
# Python with PyTorch are used where they are. WINDLASS_LAB names the program (target/release/windlass-lab by default); the server lies
# beside it, or WINDLASS_BIN names it.
set -u
out=${1:?name a folder for the results} media=${2:-}
lab=${WINDLASS_LAB:-target/release/windlass-lab}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
[ -x "$lab" ] || { echo "$lab is missing: cargo build --release -p windlass-lab -p windlass" >&2; exit 1; }

# NVRTC by its folder, where the dynamic linker does not know it. The toolkit's stubs are no driver.
nvrtc=$(find / -name 'libnvrtc.so*' -not -path '*/stubs/*' -not -path '/proc/*' 2>/dev/null | head -1)
[ -n "$nvrtc" ] && export LD_LIBRARY_PATH="$(dirname "$nvrtc")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

# step NAME SECONDS COMMAND...: rows are on standard error as they come, the report on standard output.
step() {
    local name=$1 limit=$2
    shift 2
    timeout -s INT -k 30 "$limit" "$@" >"$out/$name.out" 2>"$out/$name.err"
    echo "$name: status $? after ${SECONDS} s" | tee -a "$out/summary.txt"
}
small=(--networks chain:5x16x2 --sizes 64x64 --batches 1 --workers 0 --seconds 0.01 --cost chain:5x16x2@64x64p30)
networks=chain:5x16x2,chain:5x16x3,chain:5x32x2,blocks:8x32x2,blocks:8x32x3,blocks:8x32x3+twin

nvidia-smi -q >"$out/card.txt" 2>&1
step speed 200 "$lab" bench gpu --variants mma,wgmma --networks "$networks" --sizes 640x360,1280x720 --seconds 0.1 \
    --cost blocks:8x32x3@1280x720p60,chain:5x16x2@640x360p30 --json
step call 60 "$lab" loadtest --own --publishers 16 ${media:+--media "$media"} --seconds 20 --threads 2 --json -- \
    --device cuda --anchor-fraction 0.075 --max-enhanced 128 --captured off
step conformance 120 "$lab" bench gpu --conformance --variants mma,wgmma "${small[@]}"
python3 -c 'import torch' 2>/dev/null && step pytorch 60 python3 "$here/pytorch_peer.py" 50
if command -v ncu >/dev/null; then
    for case in "wgmma 20 10" "mma 16 8"; do
        read -r variant skip count <<<"$case"
        step "roofline-$variant" 60 ncu --clock-control none --kill yes --csv --page raw --section SpeedOfLight \
            --section ComputeWorkloadAnalysis --section Occupancy -k regex:group -s "$skip" -c "$count" \
            "$lab" bench gpu --variants "$variant" --networks blocks:8x32x3 --sizes 1280x720 --batches 4 --workers 0 \
            --seconds 0.01 --cost chain:5x16x2@64x64p30
    done
fi
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck synccheck; do
        step "$tool" 120 compute-sanitizer --tool "$tool" "$lab" bench gpu --conformance --variants mma,wgmma "${small[@]}"
        grep 'ERROR SUMMARY' "$out/$tool.out" | tee -a "$out/summary.txt"
    done
fi
