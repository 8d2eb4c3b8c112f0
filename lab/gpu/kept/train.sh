#!/bin/bash
# Trains the networks of models/ on a machine with a GPU: bash .gpu-train/train.sh [DEADLINE], in the repository's root.
# DEADLINE: seconds from the start of this script after which everything is packed (170). Out: $OUT/trained.tar.xz
# (weights, fixtures, logs) and $OUT/train.log. For tries without a GPU: DEVICE=cpu JOBS=1 DRAWS=1 DRAW_SECONDS=20.
SECONDS=0
END=${1:-170}
HERE=$(cd "$(dirname "$0")" && pwd)
OUT=${OUT:?}
DEVICE=${DEVICE:-cuda} DRAWS=${DRAWS:-60} DRAW_SECONDS=${DRAW_SECONDS:-40} BATCH=${BATCH:-32} PYTHON=${PYTHON:-python3}
WORK=$(mktemp -d /tmp/train.XXXXXX)
MADE=$WORK/trained
mkdir -p "$MADE/frames" "$MADE/logs" "$WORK/bin" "$WORK/models"
exec > >(tee -a "$OUT/train.log") 2>&1
say() { echo "[$SECONDS s] $*"; }

for part in ffmpeg twin_pictures libvpx.so.7; do
    xz -dc "$HERE/$part.xz" >"$WORK/bin/$part" && chmod +x "$WORK/bin/$part"
done
[ -s "$WORK/bin/ffmpeg" ] || for part in ffmpeg twin_pictures libvpx.so.7; do # where there is no xz
    $PYTHON -c 'import lzma, sys; sys.stdout.buffer.write(lzma.open(sys.argv[1]).read())' "$HERE/$part.xz" >"$WORK/bin/$part"
    chmod +x "$WORK/bin/$part"
done
cp -r "$HERE/models/." "$WORK/models/"
export WINDLASS_FFMPEG=$WORK/bin/ffmpeg WINDLASS_CLIPS=$HERE/clips WINDLASS_TWIN_PICTURES=$WORK/bin/twin_pictures
export LD_LIBRARY_PATH=$WORK/bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
export OPENBLAS_NUM_THREADS=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1
say "unpacked; $(nproc --all) cores, $("$WINDLASS_FFMPEG" -version | head -1 | cut -c1-40)"
"$WINDLASS_TWIN_PICTURES" </dev/null 2>&1 | head -2
[ "$DEVICE" = cuda ] && nvidia-smi --query-gpu=name,memory.used,compute_mode --format=csv,noheader

# Several processes on one GPU take turns, unless this service lets their kernels run side by side. It changes no setting
# of the GPU. Where it does not start or does not work within 25 s, all goes on without it. MPS=0: not tried.
# Trainings look for it when they first use the GPU, which is after their patches are ready.
export PYTORCH_NVML_BASED_CUDA_CHECK=1
if [ "$DEVICE" = cuda ] && [ "${MPS:-1}" = 1 ] && command -v nvidia-cuda-mps-control >/dev/null; then
    export CUDA_MPS_PIPE_DIRECTORY=$WORK/mps CUDA_MPS_LOG_DIRECTORY=$WORK/mps-log
    mkdir -p "$WORK/mps" "$WORK/mps-log"
    (
        timeout -k 1 10 nvidia-cuda-mps-control -d </dev/null >/dev/null 2>&1
        probe='import torch; a = torch.ones(512, 512, device="cuda"); print(int((a @ a).sum().item()))'
        if [ "$(timeout -k 1 25 "$PYTHON" -c "$probe" 2>"$WORK/mps-log/probe")" = 134217728 ]; then
            say "MPS works"
        else
            say "no MPS: $(tail -1 "$WORK/mps-log/probe")"
            echo quit | timeout -k 1 5 nvidia-cuda-mps-control >/dev/null 2>&1
            rm -rf "$CUDA_MPS_PIPE_DIRECTORY"
        fi
    ) &
fi

# train NAME UNTIL JOBS CACHE OPTIONS...: a training that ends at that second of this script. A second try, if there is
# time, is made plainly: without that service, without a graph.
train() {
    local name=$1 until=$2 jobs=$3 cache=$4 try left plain log=$MADE/logs/${1//\//-}.log
    shift 4
    for try in first second; do
        left=$((until - SECONDS)) plain=()
        [ $left -gt 15 ] || break
        [ $try = second ] && plain=(--no-graph)
        say "$name: $try try, $left s"
        (
            cd "$WORK/models" || exit
            [ $try = second ] && unset CUDA_MPS_PIPE_DIRECTORY
            exec timeout -k 2 $((left + 14)) "$PYTHON" train.py --device "$DEVICE" --out "$MADE/$name.safetensors" \
                --work "$WORK/$cache" --no-report --seed 3 --draws "$DRAWS" --draw-seconds "$DRAW_SECONDS" \
                --jobs "${JOBS:-$jobs}" --batch "$BATCH" --l1-share 0 --seconds "$left" "$@" "${plain[@]}"
        ) >>"$log" 2>&1 && { say "$name: done; $(tail -1 "$log")"; return; }
        say "$name: FAILED"
        tail -5 "$log"
    done
}

LAST=$((END - 12)) # a frame network's ranges take some seconds
HALF=$((END * 13 / 20))
FRAME=(--inputs luma+twin --base twin --soft 0.4)
train l-x2 $LAST 5 l2 --tier l --bf16 --start l-x2.safetensors --rate 1e-3 --soft 0.2 &
slots=($!)
train l-x3 $LAST 4 l3 --tier l --scale 3 --bf16 --start l-x2.safetensors --rate 1e-3 --soft 0.2 &
slots+=($!)
train frames/m-x2 $LAST 5 f2 "${FRAME[@]}" --tier m --start frames/xs-x2.safetensors --perceived 2.5 --rate 1.5e-3 &
slots+=($!)
if [ "${ONLY_FIRST:-0}" = 0 ]; then
    {
        train frames/xs-x3 $HALF 4 f3 "${FRAME[@]}" --tier xs --scale 3 --start frames/xs-x2.safetensors --perceived 1 --rate 1.5e-3
        train frames/xxs-x3 $LAST 4 f3 "${FRAME[@]}" --tier xxs --scale 3 --start frames/xxs-x2.safetensors --perceived 1 --rate 2e-3
    } &
    slots+=($!)
    {
        train frames/xxs-x4 $HALF 4 f4 "${FRAME[@]}" --tier xxs --scale 4 --start frames/xxs-x2.safetensors --perceived 0.25 --rate 2e-3
        train frames/xs-x4 $LAST 4 f4 "${FRAME[@]}" --tier xs --scale 4 --start frames/xs-x4.safetensors --perceived 0.25 --rate 7e-4
    } &
    slots+=($!)
fi

sleep 12
[ "$DEVICE" = cuda ] && (while sleep 15; do say "$(nvidia-smi --query-gpu=utilization.gpu,memory.used,power.draw --format=csv,noheader) load $(cut -d' ' -f1 /proc/loadavg)"; done) &
watcher=$!
while [ $SECONDS -lt "$END" ]; do
    sleep 1
    alive=0
    for slot in "${slots[@]}"; do kill -0 "$slot" 2>/dev/null && alive=1; done
    [ $alive = 1 ] || break
done
kill "$watcher" "${slots[@]}" 2>/dev/null
say "packing"
cp "$OUT/train.log" "$MADE/logs/train.log"
cp "$WORK"/mps-log/* "$MADE/logs/" 2>/dev/null
tar -C "$MADE" -c . | xz -T0 -6 >"$OUT/trained.tar.xz" || tar -C "$MADE" -czf "$OUT/trained.tar.gz" .
[ -n "$CUDA_MPS_PIPE_DIRECTORY" ] && [ -d "$CUDA_MPS_PIPE_DIRECTORY" ] && echo quit | timeout -k 1 5 nvidia-cuda-mps-control >/dev/null 2>&1
ls -la "$OUT" "$MADE" "$MADE/frames"
say "end"
