package nodeimage

import (
	"errors"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/example/operator-lab/clusters"
)

// noEngine cannot be called.
const noEngine engine = "/nonexistent"

// pushMemcached puts an image like the official one into a registry on this machine.
func pushMemcached(t *testing.T) (source string, stop func()) {
	t.Helper()
	image, err := assemble(v1.Config{User: "memcache", Entrypoint: []string{"docker-entrypoint.sh"}})
	if err != nil {
		t.Fatal(err)
	}
	return push(t, image)
}

func push(t *testing.T, image v1.Image) (source string, stop func()) {
	t.Helper()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	source = strings.TrimPrefix(server.URL, "http://") + "/library/memcached:1"
	ref, err := name.ParseReference(source)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	return source, server.Close
}

func TestTheOperandComesFromARegistryOnce(t *testing.T) {
	source, stop := pushMemcached(t)
	cache := t.TempDir()
	archive, err := operandArchive(t.Context(), noEngine, cache, source)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if again, err := operandArchive(t.Context(), noEngine, cache, source); err != nil || again != archive {
		t.Errorf("second call gave %q, %v", again, err)
	}
	tag, err := name.NewTag(Operand)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatalf("the archive has no %s: %v", Operand, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "11211:11211" {
		t.Errorf("the user is %q: restricted Pods need a number", config.Config.User)
	}
	if config.Config.Entrypoint[0] != "docker-entrypoint.sh" {
		t.Errorf("the entrypoint became %q", config.Config.Entrypoint)
	}
}

func TestTheOperandIsPulledByItsDigest(t *testing.T) {
	digest, err := name.NewDigest(operandSource)
	if err != nil {
		t.Fatalf("whoever answers for the registry chooses the image: %v", err)
	}
	if want := ":" + OperandVersion + "@" + digest.DigestStr(); !strings.HasSuffix(operandSource, want) {
		t.Errorf("%s does not end in %s", operandSource, want)
	}
}

func TestAnImageForAnotherArchitectureIsNoOperand(t *testing.T) {
	image, err := assemble(v1.Config{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Architecture = "s390x"
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	source, _ := push(t, image)
	err = pullOperand(t.Context(), source, filepath.Join(t.TempDir(), "operand.tar"))
	if err == nil || !strings.Contains(err.Error(), "s390x") {
		t.Errorf("got error %v, want one that names the architecture", err)
	}
}

func TestWithoutAnySourceOfTheOperandTheErrorNamesTheCommand(t *testing.T) {
	source, stop := pushMemcached(t)
	stop()
	t.Setenv("PATH", "") // nothing can be installed either
	_, err := operandArchive(t.Context(), noEngine, t.TempDir(), source)
	problem, ok := errors.AsType[*clusters.Problem](err)
	if !ok || problem.Fix == "" {
		t.Errorf("got error %v, want a problem with a command that fixes it", err)
	}
}
