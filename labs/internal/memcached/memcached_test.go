package memcached

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
)

func TestArchiveIsPulledOnceAndHasANumericUser(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	source := strings.TrimPrefix(server.URL, "http://") + "/library/memcached:1"
	ref, err := name.ParseReference(source)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.Config(empty.Image, v1.Config{User: "memcache", Entrypoint: []string{"docker-entrypoint.sh"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	file, err := archive(t.Context(), cache, source)
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	if again, err := archive(t.Context(), cache, source); err != nil || again != file {
		t.Errorf("without the registry: %q, %v; want %q", again, err, file)
	}
	tag, err := name.NewTag(Image)
	if err != nil {
		t.Fatal(err)
	}
	if image, err = tarball.ImageFromPath(file, &tag); err != nil {
		t.Fatalf("the archive has no %s: %v", Image, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Config; got.User != user || got.Entrypoint[0] != "docker-entrypoint.sh" {
		t.Errorf("user %q, entrypoint %q", got.User, got.Entrypoint)
	}
}

func TestSourceIsADigest(t *testing.T) {
	if _, err := name.NewDigest(source); err != nil {
		t.Error(err) // a tag would let the registry choose the image
	}
}

// provider notes what it is told to load.
type provider struct {
	clusters.Provider
	loaded string
}

func (p *provider) LoadImageArchive(_ context.Context, _, archive string) error {
	p.loaded = archive
	return nil
}

func TestSpecLoadsTheImageOnlyWherePodsLackIt(t *testing.T) {
	cache := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what would be pulled fails at once
	for name, c := range map[string]struct {
		node   nodeimage.Image
		real   bool
		pulled bool
	}{
		"built here":       {nodeimage.Image{Images: []string{Image}}, true, false},
		"no real Pods":     {nodeimage.Image{}, false, false},
		"kind's own image": {nodeimage.Image{}, true, true},
	} {
		p := &provider{}
		m, err := clusters.New(cache, clusters.WithProvider(p))
		if err != nil {
			t.Fatal(err)
		}
		err = Spec(c.node, m, cache).Prepare(ctx, &clusters.Cluster{RealPods: c.real})
		problem, ok := errors.AsType[*clusters.Problem](err)
		if ok != c.pulled || ok && problem.Fix == "" || p.loaded != "" {
			t.Errorf("%s: error %v, loaded %q", name, err, p.loaded)
		}
	}
}
