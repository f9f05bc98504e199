package practice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/harness/crd"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	setupLimit = 2 * time.Minute  // of what a set-up waits for, on a busy machine
	patience   = 12 * time.Second // of all checks together, for what controllers still have to do after the last command
	poll       = 200 * time.Millisecond
	// operatorStage is the lab whose operator tasks install: later labs add what needs more than a fresh cluster.
	operatorStage = 10
)

// Program is the code of a task. Setup prepares a fresh cluster, and returns when the fault shows that the question is about. Checks are by
// their ids in task.yaml.
type Program struct {
	Setup  func(ctx context.Context, s *Setup) error
	Checks map[string]Check
}

// Check returns nil if what it asks for holds, a [*finding.Finding] if not, and any other error when it could not judge.
type Check func(ctx context.Context, r *Reader) error

// Setup is a fresh cluster as a set-up sees it: the client is its admin's.
type Setup struct {
	client.Client
	Values   Values
	Cluster  *clusters.Cluster
	Clusters *clusters.Manager // its provider brings images into nodes
	Root     string            // the checkout
	Folder   string            // the learner's, where their shell starts
	dir      string            // of the task's files
	waiter
}

// Reader is a cluster as checks see it: the client reads, and each write is a dry run. On the set-up alone, Eventually looks once.
type Reader struct {
	client.Client
	Values Values
	Folder string // as of Setup
	rest   rest.Interface
	waiter
}

type waiter struct{ until time.Time }

// Eventually polls until condition returns nil. In a check it gives up, with the last error, when all checks together have waited for 12 s.
func (w waiter) Eventually(ctx context.Context, condition func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) { // discovery has no watch
		last = condition(ctx)
		return last == nil || time.Now().After(w.until), nil
	})
	return errors.Join(err, last)
}

// Apply applies the objects of a YAML file in the task's folder. The file shows values as {{name}}, and, as {{memcached}}, the image of
// memcached that is on the nodes.
func (s *Setup) Apply(ctx context.Context, file string) error {
	data, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		return err
	}
	text, err := s.Values.Render(strings.ReplaceAll(string(data), "{{memcached}}", memcached.Image))
	documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for err == nil {
		o := &unstructured.Unstructured{}
		if err = documents.Decode(o); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("lab"), client.ForceOwnership)
		}
	}
	return fmt.Errorf("apply %s: %w", file, err)
}

// Available waits until all Pods of the Deployments in a namespace are available.
func (s *Setup) Available(ctx context.Context, namespace string) error {
	return s.Eventually(ctx, func(ctx context.Context) error {
		all := &appsv1.DeploymentList{}
		err := s.List(ctx, all, client.InNamespace(namespace))
		for _, d := range all.Items {
			if d.Status.AvailableReplicas < *d.Spec.Replicas {
				err = fmt.Errorf("%d Pods of the Deployment %s are available", d.Status.AvailableReplicas, d.Name)
			}
		}
		return err
	})
}

// LoadOperator builds the operator that lab 10 finishes, and brings it onto the nodes as an image of that name. It returns the folder of
// its source.
func (s *Setup) LoadOperator(ctx context.Context, ref string) (source string, err error) {
	c, err := course.Load(s.Root)
	if err != nil {
		return "", err
	}
	tree, err := c.Render(operatorStage)
	source = filepath.Join(s.Root, ".lab", "cka-operator", "source")
	if err := errors.Join(err, os.RemoveAll(source), tree.WriteTo(source)); err != nil {
		return "", err
	}
	failed, err := verdict.LoadImage(ctx, s.Clusters, s.Cluster.Name, source, ref)
	if failed != nil {
		err = errors.New(failed.Output)
	}
	if err != nil {
		return "", fmt.Errorf("build the operator: %w", err)
	}
	return source, nil
}

// InstallCRD installs the definition of Memcacheds, that of the finished operator.
func (s *Setup) InstallCRD(ctx context.Context) error {
	data, err := os.ReadFile(filepath.Join(s.Root, "operator", "config", "crd", "bases", "cache.example.com_memcacheds.yaml"))
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := errors.Join(err, yaml.UnmarshalStrict(data, definition)); err != nil {
		return fmt.Errorf("read the definition of Memcacheds: %w", err)
	}
	return crd.Install(ctx, s.Client, definition)
}

// Raw gets a path of the API server, such as that of a Pod's log, or of the proxy to a Service. An error is that of the proxy.
func (r *Reader) Raw(ctx context.Context, path string) (string, error) {
	answer := r.rest.Get().AbsPath(path).Do(ctx)
	body, _ := answer.Raw()
	return string(body), answer.Error()
}

// Allowed says whether RBAC allows a ServiceAccount, NAMESPACE/NAME, something: resource is RESOURCE.GROUP/SUBRESOURCE, of which the
// first is enough. An empty namespace is all of them.
func (r *Reader) Allowed(ctx context.Context, account, verb, resource, namespace string) (bool, error) {
	home, name, _ := strings.Cut(account, "/")
	resource, sub, _ := strings.Cut(resource, "/")
	resource, group, _ := strings.Cut(resource, ".")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + home + ":" + name, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + home, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub},
	}}
	err := r.Create(ctx, review)
	return review.Status.Allowed, err
}

// connect makes clients of the cluster's admin.
func connect(c *clusters.Cluster) (client.Client, rest.Interface, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, nil, err
	}
	raw, rawErr := discovery.NewDiscoveryClientForConfig(config)
	admin, err := client.New(config, client.Options{Scheme: scheme})
	return admin, raw.RESTClient(), errors.Join(err, rawErr)
}
