"""Makes a network again as it was trained: `python models/make.py NAME`.

In: the network's runs in `recipes.toml`, and the training clips of `data.toml` below WINDLASS_CLIPS. Out: its weights
and test vector below `models/.work`, never over those that are shipped; then how far the two are apart. What was
interrupted goes on where it was.

    python models/make.py frames/xs-x2
    python models/make.py frames/xs-x2 --trial 20
    python models/make.py --list
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

import pairs

# Where runs leave their weights; those of a trial are apart.
WORK, TRIAL = pairs.HERE / ".work/made", pairs.HERE / ".work/trial"


def recipes() -> dict[str, dict[str, Any]]:
    """The recipes by the names of their networks."""
    with (pairs.HERE / "recipes.toml").open("rb") as handle:
        return {recipe["name"]: recipe for recipe in tomllib.load(handle)["network"]}


def result(name: str) -> str:
    """The name of the last run's weights: that of the shipped file, by which programs know a network."""
    return Path(name).name


def weights(work: Path, name: str, given: str) -> Path:
    """The file that a recipe names: of a run here, of another network's run, or a path in the repository."""
    if "/" in given:
        return pairs.HERE.parent / given
    other, _, out = given.rpartition(":")
    return work / (other or name) / f"{out}.safetensors"


def commands(recipe: dict[str, Any], trainer: Path, work: Path) -> list[tuple[str, list[str]]]:
    """Each run's name, and the command that does it."""
    name, runs = recipe["name"], recipe["runs"]
    found = []
    for number, run in enumerate(runs, 1):
        out = run.get("out", result(name))
        options = shlex.split(f"{recipe.get('options', '')} {run.get('options', '')}")
        for option in ("start", "enhancer"):
            if option in run:
                options += [f"--{option}", str(weights(work, name, run[option]))]
        options += ["--out", str(weights(work, name, out)), "--work", str(work / name)]
        # Programs of former commits report by other means.
        if number < len(runs):
            options.append("--no-report")
        found.append((f"{number}-{out}", [sys.executable, str(trainer), *options]))
    return found


def missing(recipe: dict[str, Any], folder: Path, work: Path) -> list[str]:
    """What has to be there before the runs, and where it comes from."""
    found = []
    for clip in pairs.load_list(folder / "data.toml"):
        if clip["role"] == "train" and pairs.find(clip) is None:
            place = f"{clip['path']} of {clip['repository']}"
            found.append(f"{clip['file']} is not in {pairs.clips_folder()}: it is {place}")
    own = {run["out"] for run in recipe["runs"] if "out" in run}
    for run in recipe["runs"]:
        for given in (run[option] for option in ("start", "enhancer") if option in run):
            if given not in own and not weights(work, recipe["name"], given).exists():
                options = " --trial N" if work == TRIAL else ""
                other = given.partition(":")[0]
                found.append(f"{given} is missing: `python models/make.py {other}{options}` makes it")
    return found


def source(recipe: dict[str, Any]) -> Path:
    """The folder with the training program: this one, or that of a former commit."""
    if "commit" not in recipe:
        return pairs.HERE
    tree = pairs.HERE / ".work" / recipe["commit"]
    if not tree.exists():
        command = ["git", "-C", str(pairs.HERE), "worktree", "add", "--detach", str(tree), recipe["commit"]]
        if subprocess.run(command).returncode:
            raise SystemExit(f"commit {recipe['commit']} is not here: `git fetch --unshallow` gets it")
    return tree / "models"


def apart(one: Path, other: Path) -> str:
    """How far two files of weights are apart."""
    first, second = load_file(one), load_file(other)
    if {key: value.shape for key, value in first.items()} != {key: value.shape for key, value in second.items()}:
        return "another shape"
    if all(np.array_equal(first[key], second[key]) for key in first):
        return "the same weights"
    square = sum(float(np.square(first[key] - second[key]).sum()) for key in first)
    whole = sum(float(np.square(second[key]).sum()) for key in first)
    return f"weights that are {np.sqrt(square / whole):.1%} apart"


def make(recipe: dict[str, Any], trial: int | None) -> None:
    """Does the runs that are not done yet."""
    name, work = recipe["name"], TRIAL if trial else WORK
    folder = source(recipe)
    if lacking := missing(recipe, folder, work):
        raise SystemExit("\n".join(lacking))
    for run, command in commands(recipe, folder / "train.py", work):
        done = work / name / f"{run}.done"
        if done.exists():
            continue
        out = Path(command[command.index("--out") + 1])
        # The second name is that of a former program.
        checkpoints = (f"{out.stem}.checkpoint.pt", "checkpoint.pt")
        if any((work / name / file).exists() for file in checkpoints) and "--resume" not in command:
            command = [*command, "--resume"]
        if trial:
            command = [*command, "--steps", str(trial)]
        print(f"{name}, run {run}: {shlex.join(command)}", flush=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        # A former program would look elsewhere by default.
        if subprocess.run(command, env={**os.environ, "WINDLASS_CLIPS": str(pairs.clips_folder())}).returncode:
            raise SystemExit(f"run {run} of {name} failed; the same command goes on with it")
        done.touch()
    ours = weights(work, name, result(name))
    print(f"{ours}: {apart(ours, pairs.HERE / f'{name}.safetensors')} as shipped")
    if "differs" in recipe:
        print(f"They differ: {recipe['differs']}.")


def main() -> None:
    """Reads the options, and makes the networks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = recipes()
    parser.add_argument("network", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--list", action="store_true", help="print the commands, and run nothing")
    parser.add_argument("--trial", type=int, metavar="STEPS", help="at most so many steps a run, to try a recipe")
    args = parser.parse_args()
    if unknown := set(args.network) - set(known):
        parser.error(f"no recipe makes {', '.join(unknown)}; there are {', '.join(known)}")
    if not args.network and not args.list:
        parser.error(f"name a network: {', '.join(known)}")
    for name in args.network or known:
        if args.list:
            for _, command in commands(known[name], Path("models/train.py"), WORK):
                print(shlex.join(command))
        else:
            make(known[name], args.trial)


if __name__ == "__main__":
    main()
