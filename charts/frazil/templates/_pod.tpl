{{/* The pod of the server, the same in a Deployment and in a StatefulSet. */}}
{{- define "frazil.pod" -}}
metadata:
  labels:
    {{- include "frazil.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "frazil.toml" . | sha256sum }}
    {{- if .Values.database.url }}
    checksum/database: {{ .Values.database.url | sha256sum }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "frazil.serviceAccountName" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  # Notice, drain, then at most twice ten seconds for work that no client waits for.
  terminationGracePeriodSeconds: {{ add (div (add .Values.server.drain.noticeMs .Values.server.drain.timeoutMs 999) 1000) 25 }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  containers:
    - name: frazil
      image: {{ include "frazil.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
      ports:
        - name: http
          containerPort: 8181
        - name: metrics
          containerPort: {{ .Values.metrics.port }}
      {{- with include "frazil.env" . }}
      env:
        {{- . | nindent 8 }}
      {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      readinessProbe:
        {{- include "frazil.probe" (list "/health/ready" .Values.probes.readiness) | nindent 8 }}
      livenessProbe:
        {{- include "frazil.probe" (list "/health/live" .Values.probes.liveness) | nindent 8 }}
      startupProbe:
        {{- include "frazil.probe" (list "/health/live" .Values.probes.startup) | nindent 8 }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        {{- include "frazil.volumeMounts" . | nindent 8 }}
  volumes:
    {{- include "frazil.volumes" . | nindent 4 }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if and .Values.topologySpreadConstraints (not .Values.singleNode.enabled) }}
  topologySpreadConstraints:
    {{- range .Values.topologySpreadConstraints }}
    - labelSelector:
        matchLabels:
          {{- include "frazil.selector" $ | nindent 10 }}
      {{- toYaml . | nindent 6 }}
    {{- end }}
  {{- end }}
{{- end -}}

{{/* On the port of metrics: it speaks plain HTTP whatever the other does, and no client can take its connections. */}}
{{- define "frazil.probe" -}}
httpGet:
  path: {{ index . 0 }}
  port: metrics
{{ toYaml (index . 1) }}
{{- end -}}

{{- define "frazil.databaseEnv" -}}
{{- with .Values.database }}
{{- if or .url .existingSecret.name }}
- name: FRAZIL_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret.name | default (printf "%s-database" (include "frazil.fullname" $)) }}
      key: {{ ternary .existingSecret.urlKey "url" (ne .existingSecret.name "") }}
{{- end }}
{{- if and .existingSecret.name .existingSecret.replicaUrlKey }}
- name: FRAZIL_DATABASE_REPLICA_URL
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret.name }}
      key: {{ .existingSecret.replicaUrlKey }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "frazil.env" -}}
{{- include "frazil.databaseEnv" . | trim }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "frazil.volumeMounts" -}}
- name: config
  mountPath: /etc/frazil/frazil.toml
  subPath: frazil.toml
  readOnly: true
- name: data
  mountPath: /data
{{- if .Values.secretsKey.existingSecret }}
- name: secrets-key
  mountPath: /etc/frazil/secrets
  readOnly: true
{{- end }}
{{- if .Values.server.tls.existingSecret }}
- name: tls
  mountPath: /etc/frazil/tls
  readOnly: true
{{- end }}
{{- if .Values.auth.kubernetes.enabled }}
- name: cluster
  mountPath: /var/run/secrets/frazil
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "frazil.volumes" -}}
- name: config
  configMap:
    name: {{ include "frazil.fullname" . }}
{{- if not .Values.singleNode.enabled }}
- name: data
  emptyDir: {}
{{- else if not .Values.singleNode.persistence.enabled }}
- name: data
  emptyDir: {}
{{- else if .Values.singleNode.persistence.existingClaim }}
- name: data
  persistentVolumeClaim:
    claimName: {{ .Values.singleNode.persistence.existingClaim }}
{{- end }}
{{- if .Values.secretsKey.existingSecret }}
- name: secrets-key
  secret:
    secretName: {{ .Values.secretsKey.existingSecret }}
    items:
      - key: {{ .Values.secretsKey.key }}
        path: key
{{- end }}
{{- with .Values.server.tls.existingSecret }}
- name: tls
  secret:
    secretName: {{ . }}
{{- end }}
{{- if .Values.auth.kubernetes.enabled }}
# What the cluster wants of whoever asks for its keys.
- name: cluster
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
