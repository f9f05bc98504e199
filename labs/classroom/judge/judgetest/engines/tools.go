//go:build tools

package engines

import (
	_ "helm.sh/helm/v3/cmd/helm"
	_ "sigs.k8s.io/agent-sandbox/cmd/agent-sandbox-controller"
	_ "sigs.k8s.io/kueue/cmd/kueue"
	_ "sigs.k8s.io/kustomize/kustomize/v5"
)
