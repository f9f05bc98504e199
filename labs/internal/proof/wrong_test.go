package proof

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/testmodule"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// wrong is a wrong answer to one of the first labs. They need no manager, so one cluster judges all.
type wrong struct {
	lab   int
	edits []testmodule.Edit
	// caught are the checks that say no, and the causes they give. All others have to pass.
	caught map[string]string
}

const (
	sizeBounds = "	// +kubebuilder:validation:Minimum=1\n	// +kubebuilder:validation:Maximum=5\n"
	listMap    = "	// +listType=map\n	// +listMapKey=type\n"
	copied     = "		*out = make([]v1.Condition, len(*in))\n		for i := range *in {\n			(*in)[i].DeepCopyInto(&(*out)[i])\n		}\n"
)

// seed is fixed: some checks draw the valid value with which they begin, and may hit upon a wrong bound.
const seed = 2

// types edits the API types.
func types(old, replacement string) testmodule.Edit {
	return testmodule.Replace(testmodule.Types, old, replacement)
}

func manifest(old, replacement string) testmodule.Edit {
	return testmodule.Replace(testmodule.Manifest, old, replacement)
}

// wrongs are wrong answers by what a learner did.
var wrongs = map[string]wrong{
	"forgot the bounds": {1, []testmodule.Edit{types(sizeBounds, "")},
		map[string]string{"sizes-refused": "too-small-accepted"}},
	"misspelt a marker": {1, []testmodule.Edit{types("Maximum=65535", "Maximun=65535")},
		map[string]string{"ports-bounded": "too-big-accepted"}},
	"counts from zero": {1, []testmodule.Edit{types(sizeBounds, "	// +kubebuilder:validation:Minimum=0\n	// +kubebuilder:validation:Maximum=5\n")},
		map[string]string{"sizes-refused": "too-small-accepted"}},
	"excludes the upper end": {1, []testmodule.Edit{types(sizeBounds, sizeBounds+"	// +kubebuilder:validation:ExclusiveMaximum=true\n")},
		map[string]string{"sizes-accepted": "size-refused"}},
	"took the Go name": {1, []testmodule.Edit{types(`json:"containerPort,omitempty"`, `json:"ContainerPort,omitempty"`)},
		map[string]string{"ports-bounded": "port-lost", "unknown-fields-refused": "known-field-refused", "defaults-apply": "no-port-default"}},
	"left the defaults to the operator": {1, []testmodule.Edit{types("	// +kubebuilder:default=11211\n", "")},
		map[string]string{"defaults-apply": "no-port-default"}},
	"defaults to another size": {1, []testmodule.Edit{types("default=1\n", "default=3\n")},
		map[string]string{"defaults-apply": "wrong-size-default"}},
	"made the spec optional": {1, []testmodule.Edit{types("	// +required\n", "	// +optional\n"), types("`json:\"spec\"`", "`json:\"spec,omitzero\"`")},
		map[string]string{"spec-required": "spec-optional"}},
	"welcomes every field": {1, []testmodule.Edit{types("type MemcachedSpec struct", "// +kubebuilder:pruning:PreserveUnknownFields\ntype MemcachedSpec struct")},
		map[string]string{"unknown-fields-refused": "unknown-field-accepted"}},
	"has an atomic list": {1, []testmodule.Edit{types(listMap, "")},
		map[string]string{"conditions-list-map": "atomic-list"}},
	"keys the list by reason": {1, []testmodule.Edit{types("listMapKey=type", "listMapKey=reason")},
		map[string]string{"conditions-list-map": "wrong-key"}},
	"has no status subresource": {1, []testmodule.Edit{types("// +kubebuilder:subresource:status\n", "")},
		map[string]string{"status-subresource": "no-subresource"}},

	"copied by hand, and shallow": {2, []testmodule.Edit{testmodule.Replace(testmodule.DeepCopy, copied, "		*out = (*in)[:]\n		var _ v1.Condition\n")},
		map[string]string{"deepcopy-generated": "hand-edited", "copy-shares-nothing": "shares-conditions", "list-copy-shares-nothing": "shares-conditions"}},
	"copied before the last field": {2, []testmodule.Edit{types("	Size int32", "	Zones []string `json:\"zones\"`\n	Size int32"), types(sizeBounds, ""), types("	// +kubebuilder:default=1\n", "")},
		map[string]string{"deepcopy-generated": "stale", "copy-shares-nothing": "shares-memory", "list-copy-shares-nothing": "shares-memory"}},
	"loops in init": {2, []testmodule.Edit{testmodule.Write("api/v1alpha1/init.go", "package v1alpha1\n\nfunc init() {\n	for {\n	}\n}\n")},
		map[string]string{"copy-shares-nothing": "no-answer", "list-copy-shares-nothing": "no-answer"}},

	"kept an old manifest": {3, []testmodule.Edit{manifest("maximum: 5\n", "maximum: 9\n")},
		map[string]string{"crd-generated": "stale"}},
	"serves another group": {3, []testmodule.Edit{types("groupName=cache", "groupName=stash"), manifest("cache.example.com", "stash.example.com"), testmodule.Replace(testmodule.Sample, "cache.example.com", "stash.example.com")},
		map[string]string{"crd-names": "wrong-group"}},
	"has a column of the first condition": {3, []testmodule.Edit{manifest(`[?(@.type=="Available")]`, "[0]")},
		map[string]string{"crd-generated": "stale", "crd-columns": "wrong-value"}},
	"lost the Age column": {3, []testmodule.Edit{manifest("    - jsonPath: .metadata.creationTimestamp\n      name: Age\n      type: date\n", "")},
		map[string]string{"crd-generated": "stale", "crd-columns": "missing-column"}},
	"installed without subresource": {3, []testmodule.Edit{manifest("    subresources:\n      status: {}\n", "")},
		map[string]string{"crd-generated": "stale", "crd-status-subresource": "no-subresource"}},
	"describes nothing": {3, []testmodule.Edit{types("	// size is the number of Pods.\n", ""), manifest("                description: size is the number of Pods.\n", "")},
		map[string]string{"crd-descriptions": "no-description"}},
	"wrote a sample of size 7": {3, []testmodule.Edit{testmodule.Replace(testmodule.Sample, "size: 2", "size: 7")},
		map[string]string{"sample-accepted": "sample-refused"}},
}

// A right answer that was not rendered from ours passes, and every wrong one is caught by the check that
// is there for it, with the cause that its hints are about.
func TestWrongAnswersAreCaught(t *testing.T) {
	t.Parallel()
	c := load(t)
	b := newBench(t, c)
	for _, lab := range c.Labs[:3] {
		b.judge(t, "right", wrong{lab: lab.Number})
	}
	for _, name := range slices.Sorted(maps.Keys(wrongs)) {
		b.judge(t, name, wrongs[name])
	}
}

// bench judges many workspaces on one cluster.
type bench struct {
	course     *course.Course
	tools      verdict.Tools
	kubeconfig string
	admin      clientset.Interface
}

// clusterEnv names a kubeconfig to use instead of a fresh kind cluster, for an author in a hurry. Its
// definitions are deleted.
const clusterEnv = "LAB_TEST_KUBECONFIG"

func newBench(t *testing.T, c *course.Course) *bench {
	t.Helper()
	b := &bench{course: c, kubeconfig: os.Getenv(clusterEnv)}
	if b.kubeconfig == "" {
		b.kubeconfig = freshCluster(t, c)
	}
	var err error
	if b.tools, err = verdict.BuildTools(t.Context(), c.Root, filepath.Join(c.Root, ".lab")); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if b.admin, err = clientset.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return b
}

func freshCluster(t *testing.T, c *course.Course) string {
	t.Helper()
	j := newJudge(t, c)
	cluster, err := j.Clusters.Create(t.Context(), "wrong", clusters.Spec{NodeImage: j.NodeImage.Ref}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
		defer cancel()
		if err := j.Clusters.Delete(ctx, cluster.Name); err != nil {
			t.Error(err)
		}
	})
	return cluster.Kubeconfig
}

// judge runs the checks of one lab on one answer.
func (b *bench) judge(t *testing.T, name string, w wrong) {
	t.Run(name, func(t *testing.T) {
		b.clear(t)
		lab, err := b.course.Lab(w.lab)
		if err != nil {
			t.Fatal(err)
		}
		report, err := b.tools.RunSuite(t.Context(), harness.Config{
			Labs: []int{w.lab}, Checks: ids(lab), Workspace: testmodule.New(t, w.edits...), Kubeconfig: b.kubeconfig,
			ControllerGen: b.tools.ControllerGen, Guard: b.tools.Guard, Seed: seed,
			Scratch: scratch(t), Artifacts: t.TempDir(),
		})
		if err != nil {
			t.Fatal(err)
		}
		result := verdict.Classify(report, []*course.Lab{lab}, false)
		if result.Defect != "" {
			t.Fatal(result.Defect)
		}
		got := map[string]string{}
		for _, check := range result.Checks {
			if check.State == verdict.Failed {
				got[check.ID] = check.Cause
				t.Logf("%s: expected %s; saw %s", check.ID, check.Expected, check.Seen)
				requireHint(t, lab, check)
			}
		}
		if w.caught == nil {
			w.caught = map[string]string{}
		}
		if diff := cmp.Diff(w.caught, got); diff != "" {
			t.Errorf("caught (-want +got):\n%s", diff)
		}
	})
}

func ids(lab *course.Lab) []string {
	var all []string
	for _, c := range lab.Checks {
		all = append(all, c.ID)
	}
	return all
}

// clear deletes the definitions of the answer before, and waits until they are gone.
func (b *bench) clear(t *testing.T) {
	t.Helper()
	definitions := b.admin.ApiextensionsV1().CustomResourceDefinitions()
	if err := definitions.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		left, err := definitions.List(ctx, metav1.ListOptions{})
		return err == nil && len(left.Items) == 0, err
	})
	if err != nil {
		t.Fatalf("delete definitions: %v", err)
	}
}

// requireHint wants the lesson to have something to say about this cause.
func requireHint(t *testing.T, lab *course.Lab, failed verdict.Check) {
	t.Helper()
	for _, check := range lab.Checks {
		if check.ID == failed.ID && len(check.Hints[failed.Cause]) == 0 {
			t.Errorf("%s has no hints for the cause %s", failed.ID, failed.Cause)
		}
	}
}

// scratch is a folder that the unprivileged user of learner programs can pass through.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "operator-lab-wrong-") //nolint:usetesting // another user cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}
