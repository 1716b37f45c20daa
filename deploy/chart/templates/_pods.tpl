{{/* Parts of pods that all three kinds have. */}}

{{- define "muster.podDefaults" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {{ toYaml .Values.podSecurityContext | nindent 2 }}
{{- end -}}

{{/* Takes {root, role}: how the container of a role runs, without its probes. */}}
{{- define "muster.container" -}}
{{- $root := .root -}}
{{- $secrets := $root.Values.secrets -}}
image: {{ include "muster.image" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext: {{ toYaml $root.Values.containerSecurityContext | nindent 2 }}
envFrom:
  - configMapRef: { name: {{ include "muster.fullname" $root }}-{{ ternary "migrate" "shared" (eq .role "migrate") }} }
  {{- if eq .role "api" }}
  - configMapRef: { name: {{ include "muster.fullname" $root }}-api }
  {{- end }}
env:
  {{- include "muster.secretFiles" (dict "keys" $secrets.shared.keys "folder" "muster" "without" (ternary $secrets.migrate.keys dict (eq .role "migrate"))) | nindent 2 }}
  {{- if eq .role "api" }}
  {{- include "muster.secretFiles" (dict "keys" $secrets.api.keys "folder" "api" "without" dict) | nindent 2 }}
  {{- end }}
  {{- if eq .role "migrate" }}
  {{- include "muster.secretFiles" (dict "keys" $secrets.migrate.keys "folder" "migrate" "without" dict) | nindent 2 }}
  {{- else if $root.Values.tokenJournal.existingClaim }}
  - name: POD_NAME
    valueFrom: { fieldRef: { fieldPath: metadata.name } }
  - name: TOKEN_JOURNAL
    value: /var/lib/muster-journal/$(POD_NAME).journal
  {{- end }}
  {{- with $root.Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - { name: secrets-muster, mountPath: /run/secrets/muster, readOnly: true }
  {{- if ne .role "worker" }}
  - { name: secrets-{{ .role }}, mountPath: /run/secrets/{{ .role }}, readOnly: true }
  {{- end }}
  {{- if $root.Values.catalogue }}
  - { name: files, mountPath: /etc/muster, readOnly: true }
  {{- end }}
  {{- if and $root.Values.tokenJournal.existingClaim (ne .role "migrate") }}
  - { name: journal, mountPath: /var/lib/muster-journal }
  {{- end }}
  - { name: home, mountPath: /var/lib/muster }
  - { name: tmp, mountPath: /tmp }
  {{- with $root.Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Takes {root, role}. */}}
{{- define "muster.volumes" -}}
{{- $root := .root -}}
{{- $secrets := $root.Values.secrets -}}
{{ include "muster.secretVolume" (dict "name" "secrets-muster" "secret" $secrets.shared "without" (ternary $secrets.migrate.keys dict (eq .role "migrate"))) }}
{{- if eq .role "api" }}
{{ include "muster.secretVolume" (dict "name" "secrets-api" "secret" $secrets.api "without" dict) }}
{{- else if eq .role "migrate" }}
{{ include "muster.secretVolume" (dict "name" "secrets-migrate" "secret" $secrets.migrate "without" dict) }}
{{- end }}
{{- if $root.Values.catalogue }}
- name: files
  configMap:
    name: {{ include "muster.fullname" $root }}-{{ ternary "migrate" "shared" (eq .role "migrate") }}
    items: [{ key: catalogue.yaml, path: catalogue.yaml }]
{{- end }}
{{- if and $root.Values.tokenJournal.existingClaim (ne .role "migrate") }}
- name: journal
  persistentVolumeClaim: { claimName: {{ $root.Values.tokenJournal.existingClaim }} }
{{- end }}
- name: home
  emptyDir: { sizeLimit: 64Mi }
- name: tmp
  emptyDir: { sizeLimit: 1Gi }
{{- with $root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Where pods of a role go. Takes {root, role}. */}}
{{- define "muster.placement" -}}
{{- $selector := include "muster.selector" (dict "root" .root "component" .role) | fromYaml -}}
{{- with .root.Values.topologySpread }}
topologySpreadConstraints:
  {{- range . }}
  - {{- merge (dict "labelSelector" (dict "matchLabels" $selector)) . | toYaml | nindent 4 }}
  {{- end }}
{{- end }}
{{- $placed := index .root.Values .role }}
{{- with $placed.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $placed.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $placed.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with $placed.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* A change of settings or of the catalogue restarts the pods. Takes {root, role}. */}}
{{- define "muster.podMetadata" -}}
{{- $values := index .root.Values .role -}}
labels:
  {{- include "muster.labels" (dict "root" .root "component" .role) | nindent 2 }}
  {{- with $values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  checksum/configuration: {{ include (print .root.Template.BasePath "/configmaps.yaml") .root | sha256sum }}
  {{- with $values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/*
The event loop answers both. A process that is blocked for a minute is restarted; one whose database is away is not, because a restart would not bring it back.
A start may wait for a migration of another process.
*/}}
{{- define "muster.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: probes }
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 150
livenessProbe:
  httpGet: { path: /healthz, port: probes }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
# A part that has not answered within five seconds is reported as missing.
readinessProbe:
  httpGet: { path: /readyz, port: probes }
  periodSeconds: 5
  timeoutSeconds: 6
  failureThreshold: 2
{{- end -}}
