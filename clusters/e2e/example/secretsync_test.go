// Package secretsync tests an operator of controller-runtime's examples, which copies Secrets from one namespace to
// another, on a cluster of its own.
package secretsync

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/e2e"
	"github.com/example/operator-lab/clusters/embedded"
)

const from, to = "namespace-to-sync-all-secrets-from", "namespace-to-sync-all-secrets-to"

var testenv = env.New()

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	// The same folder in each run: a run finds there what an earlier one left that was killed, and removes it.
	cache, err := os.UserCacheDir()
	if err != nil {
		return 0, err
	}
	state := filepath.Join(cache, "secretsync-test")
	manager, err := clusters.New(state)
	// The node image has to be on this machine: docker pull it, or say which one is.
	spec := clusters.Spec{Image: os.Getenv("NODE_IMAGE")}
	if os.Getenv("CLUSTER") == "embedded" { // without containers
		manager, err = embedded.NewManager(state, "", nil)
		spec = clusters.Spec{}
	}
	if err != nil {
		return 0, err
	}
	const name = "secretsync"
	provider := e2e.New(manager)
	testenv.Setup(
		envfuncs.CreateClusterWithOpts(provider, name, e2e.WithSpec(spec)),
		envfuncs.CreateNamespace(from), envfuncs.CreateNamespace(to), startOperator)
	testenv.Finish(stopOperator, envfuncs.DestroyCluster(name))
	return testenv.Run(m), nil
}

var operator *exec.Cmd

// startOperator runs the operator as a process of this machine.
func startOperator(ctx context.Context, cfg *envconf.Config) (context.Context, error) {
	program := filepath.Join(os.TempDir(), envconf.RandomName("operator", 16))
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "sigs.k8s.io/controller-runtime/examples/multiclustersync")
	if err := build.Run(); err != nil {
		return ctx, err
	}
	operator = exec.Command(program)
	operator.Env = append(os.Environ(), "KUBECONFIG="+cfg.KubeconfigFile())
	return ctx, errors.Join(operator.Start(), os.Remove(program))
}

func stopOperator(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	if operator == nil {
		return ctx, nil
	}
	return ctx, operator.Process.Kill()
}

func TestSecretsAreCopied(t *testing.T) {
	original := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password", Namespace: from}, StringData: map[string]string{"key": "value"}}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password", Namespace: to}}
	testenv.Test(t, features.New("a Secret").
		Assess("is copied", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
			if err := cfg.Client().Resources().Create(ctx, original); err != nil {
				t.Fatal(err)
			}
			isThere := conditions.New(cfg.Client().Resources()).ResourceMatch(copied, func(k8s.Object) bool { return true })
			if err := wait.For(isThere, wait.WithContext(ctx), wait.WithTimeout(time.Minute)); err != nil {
				t.Errorf("no copy: %v", err)
			}
			return ctx
		}).Feature())
}
