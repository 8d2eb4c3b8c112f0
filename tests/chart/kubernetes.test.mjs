// deploy/helm/windlass on a real Kubernetes, whose only node runs nothing: Helm installs, upgrades and removes it, the API server takes what it makes, and the
// controllers make its pods. `WINDLASS_KUBERNETES` names the folder of the programs (deploy/helm/windlass/README.md).
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { skipped } from "../e2e/support/skips.mjs";
import { until } from "../e2e/support/until.mjs";
import { CASES, copyOfChart, install, uninstall, withoutHelm } from "./support/helm.mjs";
import { define, startKubernetes, withoutKubernetes } from "./support/kubernetes.mjs";

/** What the chart makes, by the paths of their lists. */
const KINDS = {
  ConfigMap: "api/v1 configmaps", Secret: "api/v1 secrets", Service: "api/v1 services", ServiceAccount: "api/v1 serviceaccounts",
  DaemonSet: "apis/apps/v1 daemonsets", StatefulSet: "apis/apps/v1 statefulsets", Deployment: "apis/apps/v1 deployments",
  HorizontalPodAutoscaler: "apis/autoscaling/v2 horizontalpodautoscalers", Ingress: "apis/networking.k8s.io/v1 ingresses",
  NetworkPolicy: "apis/networking.k8s.io/v1 networkpolicies", PodDisruptionBudget: "apis/policy/v1 poddisruptionbudgets",
  ScaledObject: "apis/keda.sh/v1alpha1 scaledobjects", ServiceMonitor: "apis/monitoring.coreos.com/v1 servicemonitors",
};
const without = withoutHelm || withoutKubernetes;

describe("on a real Kubernetes", { skip: skipped("the Helm chart on a real Kubernetes", without) }, () => {
  let chart;
  let kubernetes;
  before(async () => {
    chart = copyOfChart();
    kubernetes = await startKubernetes();
    await define(kubernetes);
    // Where there are GPUs, their vendor's operator makes it.
    const nvidia = { apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name: "nvidia" }, handler: "nvidia" };
    await kubernetes.ask("POST", "/apis/node.k8s.io/v1/runtimeclasses", nvidia);
    // Servers of a DaemonSet are made for it, though nothing runs them.
    const labels = { "windlass/sfu": "true" };
    const node = await kubernetes.ask("POST", "/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: "node-a", labels } });
    const now = new Date().toISOString().replace(/\.\d+/, "");
    node.status.conditions = [{ type: "Ready", status: "True", reason: "Told", lastHeartbeatTime: now, lastTransitionTime: now }];
    await kubernetes.ask("PUT", "/api/v1/nodes/node-a/status", node);
  });
  after(async () => {
    await kubernetes?.stop();
    chart?.remove();
  });

  /** The cluster's part for one installation. */
  const own = async (namespace, labels = {}) => {
    await kubernetes.ask("POST", "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels } });
    return { ...kubernetes, namespace };
  };
  const listed = async ({ namespace }, kind) => {
    const [api, name] = (kind === "Pod" ? "api/v1 pods" : KINDS[kind]).split(" ");
    return (await kubernetes.ask("GET", `/${api}/namespaces/${namespace}/${name}`)).items;
  };
  /** What is there of a release, as `Kind/name`. */
  const there = async (cluster) => {
    const all = await Promise.all(
      Object.keys(KINDS).map(async (kind) => {
        const ofRelease = (await listed(cluster, kind)).filter(({ metadata }) => metadata.labels?.["app.kubernetes.io/instance"] === "w");
        return ofRelease.map(({ metadata }) => `${kind}/${metadata.name}`);
      }),
    );
    return all.flat().sort();
  };
  /** The workloads, once the controllers have made all of their pods by the newest template. */
  const rolledOut = async (cluster) => {
    const workloads = async () => [
      ...(await listed(cluster, "StatefulSet")), ...(await listed(cluster, "DaemonSet")), ...(await listed(cluster, "Deployment")),
    ];
    const complete = async () => {
      const all = await workloads();
      const made = ({ metadata, spec, status }) =>
        status.observedGeneration === metadata.generation && (status.updatedNumberScheduled ?? status.updatedReplicas ?? 0) >= firstPods(spec);
      return all.length > 0 && all.every(made) && all;
    };
    return until(complete, "all pods are made", 60_000);
  };
  /** Pods that are made before one is ready: of a StatefulSet that starts them in order, the first. */
  const firstPods = ({ replicas, podManagementPolicy }) => (podManagementPolicy === "Parallel" ? replicas : Math.min(1, replicas ?? 1));

  for (const name of CASES) {
    test(`${name}: is installed, its pods are made, and it goes`, async () => {
      const cluster = await own(`case-${name}`);
      const files = chart.files(name);
      await install(chart, cluster, "", files);
      const workloads = await rolledOut(cluster);
      const pods = await listed(cluster, "Pod");
      assert.ok(pods.length >= workloads.length, `${pods.map(({ metadata }) => metadata.name)}`);
      for (const pod of pods) assert.equal(pod.status.phase, "Pending", "nothing runs them");
      const first = await there(cluster);
      assert.ok(first.length >= 4, `${first}`);
      // Once more, as it is: the API takes each object's update too.
      await install(chart, cluster, "", files);
      assert.deepEqual(await there(cluster), first);
      await uninstall(cluster);
      const gone = async () => (await listed(cluster, "StatefulSet")).length + (await listed(cluster, "DaemonSet")).length === 0;
      await until(gone, "its workloads are gone", 60_000);
      const left = await there(cluster);
      // Keys and tokens are kept for another installation, on purpose.
      assert.deepEqual(left.filter((one) => !one.startsWith("Secret/")), []);
    });
  }

  test("other options make other enhancers, and servers stay; budgets and services select their pods", async () => {
    const cluster = await own("changes");
    const templates = async () => Object.fromEntries((await rolledOut(cluster)).map(({ metadata, spec }) => [metadata.name, JSON.stringify(spec.template)]));
    const budget = async () => (await listed(cluster, "PodDisruptionBudget")).map(({ metadata, spec }) => [metadata.name, spec.selector.matchLabels]);
    const change = async (text) => {
      const before = await templates();
      await install(chart, cluster, text);
      const now = await templates();
      return Object.keys(now).filter((name) => now[name] !== before[name]);
    };
    await install(chart, cluster);
    const budgets = await budget();
    assert.ok(budgets.length > 0);
    assert.deepEqual(await change("enhancer: { config: { max-enhanced: 9 } }"), ["w-windlass-enhancer"]);
    assert.deepEqual(await change("{ enhancer: { config: { max-enhanced: 9 } }, sfu: { config: { max-participants: 9 } } }"), [], "servers read their file again");
    assert.deepEqual(await budget(), budgets);
    // Each budget and each service finds the pods that it is for.
    const pods = (await listed(cluster, "Pod")).map(({ metadata }) => metadata.labels);
    const services = (await listed(cluster, "Service")).map(({ metadata, spec }) => [metadata.name, spec.selector]);
    for (const [name, selector] of [...budgets, ...services]) {
      const found = pods.filter((labels) => Object.entries(selector).every(([key, value]) => labels[key] === value));
      assert.ok(found.length > 0, `${name} selects no pod: ${JSON.stringify(selector)}`);
    }
  });

  test("pods keep to the restricted profile, but for the media port on the node", async () => {
    const cluster = await own("profile");
    await install(chart, cluster);
    await rolledOut(cluster);
    await own("restricted", { "pod-security.kubernetes.io/enforce": "restricted" });
    const refusals = {};
    for (const { metadata, spec } of await listed(cluster, "Pod")) {
      if (!metadata.name.startsWith("w-windlass")) continue;
      const { serviceAccountName, containers, volumes, securityContext, initContainers } = spec;
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: metadata.name }, spec: { containers, initContainers, volumes, securityContext, automountServiceAccountToken: false } };
      await kubernetes.ask("POST", "/api/v1/namespaces/restricted/serviceaccounts", { metadata: { name: serviceAccountName } }).catch(() => {});
      pod.spec.serviceAccountName = serviceAccountName;
      const why = await kubernetes.ask("POST", "/api/v1/namespaces/restricted/pods?dryRun=All", pod).then(() => "", (error) => error.message);
      refusals[metadata.name.replace(/-\d+$/, "")] = why;
    }
    assert.equal(refusals["w-windlass-enhancer"], "");
    assert.match(refusals["w-windlass"], /violates PodSecurity "restricted:latest": hostPort \(container "[\w-]+" uses hostPorts? [\d, ]+\)$/);
  });

  test("what is wrong is refused", async () => {
    const cluster = await own("wrong");
    const one = { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "wrong" }, spec: { minAvailable: 1, maxUnavailable: 1 } };
    await assert.rejects(kubernetes.ask("POST", `/apis/policy/v1/namespaces/${cluster.namespace}/poddisruptionbudgets`, one), /cannot be both set/);
  });
});
