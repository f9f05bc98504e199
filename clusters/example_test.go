package clusters_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
)

func ExampleNew() {
	m, err := clusters.New("/var/tmp/my-tests", clusters.WithPull(), clusters.WithLogger(func(line string) { log.Print(line) }))
	if errors.Is(err, clusters.ErrNoEngine) {
		m, err = embedded.NewManager("/var/tmp/my-tests", "", nil) // without containers
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Provider().Identity())
}

func ExampleManager_Create() {
	ctx := context.Background()
	m, err := clusters.New("/var/tmp/my-tests")
	if err != nil {
		log.Fatal(err)
	}
	c, err := m.Create(ctx, clusters.Spec{Label: "upgrade", Workers: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = m.Delete(ctx, c.Name) }()
	config, err := c.RESTConfig()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(kubernetes.NewForConfigOrDie(config).Discovery().ServerVersion())
}

func ExampleManager_LoadImage() {
	ctx := context.Background()
	m, err := clusters.New("/var/tmp/my-tests")
	if err != nil {
		log.Fatal(err)
	}
	// Prepare is done before Create returns.
	_, err = m.Create(ctx, clusters.Spec{Prepare: func(ctx context.Context, c *clusters.Cluster) error {
		return m.LoadImage(ctx, c.Name, "example.com/my-operator:test")
	}})
	if err != nil {
		log.Fatal(err)
	}
}
