// Checks what npm would pack of the SDK, or of the package in the folder that is named: these files and no others, none
// larger than its `sizes.json` allows. They are built before.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const [folder = "."] = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const here = fileURLToPath(new URL(`${folder}/`, import.meta.url));
const LIMITS = "sizes.json";

const read = (file) => JSON.parse(readFileSync(path.join(here, file), "utf8"));
const limits = read(LIMITS);
const wanted = [
  "package.json",
  "README.md",
  "LICENSE-APACHE",
  "LICENSE-MIT",
  path.normalize(read("package.json").types),
];
wanted.push(...Object.keys(limits));
const declaration = /^types\/(?!demo\/)[\w./-]+\.d\.ts$/;

const pack = ["pack", "--dry-run", "--json", "--ignore-scripts", "--loglevel=error"];
const [{ files }] = JSON.parse(execFileSync("npm", pack, { cwd: here, encoding: "utf8" }));
const packed = files.map((file) => file.path);

const faults = [];
for (const file of wanted) {
  if (!packed.includes(file))
    faults.push(`${file} is not packed: it is not built, or not in \`files\` of package.json`);
}
for (const file of packed) {
  if (!wanted.includes(file) && !declaration.test(file))
    faults.push(`${file} is packed: see \`files\` in package.json`);
}
for (const file of packed.filter((file) => file in limits)) {
  const bytes = readFileSync(path.join(here, file));
  const sizes = { raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length };
  for (const [how, size] of Object.entries(sizes)) {
    const max = limits[file][how];
    if (size > max)
      faults.push(`${file}, ${how}: ${size} bytes of ${max}; raise the limit in ${LIMITS} if you mean it`);
  }
  if (process.argv.includes("--sizes")) console.log(file, sizes);
}
for (const fault of faults) console.error(`${read("package.json").name}: ${fault}`);
process.exit(faults.length > 0 ? 1 : 0);
