{{/* The name of everything: short enough for names of pods. */}}
{{- define "eventyard.name" -}}
{{- if contains "eventyard" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-eventyard" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "eventyard.selector" -}}
app.kubernetes.io/name: eventyard
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "eventyard.labels" -}}
{{ include "eventyard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "-" | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "-") | trunc 63 | quote }}
{{- end }}

{{- define "eventyard.nodes" -}}
{{- if eq .Values.mode "peers" }}{{ .Values.peers.count }}{{ else if eq .Values.mode "nats" }}{{ .Values.nats.nodes }}{{ else }}1{{ end }}
{{- end }}

{{/* The peers as eventyard cluster init takes them. */}}
{{- define "eventyard.peers" -}}
{{- $name := include "eventyard.name" . }}
{{- $peers := list }}
{{- range $i := until (int .Values.peers.count) }}
{{- $peers = append $peers (printf "%s-%d=%s-%d.%s-nodes.%s.svc:6222" $name $i $name $i $name $.Release.Namespace) }}
{{- end }}
{{- join "," $peers }}
{{- end }}

{{/* What is missing, with what to do about it. */}}
{{- define "eventyard.check" -}}
{{- if and (eq .Values.mode "peers") (not .Values.peers.bundlesSecret) }}
{{- fail (printf "mode peers needs peers.bundlesSecret. Make the bundles, and a Secret of them:\n  eventyard cluster init --peers %s --out bundles\n  kubectl -n %s create secret generic yard-bundles --from-file bundles\nand set peers.bundlesSecret=yard-bundles" (include "eventyard.peers" .) .Release.Namespace) }}
{{- end }}
{{- if and (eq .Values.mode "nats") (not .Values.nats.secret) }}
{{- fail (printf "mode nats needs nats.secret. Make it:\n  kubectl -n %s create secret generic yard-nats --from-literal engine=nats://USER:PASSWORD@HOST,HOST,HOST --from-literal secrets-key=$(openssl rand -base64 32)\nand set nats.secret=yard-nats. Keep a copy of the secrets key: without it the yard's secrets are lost" .Release.Namespace) }}
{{- end }}
{{- end }}
