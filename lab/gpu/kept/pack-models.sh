#!/bin/bash
# Copies what train.sh uses of a models/ folder: bash pack-models.sh MODELS
cd "$(dirname "$0")" && rm -rf models && mkdir -p models/frames
cp "$1"/*.py "$1"/data.toml models/
cp "$1"/l-x2.safetensors models/
for name in xs-x2 xxs-x2 xs-x4; do cp "$1/frames/$name.safetensors" models/frames/; done
