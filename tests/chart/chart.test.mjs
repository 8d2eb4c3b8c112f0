// deploy/helm/windlass: rendered by Helm with several files of values, held against the schemas of what it makes, and its command lines started.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:http2";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { freePort } from "../e2e/support/ports.mjs";
import { skipped } from "../e2e/support/skips.mjs";
import { CASES, copyOfChart, install, lint, NAMESPACE, render, template, uninstall, withoutHelm } from "./support/helm.mjs";
import { problems } from "./support/schemas.mjs";
import { startStore } from "./support/store.mjs";

const BINARY = process.env.WINDLASS_BIN;
const options = { skip: skipped("the Helm chart", withoutHelm) };
const started = { skip: withoutHelm || skipped("servers by the Helm chart's command lines", !BINARY && "WINDLASS_BIN names no server") };

const chart = withoutHelm ? undefined : copyOfChart();
after(() => chart?.remove());

const files = (name) => chart.files(name);
const rendered = new Map();
/** The manifests of one of the cases, with more values: Helm renders each once. */
const of = (name, more = "") => {
  const key = `${name}\n${more}`;
  if (!rendered.has(key)) rendered.set(key, render(chart, files(name), more));
  return structuredClone(rendered.get(key));
};
const all = () => CASES.flatMap((name) => of(name).map((manifest) => [name, manifest]));
const called = (name, { kind, metadata }) => `${name}: ${kind} ${metadata.name}`;
const pods = (manifests) => manifests.filter(({ spec }) => spec?.template?.spec);
/** Values by which servers relay: the options of that, and others of the servers. */
const relay = (more = "", others = "") => `sfu: { nodeUrl: wss://a/ws, relay: { ${["enabled: true", more].filter(Boolean)} } ${others && `, ${others}`} }`;
const one = (manifests, kind, name) => {
  const found = manifests.filter((m) => m.kind === kind && (!name || m.metadata.name === name));
  assert.equal(found.length, 1, `${kind} ${name ?? ""} among ${manifests.map((m) => `${m.kind} ${m.metadata.name}`)}`);
  return found[0];
};

test("every file of values is tried", options, () => {
  const there = readdirSync(dirname(chart.values("x"))).map((file) => file.replace(".yaml", ""));
  assert.deepEqual(CASES.slice(1), there.sort());
});

test("what is rendered is what Kubernetes, KEDA and the Prometheus operator know", options, async () => {
  const manifests = all().map(([name, manifest]) => [called(name, manifest), manifest]);
  assert.ok(manifests.length > 70, `${manifests.length}`);
  assert.deepEqual(await problems(manifests), []);
});

test("manifests that are wrong are refused", options, async () => {
  const broken = (name, kind, change) => {
    const manifest = one(of(name), kind, kind === "StatefulSet" ? "w-windlass" : undefined);
    change(manifest.spec);
    return manifest;
  };
  const container = (spec) => spec.template.spec.containers[0];
  const wrong = {
    "a number for a text": broken("values", "StatefulSet", (spec) => (container(spec).env[0].name = 7)),
    "a text for a number": broken("values", "StatefulSet", (spec) => (spec.replicas = "two")),
    "a misspelt field": broken("values", "StatefulSet", (spec) => (spec.template.spec.terminationGracePeriod = 40)),
    "a misspelt field deep down": broken("values", "StatefulSet", (spec) => (container(spec).readinessProbe.httpGet.paths = "/")),
    "a missing field": broken("values", "StatefulSet", (spec) => delete spec.selector),
    "a port that is none": broken("values", "StatefulSet", (spec) => (container(spec).ports[0].containerPort = "http")),
    "another's misspelt field": broken("keda", "ScaledObject", (spec) => (spec.minReplicas = 1)),
    "another's missing field": broken("keda", "ScaledObject", (spec) => delete spec.triggers),
    "a kind that there is not": { apiVersion: "apps/v1", kind: "Statefulset", metadata: { name: "x" } },
  };
  for (const [name, manifest] of Object.entries(wrong)) {
    const found = await problems([[name, manifest]]);
    assert.ok(found.length > 0 && found.every((problem) => problem.startsWith(`${name}: `)), `${name}: ${found}`);
  }
});

test("Helm finds nothing to blame, and values that make no sense are refused with their names", options, () => {
  for (const name of CASES) assert.match(lint(chart, files(name)), /0 chart\(s\) failed/);
  const refused = [
    ["sfu: { replica: 3 }", /replica/],
    ["sfu: { kind: Deployment }", /sfu.kind/],
    ["sfu: { mediaPort: 70000 }", /mediaPort/],
    ["sfu: { access: closed }", /sfu.access/],
    ["sfu: { config: { token-key: [k1=@/etc/windlass/secrets/k1] } }", /say sfu.access: own/],
    ["sfu: { config: { open-rooms: true } }", /sfu.config.open-rooms is the chart's own/],
    ["sfu: { config: { Max_Rooms: 3 } }", /Max_Rooms/],
    ["sfu: { config: { udp: 0.0.0.0:1 } }", /sfu.config.udp is the chart's own/],
    ["sfu: { advertise: { from: nodes } }", /sfu.advertise.nodes is empty/],
    ["sfu: { advertise: { from: nodes, nodes: { a: [sfu.example.org] } } }", /advertise.nodes.a/],
    ["sfu: { nodeUrl: https://sfu.example.org }", /nodeUrl/],
    ["nats: { enabled: false }", /enhancers are found through NATS/],
    ["{ nats: { enabled: false }, enhancer: { enabled: false }, sfu: { nodeUrl: wss://a/ws } }", /nodeUrl shares rooms out through NATS/],
    ["sfu: { relay: { enabled: true } }", /sfu.relay is for servers that share rooms/],
    [`{ nats: { enabled: false }, enhancer: { enabled: false }, sfu: { relay: { enabled: true } } }`, /sfu.relay is for servers that share rooms/],
    [`{ nats: { enabled: false }, enhancer: { enabled: false }, ${relay()} }`, /through NATS/],
    [relay("", "kind: DaemonSet"), /sfu.relay.address is missing/],
    ["cluster: { existing: { sfu: mine } }", /cluster.existing names sfu: name tokens and sfu and enhancer/],
    ["cluster: { certificateDays: 3650 }", /certificateDays/],
    ["sfu: { hostNetwork: true }", /networkPolicy.nodes is missing/],
    ["networkPolicy: { nodes: [10.0.0.1] }", /networkPolicy.nodes/],
    [relay("address: 'http://$(NODE_NAME).example:7883'"), /relay.address/],
    [relay("port: 7881"), /sfu.relay.port is that of signalling or of media/],
    [relay("port: 7880"), /sfu.relay.port is that of signalling or of media/],
    [relay("port: 70000"), /relay.port/],
    [relay("maxParticipants: 33"), /sfu.relay.maxParticipants is more than sfu.config.max-participants/],
    [relay("maxParticipants: -1"), /maxParticipants/],
    [relay("maxParticipantss: 3"), /maxParticipantss/],
    ["sfu: { config: { node-listen: 0.0.0.0:1 } }", /sfu.config.node-listen is the chart's own/],
    ["sfu: { config: { node-max-participants: 3 } }", /sfu.config.node-max-participants is the chart's own/],
    ["sfu: { kind: DaemonSet, ingress: { enabled: true, host: a.example, podDomain: b.example } }", /must be StatefulSet/],
    ["enhancer: { gpu: { count: 0 } }", /gpu.count/],
    ["autoscaling: { kind: keda, min: 5, max: 4 }", /autoscaling.min is more/],
    ["autoscaling: { target: 0 }", /target/],
    ["externalNats: { urls: [nats.example.org] }", /externalNats.urls/],
  ];
  for (const [values, why] of refused) {
    const { status, stderr } = template(chart, [], values);
    assert.notEqual(status, 0, values);
    assert.match(stderr, why, values);
  }
});

test("what refers to something refers to something that is there", options, () => {
  for (const name of CASES) {
    const manifests = of(name);
    const has = (kind, wanted) => manifests.some((m) => m.kind === kind && m.metadata.name === wanted);
    for (const workload of pods(manifests)) {
      const { selector, template: pod, serviceName } = workload.spec;
      for (const [label, value] of Object.entries(selector.matchLabels)) assert.equal(pod.metadata.labels[label], value);
      if (workload.kind === "StatefulSet") assert.ok(has("Service", serviceName), `${name}: ${serviceName}`);
      assert.ok(has("ServiceAccount", pod.spec.serviceAccountName));
      const [{ volumeMounts, args, ports }] = pod.spec.containers;
      const volumes = pod.spec.volumes.map((volume) => volume.name);
      assert.deepEqual(volumeMounts.map((mount) => mount.name).sort(), volumes.sort(), `${name}: volumes and mounts`);
      // Files that options name are mounted.
      const mounted = (path) => volumeMounts.some((mount) => path.startsWith(`${mount.mountPath}/`));
      for (const [, path] of args.map((arg) => /=@?(\/.*)$/.exec(arg)).filter(Boolean)) assert.ok(mounted(path), `${name}: ${path}`);
      for (const volume of pod.spec.volumes.filter((volume) => volume.configMap)) {
        const { data } = one(manifests, "ConfigMap", volume.configMap.name);
        for (const text of Object.values(data))
          for (const [, path] of text.matchAll(/@(\/[^"'\s]*)/g)) assert.ok(mounted(path), `${name}: ${path}`);
      }
      const services = manifests.filter((m) => m.kind === "Service" && m.spec.selector);
      const selects = ({ spec }) =>
        Object.entries(spec.selector).every(([label, value]) => label.startsWith("statefulset") || pod.metadata.labels[label] === value);
      const mine = services.filter(selects);
      assert.ok(mine.length > 0);
      for (const port of mine.flatMap((service) => service.spec.ports)) assert.ok(ports.some((p) => p.name === port.targetPort));
    }
    for (const { spec } of manifests.filter((m) => m.spec?.scaleTargetRef)) {
      const target = one(manifests, spec.scaleTargetRef.kind, spec.scaleTargetRef.name);
      assert.equal(target.spec.replicas, undefined, "an autoscaler and the chart must not both say how many");
    }
    for (const { spec } of manifests.filter((m) => m.kind === "ServiceMonitor" || m.kind === "PodDisruptionBudget")) {
      const wanted = Object.entries(spec.selector.matchLabels);
      const kind = spec.endpoints ? "Service" : undefined;
      const matches = manifests.filter((m) => (kind ? m.kind === kind : m.spec?.template) && wanted.every(([l, v]) => m.metadata.labels[l] === v));
      assert.equal(matches.length, 1, `${name}: ${JSON.stringify(wanted)}`);
      for (const endpoint of spec.endpoints ?? []) assert.ok(matches[0].spec.ports.some((port) => port.name === endpoint.port));
    }
    for (const path of manifests.filter((m) => m.kind === "Ingress").flatMap((m) => m.spec.rules).flatMap((rule) => rule.http.paths)) {
      assert.ok(has("Service", path.backend.service.name));
    }
  }
});

test("pods have no more rights than compose.yaml gives, and more time to end than rooms have", options, () => {
  for (const [name, manifest] of all().filter(([, m]) => pods([m]).length)) {
    const pod = manifest.spec.template.spec;
    const [container] = pod.containers;
    assert.equal(container.securityContext.readOnlyRootFilesystem, true, name);
    assert.equal(container.securityContext.allowPrivilegeEscalation, false);
    assert.deepEqual(container.securityContext.capabilities, { drop: ["ALL"] });
    assert.deepEqual([pod.securityContext.runAsNonRoot, pod.securityContext.runAsUser], [true, 65532]);
    assert.equal(pod.automountServiceAccountToken, false);
    assert.ok(container.volumeMounts.every((mount) => mount.readOnly || mount.mountPath === "/tmp"));
    const config = one(of(name), "ConfigMap", manifest.metadata.name).data;
    for (const text of Object.values(config)) {
      const drain = Number(/drain-timeout: (\d+)s/.exec(text)?.[1] ?? 30);
      assert.equal(pod.terminationGracePeriodSeconds, drain + 10, name);
    }
    if (manifest.metadata.name.endsWith("-enhancer")) continue;
    const open = container.ports.filter((port) => port.hostPort).map((port) => `${port.hostPort}/${port.protocol}`);
    assert.deepEqual(open.sort(), ["7881/TCP", "7881/UDP", ...(name.startsWith("tls") ? ["7883/TCP"] : [])], name);
  }
});

test("GPUs, nodes and addresses are as they were asked for", options, () => {
  const worker = (manifests) => one(manifests, "StatefulSet", "w-windlass-enhancer").spec.template.spec;
  const gpu = worker(of("cluster"));
  assert.equal(gpu.containers[0].resources.limits["nvidia.com/gpu"], 1);
  assert.equal(gpu.containers[0].resources.limits.memory, "4Gi");
  assert.equal(gpu.runtimeClassName, "nvidia");
  assert.deepEqual(gpu.nodeSelector, { accelerator: "l4" });
  assert.ok(gpu.tolerations.some((toleration) => toleration.key === "nvidia.com/gpu"));
  const cpu = worker(of("nodes"));
  assert.equal(cpu.runtimeClassName, undefined);
  assert.equal(cpu.containers[0].resources.limits["nvidia.com/gpu"], undefined);
  const nodes = of("nodes");
  const server = one(nodes, "StatefulSet", "w-windlass").spec.template.spec;
  assert.ok(server.containers[0].args.includes("--config=/etc/windlass/config/$(NODE_NAME).yaml"));
  const config = one(nodes, "ConfigMap", "w-windlass").data;
  assert.deepEqual(Object.keys(config).sort(), ["node-a.yaml", "node-b.yaml"]);
  assert.match(config["node-b.yaml"], /advertise:\n- 203\.0\.113\.11\n- '?2001:db8::11/);
  const [terms] = [server.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms];
  assert.deepEqual(terms.map((term) => term.matchFields[0].values), [["node-a"], ["node-b"]]);
  const hosts = one(of("cluster"), "Ingress").spec.rules.map((rule) => rule.host);
  assert.deepEqual(hosts, ["calls.example.org", ...[0, 1, 2].map((n) => `w-windlass-${n}.sfu.example.org`)]);
});

test("servers relay where they are told to, with the cluster's token and certificates, and else listen for nobody", options, () => {
  const asked = ["--node-listen", "--node-max-participants", "--cluster-token", "--cluster-tls"];
  const server = (manifests) => {
    const [{ args, ports, volumeMounts }] = pods(manifests).find((m) => m.metadata.name === "w-windlass").spec.template.spec.containers;
    const said = Object.fromEntries(args.map((arg) => arg.split(/=(.*)/)).filter(([name]) => asked.includes(name)));
    return { said, port: ports.find((port) => port.name === "relay"), mounts: volumeMounts.map((mount) => mount.name) };
  };
  const shown = {
    "--cluster-token": "@/etc/windlass/cluster/token",
    "--cluster-tls": ["ca.crt", "tls.crt", "tls.key"].map((file) => `/etc/windlass/cluster/${file}`).join(","),
  };
  for (const name of CASES.filter((name) => name !== "relay" && name !== "tls")) {
    const { said, port } = server(of(name));
    assert.deepEqual([said, port], [name === "alone" ? {} : shown, undefined], name);
  }
  const byName = of("relay");
  const { said, port, mounts } = server(byName);
  const address = "https://$(POD_NAME).w-windlass-pods.calls.svc.cluster.local:7883";
  assert.deepEqual(said, { "--node-listen": `0.0.0.0:7883,${address}`, "--node-max-participants": "30", ...shown });
  assert.deepEqual(port, { name: "relay", containerPort: 7883, protocol: "TCP" }, "nothing of it on the node");
  assert.ok(mounts.includes("cluster") && one(byName, "Secret", "w-windlass-cluster-sfu"), "though there are no enhancers");
  const { spec } = one(byName, "Service", "w-windlass-pods");
  assert.deepEqual([spec.clusterIP, spec.publishNotReadyAddresses], ["None", true], "names that lead to pods, while they drain too");
  const byNode = server(of("tls"));
  assert.deepEqual(byNode.said, { "--node-listen": "0.0.0.0:7883,https://$(NODE_NAME).sfu.example.org:7883", ...shown });
  assert.deepEqual(byNode.port, { name: "relay", containerPort: 7883, hostPort: 7883, protocol: "TCP" });
  const other = server(of("values", `{ cluster: { domain: k8s.internal }, ${relay("port: 9000", "ipv6: true")} }`));
  assert.equal(other.port.containerPort, 9000);
  assert.match(other.said["--node-listen"], /^\[::\]:9000,https:.*\.w-windlass-pods\.calls\.svc\.k8s\.internal:9000$/);
  assert.equal(other.said["--node-max-participants"], undefined, "the program's own: max-participants");
});

test("rooms need tokens by a key that Helm makes and keeps, or by keys of the operator's, unless they are opened", options, () => {
  const server = (manifests) => {
    const pod = pods(manifests).find((m) => m.metadata.name === "w-windlass").spec.template.spec;
    const [{ args, env, volumeMounts }] = pod.containers;
    const secret = manifests.find((m) => m.kind === "Secret" && m.metadata.name === "w-windlass-token-key");
    return {
      open: args.includes("--open-rooms"),
      key: env.find(({ name }) => name === "WINDLASS_TOKEN_KEY")?.value,
      mount: volumeMounts.find(({ name }) => name === "token-key")?.mountPath,
      secret,
    };
  };
  for (const name of ["values", "nodes", "relay", "tls"]) {
    const { secret, ...rest } = server(of(name));
    assert.deepEqual(rest, { open: false, key: "k1=@/etc/windlass/token-key/k1", mount: "/etc/windlass/token-key" }, name);
    assert.ok(Buffer.from(secret.data.k1, "base64").length >= 32, "what a key must have");
    assert.equal(secret.metadata.annotations["helm.sh/resource-policy"], "keep");
  }
  const again = server(render(chart, files("values")));
  assert.notEqual(again.secret.data.k1, server(of("values")).secret.data.k1, "nobody else's");
  assert.deepEqual(server(of("cluster")), { open: false, key: undefined, mount: undefined, secret: undefined }, "the operator's own");
  assert.deepEqual(server(of("alone")), { open: true, key: undefined, mount: undefined, secret: undefined });
});

test("upgrades keep what was made at first, and so does an installation after a removal", options, async (t) => {
  const store = await startStore();
  t.after(store.stop);
  const secret = (name) => store.get(`/api/v1/namespaces/${NAMESPACE}/secrets/w-windlass-${name}`);
  const made = () =>
    ["token-key", "cluster-tokens", "cluster-authority", "cluster-sfu", "cluster-enhancer", "nats", "nats-authority"].map((name) => [name, secret(name).data]);
  await install(chart, store);
  const first = made();
  await install(chart, store, "sfu: { replicas: 3 }");
  assert.deepEqual(made(), first, "after an upgrade");
  await uninstall(store);
  await install(chart, store);
  assert.deepEqual(made(), first, "after a removal");
  // A third of its time has passed.
  const was = secret("cluster-sfu");
  was.metadata.annotations["windlass.dev/made"] = "1";
  const before = was.data["tls.crt"];
  await install(chart, store);
  assert.notEqual(secret("cluster-sfu").data["tls.crt"], before, "another certificate");
  const others = (all) => all.filter(([name]) => name !== "cluster-sfu");
  assert.deepEqual(others(made()), others(first));
});

/** A container's arguments, its variables filled in and its files written below a folder. */
function commandLine(manifests, workload, folder) {
  const { containers, volumes } = workload.spec.template.spec;
  const variables = { POD_NAME: `${workload.metadata.name}-0`, NODE_NAME: "node-a", HOST_IP: "192.0.2.7", ADVERTISE: "192.0.2.7" };
  const place = (path) => join(folder, path.slice(1).replaceAll("/", "-"));
  for (const { name, mountPath } of containers[0].volumeMounts) {
    const volume = volumes.find((volume) => volume.name === name);
    const data = {};
    if (volume.configMap) Object.assign(data, one(manifests, "ConfigMap", volume.configMap.name).data);
    const own = volume.secret && { ...volume.secret, name: volume.secret.secretName };
    for (const { name, items } of [own, ...(volume.projected?.sources ?? []).map((source) => source.secret)].filter(Boolean)) {
      const secret = manifests.find((m) => m.kind === "Secret" && m.metadata.name === name);
      if (!secret) continue;
      const all = Object.keys(secret.data).map((key) => ({ key, path: key }));
      for (const { key, path } of items ?? all) data[path] = Buffer.from(secret.data[key], "base64").toString();
    }
    for (const [key, text] of Object.entries(data)) writeFileSync(place(`${mountPath}/${key}`), text);
  }
  const filled = containers[0].args.map((arg) => arg.replace(/\$\((\w+)\)/g, (all, name) => variables[name] ?? all));
  return filled.map((arg) => arg.replace(/(?<=[=@,])\/etc\/[^,]*/g, (path) => place(path)));
}

const scratch = () => mkdtempSync(join(tmpdir(), "windlass-chart-files-"));

test("every option and every configuration that the chart writes is one of the program's", started, () => {
  const folder = scratch();
  after(() => rmSync(folder, { recursive: true }));
  const run = (args) => spawnSync(BINARY, args, { encoding: "utf8" });
  let checked = 0;
  for (const name of CASES) {
    const manifests = of(name);
    for (const workload of pods(manifests)) {
      const args = commandLine(manifests, workload, folder);
      assert.ok(args.every((arg) => !arg.includes("$(")), `${args}`);
      // Help is shown once all before it has been understood, values too. Files of Secrets that others make are not there.
      const known = args.filter((arg) => name !== "tls" || !arg.startsWith("--cluster-token"));
      const { status, stderr } = run([...known, "--help"]);
      assert.equal(status, 0, `${name}: ${args}: ${stderr}`);
      for (const text of Object.values(one(manifests, "ConfigMap", workload.metadata.name).data)) {
        const file = join(folder, "checked.yaml");
        const secret = join(folder, "secret");
        writeFileSync(secret, "a-secret-that-is-long-enough-for-all");
        // Addresses of the file must go with that of the command line.
        const udp = args.filter((arg) => arg.startsWith("--udp=")).map((arg) => `udp: "${arg.slice(6)}"\n`);
        const secrets = text.replaceAll(/@\/etc\/windlass\/secrets\/[^"'\s]*/g, `@${secret}`);
        writeFileSync(file, `${secrets}\n${udp.join("")}`);
        const { status, stderr } = run(["config", "--check", file]);
        assert.equal(status, 0, `${name}: ${stderr}`);
        checked += 1;
      }
    }
  }
  assert.ok(checked > CASES.length);
  const { status, stderr } = run(["serve", "--no-such-option=1", "--help"]);
  assert.ok(status !== 0 && stderr.includes("--no-such-option"), "an option that there is not would be seen");
  assert.notEqual(run(["serve", "--udp=here", "--help"]).status, 0, "so would a value");
});

/** Starts a command line. Resolves to what `line` captures, once a line of the output matches. */
async function run(args, line) {
  const child = spawn(BINARY, args, { stdio: ["ignore", "pipe", "inherit"] });
  after(() => child.kill("SIGKILL"));
  let said = "";
  for await (const text of child.stdout) {
    said += text;
    const found = line.exec(said);
    if (found) return found[1];
  }
  throw new Error(`it ended: ${said}`);
}

/** Starts a command line of the chart at free ports of this machine, without NATS. */
function start(args, line) {
  const local = args
    .filter((arg) => !/^--(nats|node-url|advertise)/.test(arg))
    .map((arg) => arg.replace(/^(--(?:http|udp|listen|metrics))=.*$/, "$1=127.0.0.1:0"));
  return run(local, line);
}

test("a server and an enhancer start by the chart's command lines, and answer its probes and its autoscaler", started, async () => {
  const folder = scratch();
  after(() => rmSync(folder, { recursive: true }));
  const manifests = of("keda", "enhancer: { config: { network: xs, enhancer-threads: 1 } }");
  const [server, enhancer] = ["w-windlass", "w-windlass-enhancer"].map((name) => one(manifests, "StatefulSet", name));
  const serving = await start(commandLine(manifests, server, folder), /(http:\/\/localhost:\d+)/);
  const enhancing = await start(commandLine(manifests, enhancer, folder), /(http:\/\/[\d.:]+)\/metrics/);
  for (const [at, { spec }] of [[serving, server], [enhancing, enhancer]]) {
    const [{ startupProbe, livenessProbe, readinessProbe }] = spec.template.spec.containers;
    for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) {
      const answer = await fetch(at + httpGet.path);
      assert.equal(answer.status, 200, `${at}${httpGet.path}`);
    }
  }
  const [demand, publishers] = one(manifests, "ScaledObject").spec.triggers;
  for (const [at, { metadata }, count] of [[enhancing, demand, 2], [serving, publishers, 1]]) {
    const page = await (await fetch(`${at}/metrics`)).text();
    const asked = metadata.query.match(/windlass_\w+/g);
    assert.equal(asked.length, count);
    for (const metric of asked) assert.match(page, new RegExp(`^${metric} [\\d.e-]+$`, "m"));
    assert.ok(metadata.query.includes(`{namespace="${NAMESPACE}"}`));
  }
});

/** What a Secret says that Helm makes. */
function secretOf(manifests, name) {
  const { data } = one(manifests, "Secret", name);
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));
}

test("servers that relay are whom other servers dial, and ask for certificate and token", started, async () => {
  const folder = scratch();
  after(() => rmSync(folder, { recursive: true }));
  const manifests = of("relay");
  const port = await freePort();
  // Nobody is at this NATS: rooms are not shared, but the port is there.
  const moved = { "--nats-ca": "", "--http": "127.0.0.1:0", "--udp": "127.0.0.1:0", "--node-listen": `127.0.0.1:${port}`, "--advertise": "127.0.0.1" };
  const args = commandLine(manifests, one(manifests, "StatefulSet", "w-windlass"), folder).map((arg) => {
    const [option] = arg.split("=");
    return moved[option] ? `${option}=${moved[option]}` : arg;
  });
  const elsewhere = args.filter((arg) => !arg.startsWith("--nats"));
  await run([...elsewhere, "--nats=nats://127.0.0.1:1"], /(http:\/\/localhost:\d+)/);
  const { token, "enhancer-token": lesser } = secretOf(manifests, "w-windlass-cluster-tokens");
  const { "ca.crt": ca, "tls.crt": cert, "tls.key": key } = secretOf(manifests, "w-windlass-cluster-sfu");
  const enhancer = secretOf(manifests, "w-windlass-cluster-enhancer");
  // As another server dials it: what it answers to a method that there is not.
  const answer = (own, headers, name = "windlass-sfu") =>
    new Promise((resolve) => {
      const session = connect(`https://127.0.0.1:${port}`, { ca, servername: name, ...own });
      const end = (what) => (session.destroy(), resolve(what));
      const failed = (error) => end((error.cause ?? error).code);
      session.on("error", failed);
      const request = session.request({ ":method": "POST", ":path": "/windlass.relay.v1.Relay/None", "content-type": "application/grpc", te: "trailers", ...headers });
      request.on("response", (answered) => end(`gRPC ${answered["grpc-status"]}`)).on("error", failed).on("close", () => end("closed"));
      request.end();
    });
  const shown = { authorization: `Bearer ${token}` };
  assert.equal(await answer({ cert, key }, shown), "gRPC 12", "unimplemented: it may ask");
  assert.equal(await answer({ cert, key }, {}), "gRPC 16", "unauthenticated");
  assert.match(await answer({}, shown), /CERTIFICATE_REQUIRED/);
  assert.equal(await answer({ cert, key }, shown, "windlass-enhancer"), "ERR_TLS_CERT_ALTNAME_INVALID");
  // Whoever has taken an enhancer over is no server.
  assert.equal(await answer({ cert, key }, { authorization: `Bearer ${lesser}` }), "gRPC 16");
  assert.doesNotMatch(await answer({ cert: enhancer["tls.crt"], key: enhancer["tls.key"] }, shown), /gRPC/);
});

test("servers and enhancers have certificates of their own, for months, and enhancers a token that is made from the servers'", options, () => {
  const manifests = of("values");
  const tokens = secretOf(manifests, "w-windlass-cluster-tokens");
  const made = createHash("sha256").update(`enhancer ${tokens.token}`).digest("hex");
  assert.ok(tokens.token.length >= 40);
  assert.equal(tokens["enhancer-token"], `enhancer-${made}`);
  const authority = new X509Certificate(secretOf(manifests, "w-windlass-cluster-authority")["tls.crt"]);
  for (const [part, other] of [["sfu", "enhancer"], ["enhancer", "sfu"]]) {
    const secret = secretOf(manifests, `w-windlass-cluster-${part}`);
    const own = new X509Certificate(secret["tls.crt"]);
    assert.ok(own.checkHost(`windlass-${part}`) && !own.checkHost(`windlass-${other}`));
    assert.ok(own.checkIssued(authority) && own.verify(authority.publicKey) && authority.ca);
    const days = (Date.parse(own.validTo) - Date.now()) / 86_400_000;
    assert.ok(days > 100 && days < 130, `${days}`);
  }
});

test("no pod has what is another's: neither an authority's key, nor the servers' token where enhancers are", options, () => {
  for (const name of CASES) {
    for (const { metadata, spec } of pods(of(name))) {
      const { volumes } = spec.template.spec;
      const secrets = volumes.flatMap((v) => [v.secret && { ...v.secret, name: v.secret.secretName }, ...(v.projected?.sources ?? []).map((s) => s.secret)]).filter(Boolean);
      assert.ok(secrets.every((secret) => !secret.name.endsWith("-authority")), name);
      const token = secrets.flatMap((secret) => secret.items ?? []).find((item) => item.path === "token");
      const enhances = metadata.name.endsWith("-enhancer");
      if (token) assert.equal(token.key, enhances ? "enhancer-token" : "token", name);
      const own = secrets.map((secret) => secret.name).filter((secret) => /-(sfu|enhancer)$/.test(secret) && secret.includes("cluster"));
      if (token && name !== "tls") assert.deepEqual(own, [`w-windlass-cluster-${enhances ? "enhancer" : "sfu"}`], name);
    }
  }
});

test("NATS is reached by TLS and with a password, by servers and enhancers alone", options, () => {
  const manifests = of("values");
  const { url, password, "ca.crt": ca, "tls.crt": cert } = secretOf(manifests, "w-windlass-nats");
  assert.equal(url, `tls://windlass:${password}@w-nats:4222`);
  assert.ok(password.length >= 40 && !("ca.key" in secretOf(manifests, "w-windlass-nats")));
  const own = new X509Certificate(cert);
  assert.ok(own.checkHost("w-nats") && own.checkIssued(new X509Certificate(ca)));
  for (const { spec } of pods(manifests)) {
    const [{ env, args }] = spec.template.spec.containers;
    assert.deepEqual(env.find(({ name }) => name === "WINDLASS_NATS").valueFrom, { secretKeyRef: { name: "w-windlass-nats", key: "url" } });
    assert.ok(args.includes("--nats-ca=/etc/windlass/nats-ca/ca.crt") && !args.some((arg) => arg.includes(password)));
  }
});

test("media and signalling are everybody's, all other ports those of the release's own pods", options, () => {
  const labels = (component) => ({ "app.kubernetes.io/name": "windlass", "app.kubernetes.io/instance": "w", "app.kubernetes.io/component": component });
  const policies = (manifests) =>
    Object.fromEntries(
      manifests
        .filter((m) => m.kind === "NetworkPolicy")
        .map(({ metadata, spec }) => [
          metadata.name,
          spec.ingress.flatMap(({ ports, from }) => ports.map(({ port }) => [port, from?.map((peer) => peer.podSelector?.matchLabels ?? peer.ipBlock?.cidr ?? "cluster")])),
        ]),
    );
  const { "w-windlass": server, "w-windlass-enhancer": enhancer, "w-nats": nats } = policies(of("values"));
  assert.deepEqual(server, [[7880, undefined], [7881, undefined], [7881, undefined]]);
  assert.deepEqual(enhancer, [[7890, [labels("sfu")]], [7891, ["cluster"]]]);
  assert.deepEqual(nats[0], [4222, [labels("sfu"), labels("enhancer")]]);
  assert.deepEqual(policies(of("relay"))["w-windlass"].at(-1), [7883, [labels("sfu")]]);
  assert.deepEqual(policies(of("tls"))["w-windlass"].at(-1), [7883, [labels("sfu"), "10.0.0.0/16"]]);
  assert.deepEqual(Object.keys(policies(of("external-nats"))).sort(), ["w-windlass", "w-windlass-enhancer"]);
  assert.deepEqual(policies(of("values", "networkPolicy: { enabled: false }")), {});
});
