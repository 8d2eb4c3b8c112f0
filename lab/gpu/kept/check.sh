#!/bin/bash
# Compares trained weights with the committed ones on held-out clips: bash .gpu-train/check.sh TRAINED.tar.xz [STRIDE] [NAME…]
# In: what train.sh packed. Out: for each network the table /work/h-check/NAME.json and a verdict on the people's means.
# VENV, TREE (whose models/ has the committed weights), CLIPS, WINDLASS_TWIN_PICTURES may be given.
set -e
PACKED=$(realpath "$1") STRIDE=${2:-16}
VENV=${VENV:-/work/venv} TREE=${TREE:-/work/main} CHECK=${CHECK:-/work/h-check}
export WINDLASS_CLIPS=${CLIPS:-/work/clips-train}
export WINDLASS_TWIN_PICTURES=${WINDLASS_TWIN_PICTURES:-$TREE/target/serve/examples/twin_pictures}
HERE=$(cd "$(dirname "$0")" && pwd)
rm -rf "$CHECK" && mkdir -p "$CHECK/trained" && tar -xf "$PACKED" -C "$CHECK/trained"
shift; [ $# -eq 0 ] || shift
for name in ${*:-l-x2 l-x3 frames/m-x2 frames/xs-x3 frames/xxs-x3 frames/xxs-x4 frames/xs-x4}; do
    new=$CHECK/trained/$name.safetensors
    [ -s "$new" ] || { echo "$name: was not trained"; continue; }
    case $name in # what it is compared with
        l-x3) old=xs-x3 ;; frames/m-x2) old=frames/xs-x2 ;; frames/xs-x3 | frames/xxs-x3 | frames/xxs-x4) old= ;; *) old=$name ;;
    esac
    flat=${name//\//-}
    cp "$new" "$CHECK/new.safetensors"
    files=("$CHECK/new.safetensors")
    [ -z "$old" ] || { cp "$TREE/models/$old.safetensors" "$CHECK/old.safetensors"; files+=("$CHECK/old.safetensors"); }
    twins=()
    [[ $name == frames/* ]] && twins=(--twins "" "detail=30@0.5")
    (cd "$TREE" && nice "$VENV/bin/python" models/evaluate.py "${files[@]}" --stride "$STRIDE" --json "${twins[@]}") \
        >"$CHECK/$flat.json" 2>"$CHECK/$flat.log" || { echo "$name: not measured"; tail -3 "$CHECK/$flat.log"; continue; }
    "$VENV/bin/python" "$HERE/verdict.py" "$name" "${old:-twin}" "$CHECK/$flat.json"
done
