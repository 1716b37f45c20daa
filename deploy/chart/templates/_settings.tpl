{{/* A setting as Muster reads it: YAML makes true of `yes`, and a floating point number of every number. */}}
{{- define "muster.setting" -}}
{{- if kindIs "bool" . -}}
{{- ternary "yes" "no" . -}}
{{- else if kindIs "float64" . -}}
{{- printf "%.0f" . -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{/* Where OIDC_ISSUER is set, OIDC_CLIENT_SECRET must be, too, and only the API has it. */}}
{{- define "muster.apiSettings" -}}
{{- range $name, $value := .Values.settings }}
{{- if and (regexMatch "^(OIDC|OPERATOR|CONNECT)_" $name) (ne (toString $value) "<nil>") }}
{{ $name }}: {{ include "muster.setting" $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "muster.sharedSettings" -}}
{{- if and .Values.catalogue .Values.settings.MUSTER_CATALOGUE -}}
{{- fail "catalogue and settings.MUSTER_CATALOGUE are both set; set only one of them" -}}
{{- end -}}
HOST: 0.0.0.0
PORT: "8080"
PROBE_PORT: "8081"
MUSTER_HOME: /var/lib/muster
{{- if .Values.catalogue }}
MUSTER_CATALOGUE: /etc/muster/catalogue.yaml
{{- end }}
{{- range $name, $value := .Values.settings }}
{{- if not (or (regexMatch "^(OIDC|OPERATOR|CONNECT)_" $name) (eq (toString $value) "<nil>")) }}
{{ $name }}: {{ include "muster.setting" $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Variables that name the files of one Secret. Takes {keys, folder, without}: `without` are names that another Secret has. */}}
{{- define "muster.secretFiles" -}}
{{- range $name, $key := .keys }}
{{- if and $key (not (hasKey $.without $name)) }}
- name: {{ $name }}_FILE
  value: /run/secrets/{{ $.folder }}/{{ $key }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The volume of one Secret, with the keys that are used alone. Files are readable for all: the container's user is not known here, and nobody else is in it. */}}
{{- define "muster.secretVolume" -}}
- name: {{ .name }}
  secret:
    secretName: {{ .secret.existingSecret }}
    defaultMode: 292 # 0444, which YAML 1.2 would read as another number
    items:
      {{- $seen := dict }}
      {{- range $name, $key := .secret.keys }}
      {{- if and $key (not (hasKey $seen $key)) (not (hasKey $.without $name)) }}
      {{- $_ := set $seen $key true }}
      - { key: {{ $key | quote }}, path: {{ $key | quote }} }
      {{- end }}
      {{- end }}
{{- end -}}
