package judge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/sandbox"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/process"
)

// The ports on which the containers of a sandbox listen, as labs/classroom/hosting/chart/objects.yaml has them.
var (
	toolPorts    = []string{"7000", "7001"}
	programPorts = []string{"7010", "7011", "7012", "7013", "7014", "7015", "7016"}
)

const (
	// claimLimit bounds the wait for a sandbox. One that nobody has made beforehand takes as long as a Pod takes to start, and the
	// node may have to pull the image.
	claimLimit = 10 * time.Minute
	// claimPeriod is the time from one look at a claim to the next.
	claimPeriod = 100 * time.Millisecond
	// claimLife is when a claim ends that nobody has given back, with its sandbox.
	claimLife = time.Hour
)

// claims is the resource of agent-sandbox whose objects each get a Pod of their own from a pool
// (https://agent-sandbox.sigs.k8s.io). It is a young API, and little of it is used; so no types of theirs.
var claims = schema.GroupVersionResource{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxclaims"}

// claim gets a sandbox for this Pod, and gives its address. release gives it back; the cluster does when this Pod is gone.
func claim(ctx context.Context, progress func(string)) (host string, release func() error, err error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return "", nil, fmt.Errorf("claim a sandbox: %w", err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return "", nil, fmt.Errorf("claim a sandbox: %w", err)
	}
	mine := client.Resource(claims).Namespace(os.Getenv(hosted.NamespaceEnv))
	name := os.Getenv(hosted.JobNameEnv) + "-sandbox" // a Pod that is made for the claim has its name, too
	wanted := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": claims.GroupVersion().String(), "kind": "SandboxClaim",
		"metadata": map[string]any{"name": name, "ownerReferences": []any{
			map[string]any{"apiVersion": "v1", "kind": "Pod", "name": os.Getenv(hosted.PodNameEnv), "uid": os.Getenv(hosted.PodUIDEnv)},
		}},
		"spec": map[string]any{
			"warmPoolRef": map[string]any{"name": os.Getenv(hosted.PoolEnv)},
			"lifecycle":   map[string]any{"shutdownTime": time.Now().Add(claimLife).UTC().Format(time.RFC3339), "shutdownPolicy": "Delete"},
		},
	}}
	uid, err := replace(ctx, mine, wanted)
	if err != nil {
		return "", nil, &clusters.Problem{What: "cannot claim a sandbox", Fix: "bin/classroom hosted doctor", Err: err}
	}
	release = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
		defer cancel()
		return giveBack(ctx, mine, name, uid)
	}
	host, err = ready(ctx, mine, name, uid, progress)
	if err != nil {
		return "", nil, errors.Join(&clusters.Problem{What: "no sandbox came", Fix: "bin/classroom hosted doctor", Err: err}, release())
	}
	return host, release, nil
}

// replace makes a claim. That of a Pod of the same Job which was lost, and could not give it back, ends for it: else each Pod that is
// lost would keep its sandbox for as long as there is the Job.
func replace(ctx context.Context, mine dynamic.ResourceInterface, wanted *unstructured.Unstructured) (uid types.UID, err error) {
	err = wait.PollUntilContextTimeout(ctx, claimPeriod, claimLimit, true, func(ctx context.Context) (bool, error) {
		made, err := mine.Create(ctx, wanted, metav1.CreateOptions{})
		if err == nil {
			uid = made.GetUID()
			return true, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return false, err
		}
		err = mine.Delete(ctx, wanted.GetName(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return false, err
	})
	return uid, err
}

// giveBack ends a claim, unless another Pod has taken its place.
func giveBack(ctx context.Context, mine dynamic.ResourceInterface, name string, uid types.UID) error {
	err := mine.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// ready waits for the Pod of a claim, and tells what it waits for.
func ready(ctx context.Context, mine dynamic.ResourceInterface, name string, uid types.UID, progress func(string)) (host string, err error) {
	told := ""
	err = wait.PollUntilContextTimeout(ctx, claimPeriod, claimLimit, true, func(ctx context.Context) (bool, error) {
		claim, err := mine.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if claim.GetUID() != uid {
			return false, errors.New("another Pod of this Job has taken its place")
		}
		ips, _, _ := unstructured.NestedStringSlice(claim.Object, "status", "sandbox", "podIPs")
		isReady, why := readiness(claim)
		if isReady && len(ips) > 0 {
			host = ips[0]
			return true, nil
		}
		if why != told {
			told = why
			progress("waiting for a sandbox: " + why)
		}
		return false, nil
	})
	if err != nil {
		err = fmt.Errorf("%w: %s", err, told)
	}
	return host, err
}

// readiness is the claim's condition Ready.
func readiness(claim *unstructured.Unstructured) (isReady bool, why string) {
	ready := hosted.Condition(claim, "Ready")
	if ready == nil {
		return false, "nobody has seen the claim yet"
	}
	return ready.Status == metav1.ConditionTrue, ready.Reason + " " + ready.Message
}

// claimed is a sandbox of this Pod's.
type claimed struct {
	pods     sandbox.Pods
	launcher *process.Launcher
	scratch  string
	release  func() error
}

// intact is an error if it was lost.
func (s *claimed) intact(ctx context.Context) error {
	if err := s.pods.Intact(ctx); err != nil {
		return &clusters.Problem{What: "the Pod in which the learner's code ran is gone", Fix: "the same command again", Err: err}
	}
	return nil
}

// newSandbox claims one. work is a folder for what belongs to it.
func newSandbox(ctx context.Context, work string, progress func(string)) (*claimed, error) {
	s := &claimed{scratch: filepath.Join(work, "sandbox")}
	if err := os.Mkdir(s.scratch, 0o700); err != nil {
		return nil, err
	}
	host, release, err := claim(ctx, progress)
	if err != nil {
		return nil, err
	}
	at := func(ports []string) (all []string) {
		for _, port := range ports {
			all = append(all, net.JoinHostPort(host, port))
		}
		return all
	}
	s.release = release
	s.pods = sandbox.Pods{
		Tools: at(toolPorts), Programs: at(programPorts), Key: sandbox.NewKey(), Locks: s.scratch, Tmp: os.TempDir(), Shim: shim,
		Toolchain: sandbox.Toolchain{GoRoot: goDir, ModCache: modDir, BuildCache: builtDir},
	}
	if err = s.pods.Claim(ctx); err == nil {
		s.launcher, err = s.pods.Launcher(filepath.Join(work, "pods.json"))
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	s.launcher.Scratch = s.scratch // else the judge's
	return s, nil
}
