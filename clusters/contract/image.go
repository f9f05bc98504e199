package contract

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
)

// emptyImage writes an image that holds no program and returns its name and the
// archive.
func emptyImage(t *testing.T) (ref, archive string) {
	t.Helper()
	image, err := random.Image(1024, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("operator-lab.local/contract:" + digest.Hex[:12])
	if err != nil {
		t.Fatal(err)
	}
	archive = filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(archive, tag, image); err != nil {
		t.Fatal(err)
	}
	return tag.String(), archive
}

// failureReason says why the Pod's container does not run, "" while that is not
// known.
func failureReason(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		switch {
		case status.State.Terminated != nil:
			return status.State.Terminated.Reason
		case status.State.Waiting != nil && status.State.Waiting.Reason != "ContainerCreating":
			return status.State.Waiting.Reason
		}
	}
	return ""
}
