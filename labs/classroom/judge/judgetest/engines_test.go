package judgetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/hosting"
	"github.com/example/operator-lab/labs/hosted"
)

// engine is one that people install from its release. Here it is built from its module, and its manifests are the module's own.
type engine struct {
	module, program string
	// kustomization is the folder of the module with its manifests, and image what they call the image.
	kustomization, image string
	// deployment is its namespace and name.
	deployment types.NamespacedName
	// replaced is what else is another in a cluster without a registry.
	replaced []string
}

var engines = []engine{
	{
		module: "sigs.k8s.io/agent-sandbox", program: "cmd/agent-sandbox-controller", kustomization: "k8s",
		image:      "ko://sigs.k8s.io/agent-sandbox/cmd/agent-sandbox-controller",
		deployment: types.NamespacedName{Namespace: "agent-sandbox-system", Name: "agent-sandbox-controller"},
		replaced: []string{ // its own image has a folder for temporary files
			"        - mountPath: /etc/sandbox-config\n", "        - {name: tmp, mountPath: /tmp}\n        - mountPath: /etc/sandbox-config\n",
			"      - configMap:\n          name: agent-sandbox-config\n", "      - {name: tmp, emptyDir: {}}\n      - configMap:\n          name: agent-sandbox-config\n",
		},
	},
	{
		module: "sigs.k8s.io/kueue", program: "cmd/kueue", kustomization: "config/default",
		image:      "us-central1-docker.pkg.dev/k8s-staging-images/kueue/kueue:main",
		deployment: types.NamespacedName{Namespace: "kueue-system", Name: "kueue-controller-manager"},
		replaced:   []string{"imagePullPolicy: Always", "imagePullPolicy: Never", "- /manager", "- /kueue", "cpu: 500m", "cpu: 50m"},
	},
}

// install builds the engine, and applies it.
func (e engine) install(t *testing.T, h host, c client.Client) {
	t.Helper()
	dir := t.TempDir()
	program, archive := filepath.Join(dir, filepath.Base(e.program)), filepath.Join(dir, "image.tar")
	goCommand(t, "build", "-trimpath", "-ldflags=-s -w", "-o", program, e.module+"/"+e.program)
	ref := "operator-lab.local/" + filepath.Base(e.program) + ":1"
	if err := clusters.WriteProgramImage(archive, ref, program); err != nil {
		t.Fatal(err)
	}
	if err := h.kind.LoadImageArchive(t.Context(), h.name, archive); err != nil {
		t.Fatal(err)
	}
	module := strings.TrimSpace(goCommand(t, "list", "-m", "-f", "{{.Dir}}", e.module))
	manifests := goCommand(t, "run", "sigs.k8s.io/kustomize/kustomize/v5", "build", filepath.Join(module, e.kustomization))
	apply(t, c, strings.NewReplacer(append(e.replaced, e.image, ref)...).Replace(manifests))
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		var d appsv1.Deployment
		err := c.Get(ctx, e.deployment, &d)
		return d.Status.AvailableReplicas > 0, err
	})
	if err != nil {
		t.Fatalf("%s is not available: %v", e.deployment, err)
	}
}

// goCommand runs a Go command in the module that names the engines.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = "engines", append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, &stderr)
	}
	return string(out)
}

// apply applies manifests in their order: kustomize puts definitions first.
func apply(t *testing.T, c client.Client, manifests string) {
	t.Helper()
	for _, object := range decode(t, manifests) {
		err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("judgetest"), client.ForceOwnership)
		if err != nil {
			t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

func decode(t *testing.T, manifests string) (all []*unstructured.Unstructured) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		case len(object.Object) > 0:
			all = append(all, object)
		}
	}
}

// Whoever uses Argo or Flux gets the same as with `classroom hosted install`.
func TestChartAndKustomizationAreWhatIsInstalled(t *testing.T) {
	const chart = "../../../hosting/chart" // from the folder engines
	other := hosting.Options{Namespace: "ana", Image: "registry.example.com/judge:7", Verdicts: 9, RuntimeClass: "gvisor"}
	helm := func(o hosting.Options) string {
		return goCommand(t, "run", "helm.sh/helm/v3/cmd/helm", "template", "operator-lab", chart, "--namespace", o.Namespace,
			"--set", fmt.Sprintf("image=%s,verdicts=%d,runtimeClass=%s", o.Image, o.Verdicts, o.RuntimeClass))
	}
	same := cmpopts.SortSlices(func(a, b *unstructured.Unstructured) bool {
		return a.GetKind()+" "+a.GetName() < b.GetKind()+" "+b.GetName()
	})
	for name, got := range map[string][2]string{
		"kustomize":      {goCommand(t, "run", "sigs.k8s.io/kustomize/kustomize/v5", "build", chart), hosting.Options{}.Manifest()},
		"helm":           {helm(hosting.Options{Namespace: "operator-lab", Image: hosted.ImageRef, Verdicts: 2}), hosting.Options{}.Manifest()},
		"helm elsewhere": {helm(other), other.Manifest()},
	} {
		if diff := cmp.Diff(decode(t, got[1]), decode(t, got[0]), same); diff != "" {
			t.Errorf("%s: -installed +rendered:\n%s", name, diff)
		}
	}
}
