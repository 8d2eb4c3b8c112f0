// What Helm needs of Kubernetes' API to install, upgrade and remove a release: a store of objects that runs nothing. A stand-in, where no
// cluster can be had (`kubernetes.mjs` starts a real one): Helm is the real one, and asks it for what earlier releases left (`lookup`).
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeKubeconfig } from "./helm.mjs";

/** The kinds of the chart, by API. */
const KINDS = {
  v1: { ConfigMap: "configmaps", Secret: "secrets", Service: "services", ServiceAccount: "serviceaccounts" },
  "apps/v1": { DaemonSet: "daemonsets", Deployment: "deployments", StatefulSet: "statefulsets" },
  "autoscaling/v2": { HorizontalPodAutoscaler: "horizontalpodautoscalers" },
  "networking.k8s.io/v1": { NetworkPolicy: "networkpolicies" },
  "policy/v1": { PodDisruptionBudget: "poddisruptionbudgets" },
};

/** What a GET under /api and /apis finds beside objects. */
function discovery(path) {
  const groups = Object.keys(KINDS).filter((api) => api !== "v1");
  if (path === "/version") return { major: "1", minor: "31", gitVersion: "v1.31.0" };
  if (path === "/api") return { kind: "APIVersions", versions: ["v1"] };
  if (path === "/apis") {
    const named = (groupVersion) => ({ groupVersion, version: groupVersion.split("/")[1] });
    const all = groups.map((api) => ({ name: api.split("/")[0], versions: [named(api)], preferredVersion: named(api) }));
    return { kind: "APIGroupList", apiVersion: "v1", groups: all };
  }
  const api = path.replace(/^\/apis?\//, "");
  if (!(api in KINDS)) return undefined;
  const verbs = ["create", "delete", "get", "list", "patch", "update"];
  const resources = Object.entries(KINDS[api]).map(([kind, name]) => ({ name, kind, namespaced: true, verbs }));
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion: api, resources };
}

/** Changes an object as a merge patch says. */
function merge(object, patch) {
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete object[key];
    else if (typeof value === "object" && !Array.isArray(value)) merge((object[key] ??= {}), value);
    else object[key] = value;
  }
}

/** Whether labels are what `name=value,…` asks for. */
const fits = (object, selector) =>
  (selector ?? "").split(",").filter(Boolean).every((one) => {
    const [name, value] = one.split("=");
    return object.metadata.labels?.[name] === value;
  });

/** A store; `kubeconfig` leads Helm to it, and `get` gives the object at a path. */
export async function startStore() {
  const objects = new Map();
  const answer = (method, url, body) => {
    const path = url.pathname;
    const there = objects.get(path);
    if (method === "POST") {
      const at = `${path}/${body.metadata.name}`;
      if (objects.has(at)) return [409, "AlreadyExists"];
      objects.set(at, body);
      return [201, body];
    }
    if (method === "GET" && !there) {
      const found = discovery(path);
      if (found) return [200, found];
      const [, kind] = path.match(/\/namespaces\/[^/]+\/([a-z]+)$/) ?? [];
      if (!kind) return [404, "NotFound"];
      const items = [...objects].filter(([at]) => at.startsWith(`${path}/`)).map(([, object]) => object);
      const list = kind === "secrets" ? "SecretList" : "List";
      return [200, { kind: list, apiVersion: "v1", items: items.filter((o) => fits(o, url.searchParams.get("labelSelector"))) }];
    }
    if (!there) return [404, "NotFound"];
    if (method === "PUT") objects.set(path, body);
    if (method === "PATCH") merge(there, body);
    if (method === "DELETE") objects.delete(path);
    return [200, objects.get(path) ?? there];
  };
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += piece;
    const [code, said] = answer(request.method, new URL(request.url, "http://store"), text && JSON.parse(text));
    const status = { kind: "Status", apiVersion: "v1", status: "Failure", reason: said, message: said, code };
    response.writeHead(code, { "content-type": "application/json" });
    response.end(JSON.stringify(typeof said === "string" ? status : said));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const folder = mkdtempSync(join(tmpdir(), "windlass-store-"));
  const kubeconfig = writeKubeconfig(folder, { server: `http://127.0.0.1:${server.address().port}` });
  const stop = () => {
    server.close();
    rmSync(folder, { recursive: true });
  };
  return { kubeconfig, helm: ["--disable-openapi-validation"], get: (path) => objects.get(path), stop };
}
