{{- define "muster.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* Names of resources add up to ten characters, and a Job's pods six more, within the 63 of a label. */}}
{{- define "muster.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 46 | trimSuffix "-" -}}
{{- else if contains (include "muster.name" .) .Release.Name -}}
{{- .Release.Name | trunc 46 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "muster.name" .) | trunc 46 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* A Deployment's selector cannot be changed: nothing here may change from one version to the next. Takes {root, component}. */}}
{{- define "muster.selector" -}}
app.kubernetes.io/name: {{ include "muster.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Takes {root, component}. */}}
{{- define "muster.labels" -}}
{{ include "muster.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "muster.image" -}}
{{- $repository := required "image.repository: name the registry and the repository to which you pushed the image, such as registry.example.com/muster" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "muster.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "muster.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The Job runs before a ServiceAccount of the chart is there. */}}
{{- define "muster.migrateServiceAccountName" -}}
{{- ternary "default" (default "default" .Values.serviceAccount.name) .Values.serviceAccount.create -}}
{{- end -}}
