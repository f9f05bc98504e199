package hosting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/operator-lab/labs/classroom/sandbox"
)

func TestAnInstallationDiffersWhereItShould(t *testing.T) {
	o := Options{Namespace: "verdicts-of-ana", Image: "registry.example.com/judge:7", Verdicts: 9, RuntimeClass: "gvisor"}
	objects, err := o.objects()
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, object := range objects {
		clusterWide := object.GetKind() == "ResourceFlavor" || object.GetKind() == "ClusterQueue"
		switch {
		case object.GetKind() == "Namespace" && object.GetName() != o.Namespace:
			t.Errorf("the namespace is %s", object.GetName())
		case object.GetKind() != "Namespace" && !clusterWide && object.GetNamespace() != o.Namespace:
			t.Errorf("%s is in %q", name(object), object.GetNamespace())
		case object.GetKind() == "SandboxTemplate":
			pods++
			spec, _, err := unstructured.NestedMap(object.Object, "spec", "podTemplate", "spec")
			if err != nil || spec["runtimeClassName"] != o.RuntimeClass {
				t.Errorf("sandboxes are run by %v, %v", spec["runtimeClassName"], err)
			}
		case object.GetKind() == "SandboxWarmPool":
			if n, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); n != int64(o.Verdicts) {
				t.Errorf("%d sandboxes wait", n)
			}
		}
	}
	if text := o.Manifest(); pods != 1 || strings.Contains(text, "operator-lab.local") || strings.Contains(text, DefaultNamespace+" # namespace") {
		t.Errorf("%d templates of sandboxes; something is as in the chart:\n%s", pods, text)
	}
}

// sandboxPod is what a sandbox is made from.
func sandboxPod(t *testing.T) corev1.PodSpec {
	t.Helper()
	objects, err := Options{}.objects()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "SandboxTemplate" })
	template := &struct {
		Spec struct {
			PodTemplate corev1.PodTemplateSpec `json:"podTemplate"`
		} `json:"spec"`
	}{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, template); err != nil {
		t.Fatal(err)
	}
	return template.Spec.PodTemplate.Spec
}

// What is in the queues of its connections is memory of the node, and counted for nobody.
func TestASandboxHasShortQueues(t *testing.T) {
	const long = 64 << 10 // bytes
	sizes := map[string]string{}
	for _, s := range sandboxPod(t).SecurityContext.Sysctls {
		sizes[s.Name] = s.Value
	}
	for _, name := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"} {
		var least, first, most int
		if _, err := fmt.Sscan(sizes[name], &least, &first, &most); err != nil || most > long {
			t.Errorf("%s is %q, %v", name, sizes[name], err)
		}
	}
}

// A judge asks whether code in a sandbox reaches its own node, and only the Pod knows which that is.
func TestASandboxKnowsItsNode(t *testing.T) {
	for _, c := range sandboxPod(t).Containers {
		field := ""
		for _, e := range c.Env {
			if e.Name == sandbox.NodeEnv && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
				field = e.ValueFrom.FieldRef.FieldPath
			}
		}
		if field != "status.hostIP" {
			t.Errorf("%s has the field %q in %s", c.Name, field, sandbox.NodeEnv)
		}
	}
}

// The kubelet looks at what is on a disk once a minute, and a container that begins anew obeys whoever comes first.
func TestASandboxWritesIntoMemoryAndNothingInItBeginsAnew(t *testing.T) {
	spec := sandboxPod(t)
	if spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("restartPolicy %q", spec.RestartPolicy)
	}
	medium := map[string]corev1.StorageMedium{}
	for _, v := range spec.Volumes {
		medium[v.Name] = v.EmptyDir.Medium
	}
	for _, c := range spec.Containers {
		for _, m := range c.VolumeMounts {
			if !m.ReadOnly && medium[m.Name] != corev1.StorageMediumMemory {
				t.Errorf("%s writes into %s, on medium %q", c.Name, m.Name, medium[m.Name])
			}
		}
	}
	if len(spec.Containers) == 0 {
		t.Error("there are no containers")
	}
}

// What serves a webhook can be ready for a while before the API server reaches it.
func TestInstallingWaitsForWebhooksAndForNothingElse(t *testing.T) {
	unreachable := apierrors.NewInternalError(errors.New(`failed calling webhook "mresourceflavor.kb.io": dial tcp 10.96.7.7:443: connect: connection refused`))
	broken := apierrors.NewInternalError(errors.New("etcdserver: no leader"))
	for what, tt := range map[string]struct {
		answers []error // the first ones; what follows is none
		want    error
	}{
		"reached at last": {[]error{unreachable, unreachable}, nil},
		"another fault":   {[]error{unreachable, broken}, broken},
	} {
		t.Run(what, func(t *testing.T) {
			asked := 0
			c := interceptor.NewClient(nil, interceptor.Funcs{
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					asked++
					if asked > len(tt.answers) {
						return nil
					}
					return tt.answers[asked-1]
				},
			})
			var told []string
			err := Install(t.Context(), c, Options{}, func(line string) { told = append(told, line) })
			if !errors.Is(err, tt.want) {
				t.Errorf("Install() = %v", err)
			}
			if len(told) == 0 || !strings.HasPrefix(told[0], "waiting up to 5m0s for a webhook") || !strings.Contains(told[0], "connection refused") {
				t.Errorf("told %q", told)
			}
		})
	}
}

func TestWhatCannotBeIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	good := Options{Namespace: "ana", Image: "registry.example.com/judge:7", Verdicts: 1}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for flag, change := range map[string]func(*Options){
		"--namespace":     func(o *Options) { o.Namespace = "ana\n---" },
		"--image":         func(o *Options) { o.Image = "judge 7" },
		"--verdicts":      func(o *Options) { o.Verdicts = 0 },
		"--runtime-class": func(o *Options) { o.RuntimeClass = "gvisor # x" },
	} {
		bad := good
		change(&bad)
		if err := bad.Check(); err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
