{{- define "inquest.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "inquest.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "inquest.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "inquest.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "inquest.serviceAccountName" -}}
{{- .Values.serviceAccount.name }}
{{- end }}

{{/* Of the operator whom the admission policies name. */}}
{{- define "inquest.operatorNamespace" -}}
{{- default .Release.Namespace .Values.admissionPolicies.operatorNamespace }}
{{- end }}

{{- define "inquest.selector" -}}
app.kubernetes.io/name: {{ include "inquest.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "inquest.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "inquest.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: inquest
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* repository@digest where there is a digest, else repository:tag. */}}
{{- define "inquest.reference" -}}
{{- $repository := include "inquest.mirrored" (dict "name" .image.repository "root" .root) }}
{{- if .image.digest }}
{{- printf "%s@%s" $repository .image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (default .version .image.tag) }}
{{- end }}
{{- end }}

{{/* The name of an image in the registry of global.imageRegistry, in the place of the one that it names, if it does. */}}
{{- define "inquest.mirrored" -}}
{{- $registry := dig "imageRegistry" "" (default dict .root.Values.global) }}
{{- if $registry }}
{{- $registry }}/{{ regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" .name "" }}
{{- else }}
{{- .name }}
{{- end }}
{{- end }}

{{- define "inquest.image" -}}
{{- if not .Values.image.repository }}
{{- include "inquest.checkedKeys" . }}
{{- fail "image.repository: name the operator's image; none is published yet, docs/how-to/install-with-helm.md says how to build it" }}
{{- end }}
{{- include "inquest.reference" (dict "image" .Values.image "version" .Chart.AppVersion "root" .) }}
{{- end }}

{{- define "inquest.catalogueImage" -}}
{{- $name := required "catalogue.image: name an image with kubectl as its entry point, pinned by digest" .Values.catalogue.image }}
{{- include "inquest.mirrored" (dict "name" $name "root" .) }}
{{- end }}

{{/*
Helm looks up the kind of every object before it creates the first one, but that of a hook when its turn comes. Where this
install brings the kinds itself, the objects of the catalogue are hooks that follow them, marked so that the next upgrade
takes them into the release. Decided at an install alone: an upgrade always has them as objects of the release. Those of a
lower weight come first.
*/}}
{{- define "inquest.catalogueNotes" -}}
{{- $weight := .weight }}
{{- with .root }}
{{- if and .Release.IsInstall .Values.crds.enabled (lookup "v1" "Namespace" "" "default") }}
{{- if not (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "remediationworkflows.inquest.dev") -}}
annotations:
  helm.sh/hook: post-install,post-rollback
  helm.sh/hook-delete-policy: hook-failed
  helm.sh/hook-weight: {{ $weight | quote }}
  meta.helm.sh/release-name: {{ .Release.Name }}
  meta.helm.sh/release-namespace: {{ .Release.Namespace }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Not empty where the database is in this pod. */}}
{{- define "inquest.embedded" -}}
{{- if and (ne (dig "datastorage" "mode" "embedded" .Values.settings) "external") (not .Values.datastorage.deployment.enabled) }}yes{{ end }}
{{- end }}

{{- define "inquest.intakeEnabled" -}}
{{- if dig "intake" "enabled" false .Values.settings }}yes{{ end }}
{{- end }}

{{/* The Secret with the certificate of the intake; empty: it has none. */}}
{{- define "inquest.intakeSecret" -}}
{{- if .Values.intake.certManager.enabled }}{{ include "inquest.fullname" . }}-intake-tls{{ else }}{{ .Values.intake.tlsSecret }}{{ end }}
{{- end }}

{{/* Constraints without a selector spread the pods of this Deployment. */}}
{{- define "inquest.spread" -}}
{{- $selector := dict "matchLabels" (fromYaml .selector) }}
{{- range .constraints }}
- {{ set (deepCopy .) "labelSelector" (default $selector .labelSelector) | toYaml | nindent 2 | trim }}
{{- end }}
{{- end }}

{{/* Not empty where cases are read through the API server; an aggregated API needs rights of the whole cluster. */}}
{{- define "inquest.evidenceEnabled" -}}
{{- if and .Values.operator.enabled .Values.evidence.enabled (not .Values.rbac.namespaced) }}yes{{ end }}
{{- end }}

{{- define "inquest.evidenceSecret" -}}
{{- default (printf "%s-evidence" (include "inquest.fullname" .)) .Values.evidence.tlsSecret }}
{{- end }}

{{/* Authority, chain and key in base64: those of the values, those that an earlier install made, or new ones. */}}
{{- define "inquest.evidenceCertificate" -}}
{{- $name := include "inquest.evidenceSecret" . }}
{{- $held := (lookup "v1" "Secret" .Release.Namespace $name).data }}
{{- if .Values.evidence.tlsSecret }}
{{- dict "ca" (b64enc .Values.evidence.caBundle) | toJson }}
{{- else if and $held (index $held "ca.crt") }}
{{- dict "ca" (index $held "ca.crt") "chain" (index $held "tls.crt") "key" (index $held "tls.key") | toJson }}
{{- else }}
{{- $host := printf "%s.%s.svc" $name .Release.Namespace }}
{{- $ca := genCA (printf "%s authority" $name) 3650 }}
{{- $made := genSignedCert $host nil (list $host) 3650 $ca }}
{{- dict "ca" (b64enc $ca.Cert) "chain" (b64enc $made.Cert) "key" (b64enc $made.Key) | toJson }}
{{- end }}
{{- end }}

{{/* Not empty where decisions are signed by the API server. */}}
{{- define "inquest.signs" -}}
{{- $served := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}
{{- $chosen := .Values.admissionPolicies.signature }}
{{- if and .Values.admissionPolicies.enabled (or (eq $chosen "always") (and (eq $chosen "auto") $served)) }}yes{{ end }}
{{- end }}

{{- define "inquest.opaURL" -}}
{{- if .Values.opa.sidecar }}http://127.0.0.1:8181{{ else }}{{ .Values.opa.url }}{{ end }}
{{- end }}

{{- define "inquest.claimName" -}}
{{- default (printf "%s-data" (include "inquest.fullname" .)) .Values.persistence.existingClaim }}
{{- end }}

{{/* `strict`, `open` or empty: which of the ways that the values leave is taken. */}}
{{- define "inquest.networkPolicy" -}}
{{- $chosen := .Values.networkPolicy.enabled }}
{{- if kindIs "bool" $chosen }}{{ if $chosen }}strict{{ end }}
{{- else if .Capabilities.APIVersions.Has "networking.k8s.io/v1" }}open{{ end }}
{{- end }}

{{/* Not empty where it cannot be known which ports the operator needs: an address comes out of a Secret. */}}
{{- define "inquest.egressUnknown" -}}
{{- range .Values.extraEnv }}
{{- if and (hasPrefix "INQUEST_" .name) (not (regexMatch "(KEY|TOKEN|PASSWORD|SECRET)$" .name)) (or (dig "valueFrom" "secretKeyRef" "" .) (dig "valueFrom" "configMapKeyRef" "" .)) }}{{ .name }} {{ end }}
{{- end }}
{{- if .Values.envFrom }}envFrom {{ end }}
{{- end }}

{{/* Ports of the API server as a JSON list: those of the values, else those that the cluster shows; empty where none is known. */}}
{{- define "inquest.apiServerPorts" -}}
{{- $ports := .Values.networkPolicy.apiServerPorts }}
{{- if and (not $ports) (not .Values.rbac.namespaced) }}
{{- range (lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "kubernetes").ports }}
{{- $ports = append $ports .port }}
{{- end }}
{{- end }}
{{- $ports | toJson }}
{{- end }}

{{/* Not empty where nobody knows at which port the API server answers: a guess would shut the operator out. */}}
{{- define "inquest.apiServerUnknown" -}}
{{- if and (eq (include "inquest.networkPolicy" .) "open") (not (include "inquest.apiServerPorts" . | fromJsonArray)) }}the API server's port {{ end }}
{{- end }}

{{/* Ports of every address in the values, as numbers in a JSON list; 443 for what is in a file. */}}
{{- define "inquest.knownPorts" -}}
{{- $ports := concat (list 443) (include "inquest.apiServerPorts" . | fromJsonArray) }}
{{- range regexFindAll "https?://[^/\\s\"',]+" (toJson (list .Values.settings .Values.extraEnv (include "inquest.opaURL" .) .Values.datastorage.deployment.url)) -1 }}
{{- if not (hasPrefix "http://127.0.0.1" .) }}
{{- $ports = append $ports (default (ternary "80" "443" (hasPrefix "http://" .)) (regexFind ":[0-9]+$" . | trimPrefix ":")) }}
{{- end }}
{{- end }}
{{- $numbers := list }}
{{- range $ports }}{{ $numbers = append $numbers (int .) }}{{ end }}
{{- uniq $numbers | sortAlpha | toJson }}
{{- end }}

{{/* What is wrong with a range of addresses: its size counts, however it is written. Empty: nothing. */}}
{{- define "inquest.tooWide" -}}
{{- $bits := regexFind "/(0|[1-9][0-9]{0,2})$" . | trimPrefix "/" }}
{{- $mapped := regexMatch "(?i)^(0*64:0*ff9b:|(0*:)*:?(0*:)*ffff:)" . }}
{{- $least := ternary 104 (ternary 32 8 (contains ":" .)) $mapped }}
{{- if not $bits }}{{ . }} has no prefix length
{{- else if lt (int $bits) $least }}{{ . }} is too wide; a range of its kind holds {{ $least }} bits or more, such as /{{ ternary 128 32 (contains ":" .) }} for one address
{{- end }}
{{- end }}

{{/* Refuses rules that let out to everywhere: `key` names them, `rules` are egress rules of a NetworkPolicy. */}}
{{- define "inquest.checkedEgress" -}}
{{- $key := .key }}
{{- $strict := .strict }}
{{- range .rules }}
{{- if and $strict (not .to) }}
{{- fail (printf "%s: a rule without `to` lets out to the whole world; name addresses or selectors" $key) }}
{{- end }}
{{- range .to }}
{{- with dig "ipBlock" "cidr" "" . }}
{{- with include "inquest.tooWide" . }}
{{- fail (printf "%s: %s" $key .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The way to names, and to the API server; with `open` by port where no address is given. */}}
{{- define "inquest.commonEgress" -}}
- to:
    - namespaceSelector:
        matchLabels:
          kubernetes.io/metadata.name: kube-system
  ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- if .Values.networkPolicy.apiServerCIDRs }}
- to:
    {{- range .Values.networkPolicy.apiServerCIDRs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  ports:
    {{- range default (list 443 6443) .Values.networkPolicy.apiServerPorts }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}
{{- end }}

{{/* Addresses are not known: nothing but the ports of what the values name. */}}
{{- define "inquest.egressByPort" -}}
- ports:
    # Names, wherever they are served: on the node, or in a namespace of their own at 5353.
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
    - {protocol: UDP, port: 5353}
    - {protocol: TCP, port: 5353}
    {{- range include "inquest.knownPorts" . | fromJsonArray }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end }}

{{/* A token for an hour, the authorities of the API server and the namespace, as a client in a pod looks for them. */}}
{{- define "inquest.account" -}}
projected:
  defaultMode: 0440
  sources:
    - serviceAccountToken: {path: token, expirationSeconds: 3600}
    - configMap:
        name: kube-root-ca.crt
        items: [{key: ca.crt, path: ca.crt}]
    - downwardAPI:
        items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]
{{- end }}

{{- define "inquest.datastorageSelector" -}}
app.kubernetes.io/name: {{ include "inquest.name" . }}-datastorage
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "inquest.datastorageURL" -}}
{{- $scheme := ternary "https" "http" (not (empty .Values.datastorage.deployment.tlsSecret)) }}
{{- default (printf "%s://data-storage-service.%s.svc:8080" $scheme .Release.Namespace) .Values.datastorage.deployment.url }}
{{- end }}

{{/* Settings of a DataStorage that is served by itself. */}}
{{- define "inquest.datastorageSettings" -}}
{{- $server := dict "host" "0.0.0.0" "port" 8080 }}
{{- if .Values.datastorage.deployment.tlsSecret }}
{{- $_ := set $server "tls_certificate" "/run/secrets/inquest/tls/tls.crt" }}
{{- $_ := set $server "tls_key" "/run/secrets/inquest/tls/tls.key" }}
{{- end }}
{{- dict
  "server" (dict "host" "0.0.0.0" "authentication" .Values.metrics.authentication "health_port" 8081 "metrics_port" 9090)
  "datastorage" (dict "server" $server)
  "log_level" (default "info" .Values.settings.log_level)
| toPrettyJson }}
{{- end }}

{{/* The product's settings as the user gave them, with what only the chart can know on top; JSON keeps whole numbers whole. */}}
{{- define "inquest.settings" -}}
{{- $own := dict
  "kubernetes" (dict "namespace" .Release.Namespace "service_account" (include "inquest.serviceAccountName" .))
  "server" (dict "host" "0.0.0.0" "authentication" .Values.metrics.authentication "health_port" 8081 "metrics_port" 9090)
  "execution" (dict "namespace" .Values.execution.namespace)
  "policy" (dict "url" (include "inquest.opaURL" .))
}}
{{- if .Values.opa.sidecar }}
{{- $_ := set $own.policy "file" "/run/inquest/policy/approval.rego" }}
{{- end }}
{{- if .Values.rbac.namespaced }}
{{- $_ := set $own.kubernetes "namespaces" .Values.rbac.namespaced }}
{{- end }}
{{- if include "inquest.embedded" . }}
{{- $_ := set $own "datastorage" (dict "database" "sqlite:////var/lib/inquest/inquest.db") }}
{{- end }}
{{- if .Values.datastorage.deployment.enabled }}
{{- $served := dict "mode" "external" "url" (include "inquest.datastorageURL" .) "token_file" "/var/run/secrets/kubernetes.io/serviceaccount/token" }}
{{- if .Values.datastorage.deployment.tlsSecret }}
{{- $_ := set $served "ca_bundle" "/run/secrets/inquest/datastorage/ca.crt" }}
{{- end }}
{{- $_ := set $own "datastorage" $served }}
{{- end }}
{{- if .Values.model.existingSecret.name }}
{{- $_ := set $own "model" (dict "api_key_file" (printf "/run/secrets/inquest/model/%s" .Values.model.existingSecret.key)) }}
{{- end }}
{{- if include "inquest.intakeEnabled" . }}
{{- $door := dict "host" "0.0.0.0" "port" 8080 }}
{{- if include "inquest.intakeSecret" . }}
{{- $_ := set $door "tls_certificate" "/run/secrets/inquest/intake/tls.crt" }}
{{- $_ := set $door "tls_key" "/run/secrets/inquest/intake/tls.key" }}
{{- end }}
{{- $_ := set $own "intake" $door }}
{{- end }}
{{- if include "inquest.evidenceEnabled" . }}
{{- $files := "/run/secrets/inquest/evidence" }}
{{- $_ := set $own "evidence" (dict "enabled" true "host" "0.0.0.0" "port" 8443 "tls_certificate" (printf "%s/tls.crt" $files) "tls_key" (printf "%s/tls.key" $files)) }}
{{- end }}
{{- mergeOverwrite (deepCopy .Values.settings) $own | toPrettyJson }}
{{- end }}

{{/* How a scraper shows who it is: a token in a Secret, else the one of its own account where it can name a file. */}}
{{- define "inquest.scraperToken" -}}
{{- if ne .asked "kubernetes" }}
{{- else if .secret.name -}}
authorization:
  credentials: {name: {{ .secret.name }}, key: {{ .secret.key }}}
{{- else if .file -}}
bearerTokenFile: {{ .file }}
{{- end }}
{{- end }}

{{- define "inquest.policy" -}}
{{- default (.Files.Get "files/approval.rego") .Values.policy.content }}
{{- end }}

{{/* Refuses keys that the chart does not know: Helm's own schema could not say which one is meant. */}}
{{- define "inquest.checkedKeys" -}}
{{- $keys := .Files.Get "files/keys.json" | fromJson }}
{{- with include "inquest.unknownKeys" (dict "values" .Values "known" $keys.known "places" $keys.places "path" "") }}
{{- fail (printf "values that this chart does not know:\n%s" .) }}
{{- end }}
{{- end }}

{{/* What would install and then not work is refused here, with the sentence that helps. */}}
{{- define "inquest.checked" -}}
{{- include "inquest.checkedKeys" . }}
{{- if .Values.intake.certManager.enabled }}
{{- if not (include "inquest.intakeEnabled" .) }}
{{- fail "intake.certManager: nobody listens; set settings.intake.enabled: true" }}
{{- end }}
{{- if .Values.intake.tlsSecret }}
{{- fail "intake: give tlsSecret or certManager, not both" }}
{{- end }}
{{- if not .Values.intake.certManager.issuerRef.name }}
{{- fail "intake.certManager.issuerRef.name: name the Issuer or ClusterIssuer that signs" }}
{{- end }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (include "inquest.embedded" .) }}
{{- fail "replicas: the embedded database belongs to one process; more need datastorage.deployment, or settings.datastorage.mode: external" }}
{{- end }}
{{- if .Values.datastorage.deployment.enabled }}
{{- if eq (dig "datastorage" "mode" "" .Values.settings) "external" }}
{{- fail "datastorage.deployment: settings.datastorage.mode external names a service elsewhere; choose one of them" }}
{{- end }}
{{- if not .Values.datastorage.deployment.databaseSecret.name }}
{{- fail "datastorage.deployment.databaseSecret.name: name a Secret with the URL of a PostgreSQL, postgresql://user:password@host/name" }}
{{- end }}
{{- end }}
{{- if eq .Values.execution.namespace .Release.Namespace }}
{{- fail "execution.namespace: workflows must not run in the operator's own namespace" }}
{{- end }}
{{- if and (not .Values.opa.sidecar) (not .Values.opa.url) }}
{{- fail "opa.url: without the sidecar, name the OPA to ask" }}
{{- end }}
{{- if has .Values.execution.namespace .Values.rbac.namespaced }}
{{- fail "rbac.namespaced: workloads that are looked after must not stand where workflows run" }}
{{- end }}
{{- if and .Values.rbac.namespaced .Values.datastorage.deployment.enabled }}
{{- fail "datastorage.deployment: it asks the API server whose token it is, which no Role can grant; with rbac.namespaced keep the embedded one, or name a service elsewhere" }}
{{- end }}
{{- if and .Values.operator.enabled (ne (include "inquest.operatorNamespace" .) .Release.Namespace) }}
{{- fail "admissionPolicies.operatorNamespace: is for a release without an operator; this one has its own here" }}
{{- end }}
{{- if and .Values.rbac.namespaced (include "inquest.intakeEnabled" .) (not .Values.intake.tokenReviews) (not (dig "intake" "token_file" "" .Values.settings)) }}
{{- fail "settings.intake.token_file: whose token it is cannot be asked by a Role; mount a token, or have an administrator bind system:auth-delegator to the account and set intake.tokenReviews: true" }}
{{- end }}
{{- if and .Values.opa.sidecar .Values.opa.url }}
{{- fail "opa.url: the sidecar is on; set opa.sidecar: false to ask another OPA" }}
{{- end }}
{{- if and .Values.policy.content .Values.policy.existingConfigMap }}
{{- fail "policy: give content or existingConfigMap, not both" }}
{{- end }}
{{- if and (not .Values.opa.sidecar) (or .Values.policy.content .Values.policy.existingConfigMap) }}
{{- fail "policy: is for the sidecar; an OPA elsewhere has its own" }}
{{- end }}
{{- if and .Values.evidence.tlsSecret (not .Values.evidence.caBundle) }}
{{- fail "evidence.caBundle: the API server has to know the authority of the certificate in evidence.tlsSecret; give it as PEM" }}
{{- end }}
{{- if and .Values.intake.sources (not (include "inquest.intakeEnabled" .)) }}
{{- fail "intake.sources: nobody listens; set settings.intake.enabled: true" }}
{{- end }}
{{- if and (eq (dig "intake" "authentication" "kubernetes" .Values.settings) "none") (include "inquest.intakeEnabled" .) }}
{{- fail "settings.intake.authentication: none is for one machine's loopback; a pod's door needs a login" }}
{{- end }}
{{- if and .Values.podMonitor.enabled (eq .Values.metrics.authentication "kubernetes") (not .Values.podMonitor.tokenSecret.name) }}
{{- fail "podMonitor.tokenSecret.name: metrics ask for a token, and a PodMonitor takes one from a Secret only; a ServiceMonitor takes that of Prometheus (serviceMonitor.enabled)" }}
{{- end }}
{{- $policy := include "inquest.networkPolicy" . }}
{{- if and (eq $policy "strict") (not .Values.networkPolicy.apiServerCIDRs) }}
{{- fail "networkPolicy.apiServerCIDRs: without them the operator could not reach the API server" }}
{{- end }}
{{- if $policy }}
{{- range .Values.networkPolicy.apiServerCIDRs }}
{{- with include "inquest.tooWide" . }}
{{- fail (printf "networkPolicy.apiServerCIDRs: %s" .) }}
{{- end }}
{{- end }}
{{- $strict := eq $policy "strict" }}
{{- include "inquest.checkedEgress" (dict "key" "networkPolicy.extraEgress" "rules" .Values.networkPolicy.extraEgress "strict" $strict) }}
{{- include "inquest.checkedEgress" (dict "key" "datastorage.deployment.egress" "rules" .Values.datastorage.deployment.egress "strict" $strict) }}
{{- end }}
{{- end }}

{{/* Parts of a word of so many letters, each once, in JSON. */}}
{{- define "inquest.parts" -}}
{{- $word := regexReplaceAll "[^a-z0-9]" (lower .word) "" }}
{{- $parts := list }}
{{- range $at := until (max 0 (sub (add1 (len $word)) .size) | int) }}
{{- $parts = append $parts (substr (int $at) (add $at $.size | int) $word) }}
{{- end }}
{{- uniq $parts | toJson }}
{{- end }}

{{/* How alike two words are by parts of `size` letters, of 100. */}}
{{- define "inquest.alike" -}}
{{- $ours := include "inquest.parts" (dict "word" .one "size" .size) | fromJsonArray }}
{{- $theirs := include "inquest.parts" (dict "word" .other "size" .size) | fromJsonArray }}
{{- $shared := 0 }}
{{- range $ours }}{{ if has . $theirs }}{{ $shared = add1 $shared }}{{ end }}{{ end }}
{{- div (mul 200 $shared) (max 1 (add (len $ours) (len $theirs))) }}
{{- end }}

{{/* The one of `words` with the most pairs of letters of `word`, or as long and with its letters; empty where none is near. */}}
{{- define "inquest.nearest" -}}
{{- $best := "" }}
{{- $most := 49 }}
{{- range $other := .words }}
{{- $score := include "inquest.alike" (dict "one" $.word "other" $other "size" 2) | int }}
{{- if and (lt $score 50) (eq (len $other) (len $.word)) }}
{{- $score = sub (include "inquest.alike" (dict "one" $.word "other" $other "size" 1) | int) 40 }}
{{- end }}
{{- if gt (int $score) (int $most) }}{{ $best = $other }}{{ $most = $score }}{{ end }}
{{- end }}
{{- $best }}
{{- end }}

{{/* A line for each key of `values` that `known` does not have, with the nearest one that it has. */}}
{{- define "inquest.unknownKeys" -}}
{{- $root := . }}
{{- range $key, $value := .values }}
{{- $path := printf "%s%s" $root.path $key }}
{{- if not (hasKey $root.known $key) }}
{{- $near := include "inquest.nearest" (dict "word" $key "words" (keys $root.known | sortAlpha)) }}
{{- $right := ternary (printf "%s%s" $root.path $near) (get $root.places $key) (ne $near "") }}
{{- printf "- %s is unknown%s\n" $path (ternary (printf "; did you mean %s?" $right) "" (ne $right "")) }}
{{- else if and (kindIs "map" $value) (get $root.known $key) }}
{{- include "inquest.unknownKeys" (dict "values" $value "known" (get $root.known $key) "places" $root.places "path" (printf "%s." $path)) }}
{{- end }}
{{- end }}
{{- end }}
