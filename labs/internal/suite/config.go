// Package suite is what the lab command and the suite of checks tell each other: the configuration of a run, and the files,
// labels and causes that a verdict is made of.
package suite

import (
	"encoding/json"
	"fmt"
	"os"
)

// ConfigEnv names the environment variable that holds the path of the run's configuration.
const ConfigEnv = "LAB_RUN_CONFIG"

// Config is one run of the suite, written by the lab command and read by every Ginkgo process.
type Config struct {
	// Checks are the ids of the checks to run.
	Checks []string `json:"checks"`
	// Workspace is the learner's module. It is only ever read.
	Workspace string `json:"workspace"`
	// Kubeconfig opens the cluster as its administrator.
	Kubeconfig string `json:"kubeconfig"`
	// Definition says that a lab of the run works with the CustomResourceDefinition in config/crd/bases.
	Definition bool `json:"definition,omitempty"`
	// Registry are the labs during whose checks a manager is told of a registry outside the cluster.
	Registry []int `json:"registry,omitempty"`
	// Webhooks are the labs during whose checks a manager serves its webhooks.
	Webhooks []int `json:"webhooks,omitempty"`
	// Manager is the path of the learner's compiled program, "" when no lab of the run needs it.
	Manager string `json:"manager,omitempty"`
	// Generated is a file with what this course's controller-gen makes of the workspace, as JSON of generate.Results.
	Generated string `json:"generated"`
	// Copies is a file with what the probe found out about copies, as JSON of probe.Result, if a check of the run asks for it.
	Copies string `json:"copies"`
	// Supervisor is the binary that runs a learner's program and ends its whole process tree.
	Supervisor string `json:"supervisor"`
	// MemcachedImage is the operand's image, present in every node.
	MemcachedImage string `json:"memcachedImage"`
	// ManagerImage is the learner's program as an image, present in every node, "" when no check of the run needs it.
	ManagerImage string `json:"managerImage,omitempty"`
	// UnderRole runs the manager with exactly the generated role instead of cluster-admin.
	UnderRole bool `json:"underRole,omitempty"`
	// Opening is, for each lab, the check that decides whether its others go on: when it fails, they are given up.
	Opening map[int]string `json:"opening,omitempty"`
	// Unblocked has every check judged, whatever others say.
	Unblocked bool `json:"unblocked,omitempty"`
	// Disposable says that the cluster is deleted after the run, so that nobody has to tidy up in it.
	Disposable bool `json:"disposable,omitempty"`
	// RealPods says whether containers really run on this provider.
	RealPods bool `json:"realPods"`
	// Seed and the id of a check decide names, sizes and ports; namespaces are new in each run. It is printed with every verdict.
	Seed int64 `json:"seed"`
	// Scratch is a folder for sockets, logs and copies that unprivileged programs can reach.
	Scratch string `json:"scratch"`
	// Artifacts is where evidence is kept after a failure.
	Artifacts string `json:"artifacts"`
}

// NeedsManager says whether a lab of the run judges a running manager.
func (c Config) NeedsManager() bool { return c.Manager != "" }

// ReadConfig reads the configuration that [ConfigEnv] points at.
func ReadConfig() (c Config, err error) {
	path := os.Getenv(ConfigEnv)
	if path == "" {
		return c, fmt.Errorf("%s is not set: the suite is run by `lab check`", ConfigEnv)
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return c, fmt.Errorf("read run configuration %s: %w", path, err)
	}
	return c, nil
}
