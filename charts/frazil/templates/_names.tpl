{{- define "frazil.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "frazil.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What a Service, a budget or a policy selects pods of the server by. */}}
{{- define "frazil.selector" -}}
app.kubernetes.io/name: {{ include "frazil.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: catalog
{{- end -}}

{{- define "frazil.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: frazil
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "frazil.labels" -}}
{{ include "frazil.selector" . }}
{{ include "frazil.commonLabels" . }}
{{- end -}}

{{/* The Job is no pod of the server: nothing that selects those must find it. */}}
{{- define "frazil.migrationLabels" -}}
app.kubernetes.io/name: {{ include "frazil.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: migration
{{ include "frazil.commonLabels" . }}
{{- end -}}

{{- define "frazil.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "frazil.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "frazil.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Where the routes begin: the base path, or the root. */}}
{{- define "frazil.path" -}}
{{- default "/" .Values.server.basePath -}}
{{- end -}}

{{- define "frazil.workload" -}}
{{- ternary "statefulset" "deployment" .Values.singleNode.enabled -}}
{{- end -}}
