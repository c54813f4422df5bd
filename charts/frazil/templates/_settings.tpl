{{/* The settings that follow from values, as a JSON object of sections. */}}
{{- define "frazil.settings" -}}
{{- $server := dict
  "listen" (include "frazil.listen" (list .Values.server.address 8181))
  "metrics_listen" (include "frazil.listen" (list .Values.server.address .Values.metrics.port))
  "drain_notice_ms" .Values.server.drain.noticeMs
  "drain_timeout_ms" .Values.server.drain.timeoutMs
-}}
{{- if .Values.insecure }}{{ $_ := set $server "insecure" true }}{{ end -}}
{{- with .Values.server.publicUrl }}{{ $_ := set $server "public_url" . }}{{ end -}}
{{- with .Values.server.basePath }}{{ $_ := set $server "base_path" . }}{{ end -}}
{{- with .Values.server.trustedProxies }}{{ $_ := set $server "trusted_proxies" . }}{{ end -}}
{{- if .Values.server.tls.existingSecret -}}
{{- $_ := set $server "tls" (dict "cert_file" "/etc/frazil/tls/tls.crt" "key_file" "/etc/frazil/tls/tls.key") -}}
{{- end -}}
{{- $settings := dict "server" $server "storage" (dict "data_dir" "/data" "default_warehouse" .Values.singleNode.enabled) -}}
{{- if not .Values.singleNode.enabled }}{{ $_ := set $settings "database" (dict "migrate" false) }}{{ end -}}
{{- if .Values.secretsKey.existingSecret }}{{ $_ := set $settings "secrets" (dict "key_file" "/etc/frazil/secrets/key") }}{{ end -}}
{{- if .Values.auth.principals }}{{ $_ := set $settings "auth" (dict "principals" true) }}{{ end -}}
{{- mergeOverwrite (deepCopy .Values.config) $settings | toJson -}}
{{- end -}}

{{/* An IP address and a port, as in [::]:8181. */}}
{{- define "frazil.listen" -}}
{{- $address := index . 0 -}}
{{- printf "%s:%d" (ternary (printf "[%s]" $address) $address (contains ":" $address)) (index . 1 | int) -}}
{{- end -}}

{{/* The providers of OIDC, the cluster's own among them, as a JSON object with one list. */}}
{{- define "frazil.issuers" -}}
{{- $issuers := .Values.auth.issuers -}}
{{- with .Values.auth.kubernetes -}}
{{- if .enabled -}}
{{- $cluster := dict "issuer" .issuer "jwks_url" .jwksUrl "audiences" .audiences "algorithms" .algorithms "ca_file" "/var/run/secrets/frazil/ca.crt" "token_file" "/var/run/secrets/frazil/token" -}}
{{- $issuers = append $issuers $cluster -}}
{{- end -}}
{{- end -}}
{{- dict "issuers" $issuers | toJson -}}
{{- end -}}

{{/* frazil.toml, as it is mounted. */}}
{{- define "frazil.toml" -}}
{{- range $section, $settings := include "frazil.settings" . | fromJson -}}
{{ include "frazil.toml.table" (list $section $settings) }}
{{- end -}}
{{- range (include "frazil.issuers" . | fromJson).issuers }}
{{ include "frazil.toml.keys" (list "[[auth.issuers]]" .) }}
{{- end -}}
{{- end -}}

{{/* A table, then the tables in it. */}}
{{- define "frazil.toml.table" -}}
{{- $name := index . 0 -}}
{{- $keys := dict -}}
{{- $tables := dict -}}
{{- range $key, $value := index . 1 -}}
{{- $_ := set (ternary $tables $keys (kindIs "map" $value)) $key $value -}}
{{- end -}}
{{- if $keys }}{{ include "frazil.toml.keys" (list (printf "[%s]" $name) $keys) }}{{ end -}}
{{- range $key, $table := $tables }}{{ include "frazil.toml.table" (list (printf "%s.%s" $name $key) $table) }}{{ end -}}
{{- end -}}

{{- define "frazil.toml.keys" -}}
{{ index . 0 }}
{{ range $key, $value := index . 1 -}}
{{ $key }} = {{ include "frazil.toml.value" $value }}
{{ end }}
{{- end -}}

{{/* JSON is TOML, but for whole numbers, which are read as floats. */}}
{{- define "frazil.toml.value" -}}
{{- if and (kindIs "float64" .) (eq (floor .) (. | float64)) -}}
{{- int64 . -}}
{{- else -}}
{{- mustToRawJson . -}}
{{- end -}}
{{- end -}}
