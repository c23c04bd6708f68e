{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}

{{- define "gpusonde.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "gpusonde.fullname" -}}
{{- $name := include "gpusonde.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if eq $name .Release.Name -}}
{{- $name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "gpusonde.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "gpusonde.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* Of all selectors. What never changes, since a DaemonSet's selector must not. */ -}}
{{- define "gpusonde.selector" -}}
app.kubernetes.io/part-of: gpusonde
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gpusonde.commonLabels" -}}
{{ include "gpusonde.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "gpusonde.labels" -}}
app.kubernetes.io/name: {{ include "gpusonde.name" . }}
{{ include "gpusonde.commonLabels" . }}
{{- end -}}

{{- define "gpusonde.podLabels" -}}
app.kubernetes.io/name: {{ default (include "gpusonde.name" .) .Values.discoveryName }}
{{ include "gpusonde.commonLabels" . }}
{{- end -}}

{{- define "gpusonde.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* The following are "true", or nothing. */ -}}

{{- /* On GKE nothing but a privileged container may open the devices without taking them from others. */ -}}
{{- define "gpusonde.privileged" -}}
{{- if eq .Values.provider "gke" }}true{{ end -}}
{{- end -}}

{{- define "gpusonde.root" -}}
{{- if or .Values.pods.enabled .Values.tracing.enabled (include "gpusonde.privileged" .) }}true{{ end -}}
{{- end -}}

{{- define "gpusonde.hostPID" -}}
{{- if or .Values.processes.enabled .Values.tracing.enabled }}true{{ end -}}
{{- end -}}

{{- /* What Pod Security calls privileged, in part or in whole. */ -}}
{{- define "gpusonde.beyondRestricted" -}}
{{- if or (include "gpusonde.root" .) (include "gpusonde.hostPID" .) .Values.dra.enabled .Values.dcgmExporter.enabled .Values.statsd.socket.folder }}true{{ end -}}
{{- end -}}

{{- /* Clients are asked who they are. */ -}}
{{- define "gpusonde.asks" -}}
{{- if or .Values.web.configSecret.name .Values.web.tokensSecret.name }}true{{ end -}}
{{- end -}}

{{- define "gpusonde.queues" -}}
{{- if or .Values.push.url .Values.remoteWrite.url .Values.otlp.endpoint .Values.otlp.logsEndpoint }}true{{ end -}}
{{- end -}}

{{- define "gpusonde.runtimeClass" -}}
{{- if .Values.runtimeClassName -}}
{{- if ne .Values.runtimeClassName "-" }}{{ .Values.runtimeClassName }}{{ end -}}
{{- else if not .Values.provider -}}
nvidia
{{- end -}}
{{- end -}}

{{- define "gpusonde.priorityClass" -}}
{{- if .Values.priorityClassName -}}
{{- .Values.priorityClassName -}}
{{- else if eq .Values.provider "eks" -}}
system-node-critical
{{- end -}}
{{- end -}}

{{- define "gpusonde.capabilities" -}}
{{- if .Values.tracing.enabled -}}
[BPF, PERFMON, SYS_PTRACE, DAC_READ_SEARCH, CHECKPOINT_RESTORE]
{{- else if and .Values.pods.enabled .Values.processes.enabled -}}
[SYS_PTRACE, DAC_READ_SEARCH]
{{- else if .Values.pods.enabled -}}
[DAC_READ_SEARCH]
{{- end -}}
{{- end -}}

{{- define "gpusonde.stateSize" -}}
{{- if .Values.stateSize -}}
{{- .Values.stateSize -}}
{{- else if include "gpusonde.queues" . -}}
320Mi
{{- else -}}
16Mi
{{- end -}}
{{- end -}}

{{- /* Kubelet's probes, which verify no certificate. */ -}}
{{- define "gpusonde.alive" -}}
{{- if .Values.web.clientCertificates -}}
tcpSocket: {port: metrics}
{{- else -}}
httpGet: {path: /healthz, port: metrics{{ if .Values.web.tls }}, scheme: HTTPS{{ end }}}
{{- end -}}
{{- end -}}

{{- define "gpusonde.ready" -}}
{{- if .Values.web.clientCertificates -}}
tcpSocket: {port: metrics}
{{- else -}}
httpGet: {path: /readyz, port: metrics{{ if .Values.web.tls }}, scheme: HTTPS{{ end }}}
{{- end -}}
{{- end -}}

{{- /* What is sent where, with secrets as files: arguments of the agent. */ -}}
{{- define "gpusonde.outputs" -}}
{{- with .Values.remoteWrite }}
{{- if .url }}
- {{ printf "--remote-write-url=%s" .url | quote }}
{{- if .username }}
- {{ printf "--remote-write-username=%s" .username | quote }}
{{- end }}
{{- with .secret }}
{{- if .name }}
{{- if .password }}
- --remote-write-password-file=/var/run/secrets/gpusonde-remote-write/{{ .password }}
{{- end }}
{{- if .token }}
- --remote-write-token-file=/var/run/secrets/gpusonde-remote-write/{{ .token }}
{{- end }}
{{- if .ca }}
- --remote-write-ca-file=/var/run/secrets/gpusonde-remote-write/{{ .ca }}
{{- end }}
{{- if .certificate }}
- --remote-write-certificate-file=/var/run/secrets/gpusonde-remote-write/{{ .certificate }}
{{- end }}
{{- if .key }}
- --remote-write-key-file=/var/run/secrets/gpusonde-remote-write/{{ .key }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.otlp }}
{{- if .endpoint }}
- {{ printf "--otlp-endpoint=%s" .endpoint | quote }}
{{- end }}
{{- if .logsEndpoint }}
- {{ printf "--otlp-logs-endpoint=%s" .logsEndpoint | quote }}
{{- end }}
{{- if or .endpoint .logsEndpoint }}
{{- with .secret }}
{{- if .name }}
{{- if .token }}
- --otlp-token-file=/var/run/secrets/gpusonde-otlp/{{ .token }}
{{- end }}
{{- if .ca }}
- --otlp-ca-file=/var/run/secrets/gpusonde-otlp/{{ .ca }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.statsd.address }}
- {{ printf "--statsd-address=%s" .Values.statsd.address | quote }}
{{- else if .Values.statsd.socket.folder }}
- --statsd-address=/host/statsd/{{ .Values.statsd.socket.name }}
{{- end }}
{{- if .Values.textfile.folder }}
- --textfile-path=/host/textfile
{{- end }}
{{- end -}}

{{- /* One of these labels tells a node with GPUs. */ -}}
{{- define "gpusonde.nodeTerms" -}}
{{- if eq .Values.provider "gke" -}}
- matchExpressions: [{key: cloud.google.com/gke-accelerator, operator: Exists}]
{{- else -}}
- matchExpressions: [{key: nvidia.com/gpu.present, operator: In, values: ["true"]}]
- matchExpressions: [{key: feature.node.kubernetes.io/pci-10de.present, operator: In, values: ["true"]}]
- matchExpressions: [{key: feature.node.kubernetes.io/pci-0302_10de.present, operator: In, values: ["true"]}]
{{- if eq .Values.provider "eks" }}
- matchExpressions: [{key: k8s.amazonaws.com/accelerator, operator: Exists}]
- matchExpressions: [{key: eks.amazonaws.com/instance-gpu-manufacturer, operator: In, values: [nvidia]}]
- matchExpressions: [{key: karpenter.k8s.aws/instance-gpu-manufacturer, operator: In, values: [nvidia]}]
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Where a DCGM exporter's page is: variables that its own clients have, too. */ -}}
{{- define "gpusonde.dcgmEnv" -}}
{{- if .Values.dcgmExporter.enabled }}
- {name: DCGM_HOST, value: localhost}
- {name: DCGM_PORT, value: "9400"}
{{- else if .Values.dcgm.host }}
- {name: DCGM_HOST, value: {{ .Values.dcgm.host | quote }}}
- {name: DCGM_PORT, value: {{ .Values.dcgm.port | quote }}}
- {name: DCGM_METRICS_ENDPOINT, value: {{ .Values.dcgm.path | quote }}}
{{- else if .Values.dcgm.discover }}
- {name: DCGM_LABELS, value: {{ .Values.dcgm.labels | quote }}}
- {name: DCGM_PORT, value: {{ .Values.dcgm.port | quote }}}
- {name: DCGM_METRICS_ENDPOINT, value: {{ .Values.dcgm.path | quote }}}
{{- end -}}
{{- end -}}
