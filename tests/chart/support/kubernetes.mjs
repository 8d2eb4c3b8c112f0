// A Kubernetes whose nodes run nothing: the real API server with its store and its controllers. Pods are made, and wait.
import { spawn } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { freePort } from "../../e2e/support/ports.mjs";
import { until } from "../../e2e/support/until.mjs";
import { writeKubeconfig } from "./helm.mjs";

const FOLDER = process.env.WINDLASS_KUBERNETES;
const PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager"];
const missing = [...PROGRAMS, "crds"].filter((name) => !FOLDER || !existsSync(join(FOLDER, name)));
export const withoutKubernetes = missing.length > 0 && `no ${missing.join(", ")}: WINDLASS_KUBERNETES names the folder that has them`;

/** Starts a cluster; `kubeconfig` leads Helm to it, and `ask` sends a request to its API. */
export async function startKubernetes() {
  const folder = mkdtempSync(join(tmpdir(), "windlass-kubernetes-"));
  const children = [];
  let failed;
  const ended = new Promise((_, reject) => (failed = reject));
  ended.catch(() => {});
  const start = (program, options) => {
    const log = openSync(join(folder, `${program}.log`), "w");
    const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    const child = spawn(join(FOLDER, program), args, { stdio: ["ignore", log, log] });
    child.once("exit", () => failed(new Error(`${program} ended: ${readFileSync(join(folder, `${program}.log`), "utf8").split("\n").slice(-8).join("\n")}`)));
    children.push(child);
  };
  const stop = async () => {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exit = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await exit;
    }
    rmSync(folder, { recursive: true });
  };
  try {
    const [client, peer, port, controllers] = [await freePort(), await freePort(), await freePort(), await freePort()];
    const etcd = `http://127.0.0.1:${client}`;
    const between = `http://127.0.0.1:${peer}`;
    start("etcd", {
      "data-dir": join(folder, "etcd"), "listen-client-urls": etcd, "advertise-client-urls": etcd,
      "listen-peer-urls": between, "initial-advertise-peer-urls": between, "initial-cluster": `default=${between}`,
    });
    const token = randomBytes(24).toString("hex");
    const tokens = join(folder, "tokens.csv");
    writeFileSync(tokens, `${token},admin,admin,system:masters\n`);
    const key = join(folder, "accounts.key");
    writeFileSync(key, generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" }));
    start("kube-apiserver", {
      "etcd-servers": etcd, "secure-port": port, "bind-address": "127.0.0.1", "cert-dir": join(folder, "certificates"),
      "token-auth-file": tokens, "authorization-mode": "RBAC", "service-cluster-ip-range": "10.96.0.0/16",
      "service-account-issuer": "https://kubernetes.default.svc", "service-account-key-file": key, "service-account-signing-key-file": key,
    });
    const server = `https://127.0.0.1:${port}`;
    const kubeconfig = writeKubeconfig(folder, { server, "insecure-skip-tls-verify": true }, { token });
    start("kube-controller-manager", {
      kubeconfig, "service-account-private-key-file": key, "use-service-account-credentials": true, "leader-elect": false,
      "bind-address": "127.0.0.1", "secure-port": controllers, "cert-dir": join(folder, "controllers"),
      // Nobody says again that a node is ready.
      "node-monitor-grace-period": "1h",
    });
    /** What the API answers; an error if it refuses. */
    const ask = (method, path, body) =>
      new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
        const request = https.request(server + path, { method, headers, rejectUnauthorized: false }, async (response) => {
          let text = "";
          for await (const piece of response.setEncoding("utf8")) text += piece;
          const said = text.startsWith("{") ? JSON.parse(text) : text;
          if (response.statusCode < 300) resolve(said);
          else reject(new Error(said.message ?? text));
        });
        request.on("error", reject);
        request.end(body && JSON.stringify(body));
      });
    await Promise.race([ended, until(async () => (await ask("GET", "/readyz")) === "ok", "the API server is ready", 60_000)]);
    return { kubeconfig, helm: [], ask, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Makes the kinds of others that the chart's files of values ask for, by the definitions in the folder's `crds`. */
export async function define(cluster) {
  const folder = join(FOLDER, "crds");
  for (const file of readdirSync(folder)) {
    const definition = parse(readFileSync(join(folder, file), "utf8"));
    await cluster.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
    const { group, names, versions } = definition.spec;
    await until(() => cluster.ask("GET", `/apis/${group}/${versions[0].name}/${names.plural}`), `${names.kind} is known`, 60_000);
  }
}
