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
{{- define "windlass.clusterSecret" -}}
{{- .Values.cluster.existingSecret | default (printf "%s-cluster" (include "windlass.fullname" .)) -}}
{{- end -}}

{{- define "windlass.tokenSecret" -}}{{ include "windlass.fullname" . }}-token-key{{- end -}}

{{/* Whether anything shows and asks for the cluster's token and certificate; empty if not. */}}
{{- define "windlass.hasCluster" -}}
{{- if or .Values.enhancer.enabled .Values.sfu.relay.enabled }}true{{ end -}}
{{- end -}}

{{/* Below which the names of servers and of enhancers are: list . "windlass-pods" */}}
{{- define "windlass.podDomain" -}}
{{- $root := index . 0 -}}
{{ index . 1 }}.{{ $root.Release.Namespace }}.svc.{{ $root.Values.cluster.domain }}
{{- end -}}
{{- define "windlass.podsName" -}}{{ include "windlass.fullname" . }}-pods{{- end -}}

{{/* Whether a certificate (PEM; the first, if there are more) is good for a name; empty if not: list PEM name. Helm cannot read certificates, but names are plain text in them. */}}
{{- define "windlass.isGoodFor" -}}
{{- $pem := regexFind "-----BEGIN CERTIFICATE-----[^-]*" (index . 0) | trimPrefix "-----BEGIN CERTIFICATE-----" -}}
{{- if contains (index . 1) (regexReplaceAll "\\s" $pem "" | b64dec) }}true{{ end -}}
{{- end -}}

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

{{/* Where NATS is; empty without one. The subchart's own name, as it makes it. */}}
{{- define "windlass.natsUrls" -}}
{{- if .Values.nats.enabled -}}
{{- $nats := default "nats" .Values.nats.nameOverride -}}
{{- $name := printf "%s-%s" .Release.Name $nats -}}
{{- if contains $nats .Release.Name }}{{ $name = .Release.Name }}{{ end -}}
nats://{{ .Values.nats.fullnameOverride | default $name | trunc 63 | trimSuffix "-" }}:4222
{{- else -}}
{{- join "," .Values.externalNats.urls -}}
{{- end -}}
{{- end -}}

{{/* Arguments that SFUs and enhancers share. */}}
{{- define "windlass.clusterArgs" -}}
{{- with include "windlass.natsUrls" . }}
- --nats={{ . }}
{{- if and (not $.Values.nats.enabled) $.Values.externalNats.credentialsSecret }}
- --nats-credentials=/etc/windlass/nats-credentials/nats.creds
{{- end }}
{{- if and (not $.Values.nats.enabled) $.Values.externalNats.caSecret }}
- --nats-ca=/etc/windlass/nats-ca/ca.crt
{{- end }}
{{- end }}
{{- if include "windlass.hasCluster" . }}
- --cluster-ca=/etc/windlass/cluster/ca.crt
- --cluster-cert=/etc/windlass/cluster/tls.crt
- --cluster-key=/etc/windlass/cluster/tls.key
- --cluster-token=@/etc/windlass/cluster/token
{{- end }}
{{- end -}}

{{- define "windlass.clusterMounts" -}}
{{- if include "windlass.hasCluster" . }}
- { name: cluster, mountPath: /etc/windlass/cluster, readOnly: true }
{{- end }}
{{- if and (not .Values.nats.enabled) .Values.externalNats.credentialsSecret }}
- { name: nats-credentials, mountPath: /etc/windlass/nats-credentials, readOnly: true }
{{- end }}
{{- if and (not .Values.nats.enabled) .Values.externalNats.caSecret }}
- { name: nats-ca, mountPath: /etc/windlass/nats-ca, readOnly: true }
{{- end }}
- { name: tmp, mountPath: /tmp }
{{- end -}}

{{- define "windlass.clusterVolumes" -}}
{{- if include "windlass.hasCluster" . }}
- name: cluster
  secret:
    secretName: {{ include "windlass.clusterSecret" . }}
    defaultMode: 0440
{{- end }}
{{- if and (not .Values.nats.enabled) .Values.externalNats.credentialsSecret }}
- name: nats-credentials
  secret:
    secretName: {{ .Values.externalNats.credentialsSecret }}
    defaultMode: 0440
{{- end }}
{{- if and (not .Values.nats.enabled) .Values.externalNats.caSecret }}
- name: nats-ca
  secret:
    secretName: {{ .Values.externalNats.caSecret }}
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
{{- add (dig "drain-timeout-s" 30 .config) .graceS -}}
{{- end -}}
