{{/* One rule of egress. Takes {ports, to, protocols}. */}}
{{- define "muster.egressRule" -}}
- ports:
    {{- range $port := .ports }}
    {{- range $.protocols }}
    - { protocol: {{ . }}, port: {{ $port }} }
    {{- end }}
    {{- end }}
  {{- with .to }}
  to: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* Where a role may connect to. Takes {root, role}. A list of ports that is empty allows nothing. */}}
{{- define "muster.egress" -}}
{{- $egress := .root.Values.networkPolicy.egress -}}
{{- $parts := ternary (list "dns" "database") (list "dns" "database" "redis" "web") (eq .role "migrate") -}}
{{- range $part := $parts }}
{{- $rule := index $egress $part }}
{{- if and $rule.ports (or (ne $part "redis") (index $.root.Values.secrets.shared.keys "REDIS_URL")) }}
{{ include "muster.egressRule" (dict "ports" $rule.ports "to" $rule.to "protocols" (ternary (list "UDP" "TCP") (list "TCP") (eq $part "dns"))) }}
{{- end }}
{{- end }}
{{- with $egress.further }}
{{ toYaml . }}
{{- end }}
{{- end -}}
