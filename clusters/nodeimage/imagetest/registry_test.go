package imagetest

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/example/operator-lab/clusters/nodeimage"
)

// A site with a registry of its own names its node image by digest.
func TestNodeImageIsPulledOnce(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	node := push(t, host+"/site/node", "/usr/local/bin/entrypoint", "/sbin/init")
	other := push(t, host+"/site/other", "/bin/true")
	for ref, why := range map[string]string{other: "entrypoint", host + "/site/none:1": "cannot be pulled"} {
		_, err := nodeimage.Resolve(t.Context(), "docker", ref)
		if _, ok := errors.AsType[*nodeimage.InputError](err); !ok || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want an input error about %q", ref, err, why)
		}
	}
	for range 2 {
		image, err := nodeimage.Resolve(t.Context(), "docker", node)
		if err != nil || image.Ref != node || image.Local || image.Stale {
			t.Errorf("resolved to %+v, %v; want the image of the registry", image, err)
		}
		server.Close()
	}
}

// push makes an image that starts with the given command, and returns its reference by digest.
func push(t *testing.T, repository string, entrypoint ...string) string {
	t.Helper()
	image, err := mutate.Config(empty.Image, v1.Config{Entrypoint: entrypoint})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewDigest(repository + "@" + digest.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(t.Context()), "docker", "image", "rm", ref.String()).Run() // not all were pulled
	})
	return ref.String()
}
