{{- define "windlass.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "windlass.enhancerName" -}}{{ include "windlass.fullname" . }}-enhancer{{- end -}}
{{/* A Secret of the cluster, its own or given: list . "tokens" */}}
{{- define "windlass.clusterSecret" -}}
{{- $root := index . 0 -}}
{{- get $root.Values.cluster.existing (index . 1) | default (printf "%s-cluster-%s" (include "windlass.fullname" $root) (index . 1)) -}}
{{- end -}}

{{- define "windlass.tokenSecret" -}}{{ include "windlass.fullname" . }}-token-key{{- end -}}

{{/* Whether anything shows and asks for the cluster's token and certificate; empty if not. */}}
{{- define "windlass.hasCluster" -}}
{{- if or .Values.enhancer.enabled .Values.sfu.relay.enabled (include "windlass.natsUrls" .) }}true{{ end -}}
{{- end -}}

{{/* Below which the names of servers and of enhancers are: list . "windlass-pods" */}}
{{- define "windlass.podDomain" -}}
{{- $root := index . 0 -}}
{{ index . 1 }}.{{ $root.Release.Namespace }}.svc.{{ $root.Values.cluster.domain }}
{{- end -}}
{{- define "windlass.podsName" -}}{{ include "windlass.fullname" . }}-pods{{- end -}}

{{/* Of a component: list . "sfu" */}}
{{- define "windlass.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "windlass.labels" -}}
{{- $root := index . 0 -}}
{{ include "windlass.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "windlass.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "windlass.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The name of NATS's Service: the subchart's own, as it makes it. */}}
{{- define "windlass.natsHost" -}}
{{- $nats := default "nats" .Values.nats.nameOverride -}}
{{- $name := printf "%s-%s" .Release.Name $nats -}}
{{- if contains $nats .Release.Name }}{{ $name = .Release.Name }}{{ end -}}
{{ .Values.nats.fullnameOverride | default $name | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/* The Secret of NATS. values.yaml tells the subchart the same name. */}}
{{- define "windlass.natsSecret" -}}{{ .Release.Name }}-windlass-nats{{- end -}}

{{/* Where NATS is; empty without one. */}}
{{- define "windlass.natsUrls" -}}
{{- if .Values.nats.enabled -}}
tls://{{ include "windlass.natsHost" . }}:4222
{{- else -}}
{{- join "," .Values.externalNats.urls -}}
{{- end -}}
{{- end -}}

{{/* Peers of a network policy: list . "sfu" "enhancer" */}}
{{- define "windlass.from" -}}
{{- $root := index . 0 -}}
{{- range $component := rest . }}
- podSelector:
    matchLabels: {{- include "windlass.selector" (list $root $component) | nindent 6 }}
{{- end }}
{{- range $root.Values.networkPolicy.nodes }}
- ipBlock: { cidr: {{ . | quote }} }
{{- end }}
{{- end -}}

{{/* Arguments that SFUs and enhancers share. */}}
{{- define "windlass.clusterArgs" -}}
{{- if .Values.nats.enabled }}
# The address has a password in it: it comes by WINDLASS_NATS.
- --nats-ca=/etc/windlass/nats-ca/ca.crt
{{- else if .Values.externalNats.urls }}
- --nats={{ join "," .Values.externalNats.urls }}
{{- if .Values.externalNats.credentialsSecret }}
- --nats-credentials=/etc/windlass/nats-credentials/nats.creds
{{- end }}
{{- if .Values.externalNats.caSecret }}
- --nats-ca=/etc/windlass/nats-ca/ca.crt
{{- end }}
{{- end }}
{{- if include "windlass.hasCluster" . }}
- --cluster-tls=/etc/windlass/cluster/ca.crt,/etc/windlass/cluster/tls.crt,/etc/windlass/cluster/tls.key
- --cluster-token=@/etc/windlass/cluster/token
{{- end }}
{{- end -}}

{{- define "windlass.clusterEnv" -}}
{{- if .Values.nats.enabled }}
- name: WINDLASS_NATS
  valueFrom: { secretKeyRef: { name: {{ include "windlass.natsSecret" . }}, key: url } }
{{- end }}
{{- end -}}

{{- define "windlass.clusterMounts" -}}
{{- if include "windlass.hasCluster" . }}
- { name: cluster, mountPath: /etc/windlass/cluster, readOnly: true }
{{- end }}
{{- if and (not .Values.nats.enabled) .Values.externalNats.credentialsSecret }}
- { name: nats-credentials, mountPath: /etc/windlass/nats-credentials, readOnly: true }
{{- end }}
{{- if or .Values.nats.enabled .Values.externalNats.caSecret }}
- { name: nats-ca, mountPath: /etc/windlass/nats-ca, readOnly: true }
{{- end }}
- { name: tmp, mountPath: /tmp }
{{- end -}}

{{/* Of a component, which gets its own token and certificate: list . "sfu" */}}
{{- define "windlass.clusterVolumes" -}}
{{- $root := index . 0 -}}
{{- with $root }}
{{- if include "windlass.hasCluster" . }}
- name: cluster
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ include "windlass.clusterSecret" (list . "tokens") }}
          items: [{ key: {{ eq (index $ 1) "sfu" | ternary "token" "enhancer-token" }}, path: token }]
      - secret:
          name: {{ include "windlass.clusterSecret" $ }}
{{- end }}
{{- if and (not .Values.nats.enabled) .Values.externalNats.credentialsSecret }}
- name: nats-credentials
  secret:
    secretName: {{ .Values.externalNats.credentialsSecret }}
    defaultMode: 0440
{{- end }}
{{- if or .Values.nats.enabled .Values.externalNats.caSecret }}
- name: nats-ca
  secret:
    secretName: {{ .Values.nats.enabled | ternary (include "windlass.natsSecret" .) .Values.externalNats.caSecret }}
    items: [{ key: ca.crt, path: ca.crt }]
{{- end }}
{{- end }}
# What is cached: kernels of GPUs.
- name: tmp
  emptyDir: { medium: Memory, sizeLimit: 256Mi }
{{- end -}}

{{- define "windlass.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "windlass.containerSecurity" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Liveness and readiness of a port by name: dict "port" "scheme" */}}
{{- define "windlass.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: {{ .port }}, scheme: {{ .scheme }} }
  periodSeconds: 2
  # The first start on a GPU compiles its kernels.
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: {{ .port }}, scheme: {{ .scheme }} }
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: {{ .port }}, scheme: {{ .scheme }} }
  periodSeconds: 3
  timeoutSeconds: 2
  failureThreshold: 2
{{- end -}}

{{/* Where pods may run: dict "of" .Values.sfu */}}
{{- define "windlass.placement" -}}
{{- with .of.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "windlass.grace" -}}
{{- add (dig "drain-timeout" "30s" .config | trimSuffix "s" | int) .graceS -}}
{{- end -}}
