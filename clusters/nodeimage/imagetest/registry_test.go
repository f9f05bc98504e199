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

// A site with a registry of its own names its node image by digest. It is pulled once, and the registry is
// not needed again; what is no node image is refused by name.
func TestANodeImageIsPulledFromARegistryOnce(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	node := push(t, host+"/site/node", "/usr/local/bin/entrypoint", "/sbin/init")
	other := push(t, host+"/site/other", "/bin/true")

	image, err := nodeimage.Resolve(t.Context(), "docker", node)
	if err != nil {
		t.Fatal(err)
	}
	if image.Ref != node || image.Local || image.HasOperand {
		t.Errorf("resolved to %+v, want the image of the registry, without operand", image)
	}
	for ref, why := range map[string]string{other: "entrypoint", host + "/site/none:1": "cannot be pulled"} {
		_, err := nodeimage.Resolve(t.Context(), "docker", ref)
		if _, ok := errors.AsType[*nodeimage.InputError](err); !ok || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want an input error about %q", ref, err, why)
		}
	}
	server.Close()
	if _, err := nodeimage.Resolve(t.Context(), "docker", node); err != nil {
		t.Errorf("without the registry: %v", err)
	}
}

// push makes an image that starts with the given command, and returns its reference by digest. The engine forgets
// it with the test's end.
func push(t *testing.T, repository string, entrypoint ...string) string {
	t.Helper()
	image, err := mutate.Config(empty.Image, v1.Config{Entrypoint: entrypoint})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := name.NewRepository(repository)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	ref := repo.Digest(digest.String())
	if err := remote.Write(ref, image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(t.Context()), "docker", "image", "rm", ref.String()).Run() // not all were pulled
	})
	return ref.String()
}
