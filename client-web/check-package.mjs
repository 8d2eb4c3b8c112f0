// Checks what npm would pack of the SDK, or of the package in the folder that is named: these files and no others, none
// larger than its `sizes.json` allows, and each about as large as the README says. They are built before.
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
/** How far the README's sizes may be off. */
const STATED = 0.05;
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

/** The sizes that a table of the README states of a file, in rows of `| \`name\`, more | raw | gzipped |`. */
function stated(file) {
  const name = path.basename(file).replaceAll(".", "\\.");
  const [, raw, gzip] = readme.match(new RegExp(`^\\| \`${name}\`[^|]*\\| ([\\d ]+) \\| ([\\d ]+) \\|`, "m")) ?? [];
  const number = (text) => Number(text.replaceAll(" ", ""));
  return raw === undefined ? {} : { raw: number(raw), gzip: number(gzip) };
}

const readme = readFileSync(path.join(here, "README.md"), "utf8");
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
  const says = stated(file);
  for (const [how, size] of Object.entries(sizes)) {
    const max = limits[file][how];
    if (Math.abs(says[how] - size) > STATED * size)
      faults.push(`${file}, ${how}: ${size} bytes, and README.md says ${says[how]}`);
    if (size > max)
      faults.push(`${file}, ${how}: ${size} bytes of ${max}; raise the limit in ${LIMITS} if you mean it`);
  }
  if (process.argv.includes("--sizes")) console.log(file, sizes);
}
for (const fault of faults) console.error(`${read("package.json").name}: ${fault}`);
process.exit(faults.length > 0 ? 1 : 0);
