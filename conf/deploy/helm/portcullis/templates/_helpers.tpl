{{- define "portcullis.labels" -}}
app.kubernetes.io/name: portcullis
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "portcullis.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ default .Release.Name .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "portcullis.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "portcullis.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "portcullis.keyringVolume" -}}
- name: keyring
  secret:
    secretName: {{ .Values.keyringSecret }}
    items: [{ key: keyring, path: keyring }]
    defaultMode: 0440
{{- end }}

{{- define "portcullis.secretEnvironment" -}}
- secretRef:
    name: {{ .Values.existingSecret }}
{{- end }}
