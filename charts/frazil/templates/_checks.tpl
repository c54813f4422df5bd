{{/* What must not be installed is refused here, with what to do. */}}
{{- define "frazil.checks" -}}
{{- include "frazil.checkAuthentication" . -}}
{{- include "frazil.checkState" . -}}
{{- include "frazil.checkRoutes" . -}}
{{- include "frazil.checkConfig" . -}}
{{- end -}}

{{- define "frazil.authenticates" -}}
{{- with .Values.auth -}}
{{- if or .principals .issuers .kubernetes.enabled -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- define "frazil.checkAuthentication" -}}
{{- if and .Values.insecure (include "frazil.authenticates" .) -}}
{{- fail "insecure is set beside auth: choose one" -}}
{{- end -}}
{{- if not (or .Values.insecure (include "frazil.authenticates" .)) -}}
{{- fail "nobody would be asked who they are: set auth.principals, auth.issuers or auth.kubernetes.enabled, or insecure where something else guards the catalog" -}}
{{- end -}}
{{- end -}}

{{- define "frazil.checkState" -}}
{{- $postgres := or .Values.database.url .Values.database.existingSecret.name -}}
{{- if .Values.singleNode.enabled -}}
{{- if $postgres -}}
{{- fail "singleNode.enabled keeps the state in SQLite, but database names a PostgreSQL: choose one" -}}
{{- end -}}
{{- if .Values.autoscaling.enabled -}}
{{- fail "singleNode.enabled is one pod: autoscaling.enabled needs PostgreSQL" -}}
{{- end -}}
{{- else -}}
{{- if not $postgres -}}
{{- fail "there is no database: set database.existingSecret.name (or database.url), or singleNode.enabled for one pod on SQLite" -}}
{{- end -}}
{{- if and .Values.database.url .Values.database.existingSecret.name -}}
{{- fail "database.url and database.existingSecret.name are both set: choose one" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "frazil.checkRoutes" -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress.hosts is empty: name at least one host" -}}
{{- end -}}
{{- if and .Values.gateway.enabled (not .Values.gateway.parentRefs) -}}
{{- fail "gateway.parentRefs is empty: name the Gateway" -}}
{{- end -}}
{{- end -}}

{{/* Settings that have a value of their own, or belong into a Secret. */}}
{{- define "frazil.checkConfig" -}}
{{- $elsewhere := dict
  "server.listen" "server.address"
  "server.metrics_listen" "metrics.port"
  "server.insecure" "insecure"
  "server.public_url" "server.publicUrl"
  "server.base_path" "server.basePath"
  "server.trusted_proxies" "server.trustedProxies"
  "server.drain_notice_ms" "server.drain.noticeMs"
  "server.drain_timeout_ms" "server.drain.timeoutMs"
  "server.tls" "server.tls.existingSecret"
  "database.url" "database.existingSecret"
  "database.replica_url" "database.existingSecret.replicaUrlKey"
  "database.migrate" "database.migration.enabled"
  "storage.data_dir" "singleNode.persistence"
  "storage.default_warehouse" "singleNode.enabled"
  "secrets.key" "secretsKey.existingSecret"
  "secrets.key_file" "secretsKey.existingSecret"
  "auth.principals" "auth.principals"
  "auth.issuers" "auth.issuers"
-}}
{{- range $section, $settings := .Values.config -}}
{{- range $key, $_ := $settings -}}
{{- with get $elsewhere (printf "%s.%s" $section $key) -}}
{{- fail (printf "config.%s.%s is not taken: set %s" $section $key .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
