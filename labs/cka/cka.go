// Package cka lists the tasks of the CKA practice.
package cka

import (
	operator "github.com/example/operator-lab/labs/cka/01-operator"
	rbac "github.com/example/operator-lab/labs/cka/02-rbac"
	crd "github.com/example/operator-lab/labs/cka/03-crd"
	kustomize "github.com/example/operator-lab/labs/cka/04-kustomize"
	forbidden "github.com/example/operator-lab/labs/cka/05-forbidden"
	terminating "github.com/example/operator-lab/labs/cka/06-terminating"
	endpoints "github.com/example/operator-lab/labs/cka/07-endpoints"
	rollout "github.com/example/operator-lab/labs/cka/08-rollout"
	autoscaler "github.com/example/operator-lab/labs/cka/09-autoscaler"
	volume "github.com/example/operator-lab/labs/cka/10-volume"
	"github.com/example/operator-lab/labs/internal/practice"
)

// Programs are the code of the tasks, by the names of their folders.
func Programs() map[string]practice.Program {
	return map[string]practice.Program{
		"01-operator":    operator.Program(),
		"02-rbac":        rbac.Program(),
		"03-crd":         crd.Program(),
		"04-kustomize":   kustomize.Program(),
		"05-forbidden":   forbidden.Program(),
		"06-terminating": terminating.Program(),
		"07-endpoints":   endpoints.Program(),
		"08-rollout":     rollout.Program(),
		"09-autoscaler":  autoscaler.Program(),
		"10-volume":      volume.Program(),
	}
}
