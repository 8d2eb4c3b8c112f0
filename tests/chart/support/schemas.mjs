// Manifests against the schemas of Kubernetes, KEDA and the Prometheus operator, as npm's kubernetes-models has them: its validators say what is missing or
// of a wrong type or form, and its types, by the TypeScript compiler, what nobody knows.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const HERE = new URL("..", import.meta.url).pathname;
const MODULES = {
  v1: "kubernetes-models/v1",
  "apps/v1": "kubernetes-models/apps/v1",
  "autoscaling/v2": "kubernetes-models/autoscaling/v2",
  "policy/v1": "kubernetes-models/policy/v1",
  "networking.k8s.io/v1": "kubernetes-models/networking.k8s.io/v1",
  "keda.sh/v1alpha1": "@kubernetes-models/keda/keda.sh/v1alpha1",
  "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
};

/** What is wrong, a line for each; `manifests` are pairs of a name to tell them by and the manifest. */
export async function problems(manifests) {
  const [found, known] = [[], []];
  for (const [name, manifest] of manifests) {
    const module = MODULES[manifest.apiVersion];
    const models = module && (await import(module));
    const Model = models?.[manifest.kind] ?? models?.default?.[manifest.kind];
    if (!Model) {
      found.push(`${name}: no schema of ${manifest.apiVersion} ${manifest.kind}`);
      continue;
    }
    known.push([name, manifest]);
    try {
      new Model(manifest).validate();
    } catch (error) {
      found.push(`${name}: ${error.message}`);
    }
  }
  return [...found, ...unknown(known)];
}

/** What the types do not know: literals may have no properties beyond them, however deep. */
function unknown(manifests) {
  if (manifests.length === 0) return [];
  const output = join(HERE, "node_modules/.manifests");
  mkdirSync(output, { recursive: true });
  const folder = mkdtempSync(`${output}/`);
  try {
    const lines = manifests.map(([, { apiVersion, kind }], at) => {
      return `import type { I${kind} as T${at} } from "${MODULES[apiVersion]}";`;
    });
    // One line for each, so that the compiler's line number says which.
    lines.push(...manifests.map(([, manifest], at) => `export const m${at}: T${at} = ${JSON.stringify(manifest)};`));
    const file = join(folder, "manifests.ts");
    writeFileSync(file, lines.join("\n"));
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    const tsc = join(HERE, "node_modules/.bin/tsc");
    const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--pretty", "false", "--ignoreConfig"];
    const { status, stdout, error } = spawnSync(tsc, [...options, file], { cwd: folder, encoding: "utf8", maxBuffer: 16 << 20 });
    if (error) throw error;
    if (status === 0) return [];
    return stdout.split("\n").filter((line) => line.includes("error")).map((line) => {
      const at = Number(/\((\d+),/.exec(line)?.[1]) - 1 - manifests.length;
      return `${manifests[at]?.[0] ?? "?"}: ${line.replace(/^.*?: error /, "")}`;
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}
