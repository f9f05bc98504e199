// Package hosting prepares a Kubernetes cluster that somebody has for verdicts (labs/hosted) on code that nobody trusts, says what
// it lacks, and removes what it has put there. Queues and sandboxes are those of Kueue and agent-sandbox, which have to be there.
package hosting

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	reference "github.com/google/go-containerregistry/pkg/name"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/hosted"
)

//go:embed chart/objects.yaml
var manifest string

// DefaultNamespace is where verdicts are made unless somebody says otherwise.
const DefaultNamespace = "operator-lab"

// Outstanding is how many verdicts one command asks for at a time. Those that the queue does not admit yet wait there.
const Outstanding = 32

// fieldOwner is who the API server remembers as the author of what was applied.
const fieldOwner = client.FieldOwner("operator-lab")

// Options are what installations differ in.
type Options struct {
	// Namespace is where verdicts are made, [DefaultNamespace] if "".
	Namespace string
	// Image is what the cluster calls the image of `make judge-image`, [hosted.ImageRef] if "".
	Image string
	// Verdicts is how many there may be at a time, 2 if 0. As many sandboxes wait.
	Verdicts int
	// RuntimeClass runs the containers of a learner's code, such as gvisor; "" is the cluster's default.
	RuntimeClass string
}

// Check says what of the options cannot be.
func (o Options) Check() error {
	_, image := reference.ParseReference(o.Image)
	switch {
	case len(validation.IsDNS1123Label(o.Namespace)) > 0:
		return fmt.Errorf("--namespace %q is no name of a namespace", o.Namespace)
	case image != nil:
		return fmt.Errorf("--image %q is no name of an image", o.Image)
	case o.Verdicts < 1:
		return fmt.Errorf("--verdicts %d: it takes one at least", o.Verdicts)
	case o.RuntimeClass != "" && len(validation.IsDNS1123Subdomain(o.RuntimeClass)) > 0:
		return fmt.Errorf("--runtime-class %q is no name of a RuntimeClass", o.RuntimeClass)
	}
	return nil
}

// Manifest is what [Install] applies, as YAML.
func (o Options) Manifest() string {
	texts := []string{}
	if o.Namespace != "" {
		texts = append(texts, DefaultNamespace+" # namespace", o.Namespace+" # namespace")
	}
	if o.Image != "" {
		texts = append(texts, hosted.ImageRef, o.Image)
	}
	if o.Verdicts != 0 {
		texts = append(texts, "2 # verdicts", fmt.Sprintf("%d # verdicts", o.Verdicts))
	}
	if o.RuntimeClass != "" {
		texts = append(texts, "# runtimeClassName: gvisor", fmt.Sprintf("runtimeClassName: %q", o.RuntimeClass))
	}
	return strings.NewReplacer(texts...).Replace(manifest)
}

// objects are those of the manifest, in order.
func (o Options) objects() (all []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(o.Manifest())), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("read what is to be installed: %w", err)
		}
		all = append(all, object)
	}
}

const (
	// webhookLimit is how long Kueue may take until its webhooks answer: with a node that has just begun, 106 s were measured.
	webhookLimit = 5 * time.Minute
	// webhookPeriod is the time from one question to the next.
	webhookPeriod = time.Second
)

// Install applies the objects, and tells each. It waits for webhooks that do not answer yet.
func Install(ctx context.Context, c client.Client, o Options, told func(line string)) error {
	objects, err := o.objects()
	if err != nil {
		return err
	}
	for _, object := range objects {
		err := untilWebhooksAnswer(ctx, told, func(ctx context.Context) error {
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership)
		})
		if err != nil {
			return &clusters.Problem{What: "cannot apply " + name(object), Fix: fix(err, "bin/classroom hosted doctor"), Err: err}
		}
		told("applied " + name(object))
	}
	return nil
}

// untilWebhooksAnswer asks the API server again and again while a webhook keeps it from an answer. Whoever serves webhooks may be
// ready before the nodes have heard where it is, and before the API server trusts its certificate.
func untilWebhooksAnswer(ctx context.Context, told func(line string), ask func(context.Context) error) (err error) {
	waiting := false
	_ = wait.PollUntilContextTimeout(ctx, webhookPeriod, webhookLimit, true, func(ctx context.Context) (bool, error) {
		answer := ask(ctx)
		if ctx.Err() != nil && err != nil {
			return false, ctx.Err() // what was answered before says more
		}
		err = answer
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "webhook") {
			return true, nil
		}
		if !waiting {
			waiting = true
			told(fmt.Sprintf("waiting up to %v for a webhook: %v", webhookLimit, err))
		}
		return false, nil
	})
	return err
}

// Uninstall removes the objects, the last one first, and tells each. With the namespace goes whatever is in there.
func Uninstall(ctx context.Context, c client.Client, o Options, told func(line string)) error {
	objects, err := o.objects()
	if err != nil {
		return err
	}
	for _, object := range slices.Backward(objects) {
		err := untilWebhooksAnswer(ctx, told, func(ctx context.Context) error {
			return c.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground))
		})
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		case err != nil:
			return &clusters.Problem{What: "cannot remove " + name(object), Fix: fix(err, "bin/classroom hosted doctor"), Err: err}
		default:
			told("removed " + name(object))
		}
	}
	return nil
}

func name(object *unstructured.Unstructured) string {
	return strings.TrimSpace(object.GetKind() + " " + object.GetName())
}

// Where the engines come from.
const (
	sandboxRelease = "kubectl apply --server-side -f https://github.com/kubernetes-sigs/agent-sandbox/releases/download/v0.5.6/sandbox-with-extensions.yaml"
	kueueRelease   = "kubectl apply --server-side -f https://github.com/kubernetes-sigs/kueue/releases/download/v0.19.2/manifests.yaml"
)

// fix says what mends a cluster that gives this error for an object, and otherwise where it says nothing.
func fix(err error, otherwise string) string {
	missing, ok := errors.AsType[*meta.NoKindMatchError](err)
	switch {
	case ok && strings.HasSuffix(missing.GroupKind.Group, "agents.x-k8s.io"):
		return sandboxRelease
	case ok && strings.HasSuffix(missing.GroupKind.Group, "kueue.x-k8s.io"):
		return kueueRelease
	case apierrors.IsForbidden(err):
		return "use a kubeconfig of somebody who administers the cluster"
	}
	return otherwise
}
