#!/bin/sh
# Builds what the tests of this folder need, from the modules that go.sum pins: Helm 3 and 4, and a program that checks manifests as Kubernetes does. A minute
# or more of two processors the first time; Go keeps what it has built.
set -eu
cd "$(dirname "$0")"
if ! command -v go >/dev/null; then
  echo 'The tests of the chart need Go 1.26 or newer, which builds Helm.' >&2
  exit 1
fi
go build -o bin/helm-4 helm.sh/helm/v4/cmd/helm
go build -o bin/helm-3 helm.sh/helm/v3/cmd/helm
go build -o bin/validate ./validate
