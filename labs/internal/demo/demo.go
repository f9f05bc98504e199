// Package demo shows the finished operator at work on a fresh cluster: some things that a person does,
// and what everybody else does about each of them. Nothing of it is acted. What is told was seen in
// watches and by a registry outside the cluster, and who did it is what the API server wrote down.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/harness/registry"
	"github.com/example/operator-lab/labs/internal/trace"
)

const (
	// crdLimit is how long the API server may take to serve a new kind. It takes less than a second.
	crdLimit = 20 * time.Second
	// poll is how often to ask what is served: there is no watch for that.
	poll = 50 * time.Millisecond
	// stepLimit bounds one step. Pods start within two seconds; the garbage collector, which the last
	// step waits for, may take thirty to notice a new kind. The rest is for a busy machine.
	stepLimit = 90 * time.Second
	// quiet is how long nothing may happen before a reader wonders.
	quiet = 2 * time.Second
	// settle is how long to gather what happens at almost the same time: watches of different kinds
	// deliver in any order, and three Pods make better reading than one Pod three times.
	settle = 150 * time.Millisecond
)

// Show is one performance.
type Show struct {
	// Root is the checkout; the definition of Memcached comes from its operator folder.
	Root string
	// Programs are what [Build] made.
	Programs Programs
	// Cluster is fresh and has the image Operand in its nodes.
	Cluster *clusters.Cluster
	Operand string
	// Log is the file that the operator's output goes to. It is overwritten.
	Log string
	// Out is told the timeline.
	Out io.Writer
}

// Run performs the steps. When it returns, the operator's process has ended; the cluster is the
// caller's to delete. An error says what did not happen, and where the operator's log is.
func (s Show) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := connect(s.Cluster)
	if err != nil {
		return err
	}
	// The definition comes first of all: the garbage collector looks for new kinds every 30 s, and the last step waits for it.
	file := filepath.Join(s.Root, "operator", "config", "crd", "bases", "cache.example.com_memcacheds.yaml")
	if err := install(ctx, c, file); err != nil {
		return fmt.Errorf("install %s: %w", file, err)
	}
	memcacheds := &unstructured.UnstructuredList{}
	memcacheds.SetGroupVersionKind(kind)
	w, err := watchWorld(ctx, c, memcacheds)
	if err != nil {
		return err
	}
	outside, err := registry.Start("127.0.0.1:0", w.hear)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, outside.Close()) }()
	operator, err := startOperator(s, outside.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, operator.stop()) }()
	if err := rehearse(ctx, c); err != nil {
		return err
	}
	p := printer{s.Out}
	p.opening(s.Cluster)
	for i, step := range steps(outside) {
		p.announce(i+1, step)
		if err := perform(ctx, c, w, operator, step, p); err != nil {
			return fmt.Errorf("step %d of the demo: %w", i+1, err)
		}
		p.explain(step)
	}
	p.closing()
	return nil
}

// connect returns a client of a cluster.
func connect(cluster *clusters.Cluster) (client.WithWatch, error) {
	config, err := cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("know the kinds of Kubernetes: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return c, nil
}

// install brings the definition in file to the cluster, and waits until discovery knows the kind.
func install(ctx context.Context, c client.Client, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, definition); err != nil {
		return err
	}
	if err := crd.Install(ctx, c, definition); err != nil {
		return err
	}
	served := func(context.Context) (bool, error) {
		_, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		return err == nil, err
	}
	return wait.PollUntilContextTimeout(ctx, poll, crdLimit, true, served)
}

// rehearse creates a Memcached without storing it. The API server keeps the first creation of a new kind
// waiting for up to 2 s; it is better spent before the clock of the first step runs.
func rehearse(ctx context.Context, c client.Client) error {
	if err := c.Create(ctx, memcached(1), client.DryRunAll); err != nil {
		return fmt.Errorf("create a Memcached, as a dry run: %w", err)
	}
	return nil
}

// perform does one step and tells what follows from it until the world is as the step promises.
func perform(ctx context.Context, c client.Client, w *world, operator *runningOperator, s step, p printer) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	asked := time.Now()
	words, err := s.do(ctx, c)
	if err != nil {
		return err
	}
	if words != "" {
		p.actions(asked, []trace.Action{{At: time.Now(), Actor: "kube-apiserver", Verb: "refused", Kind: "it:"}})
		p.quote(words)
	}
	if s.missing == nil {
		return nil
	}
	return w.follow(ctx, s, operator, p)
}
