package clustertest_test

import (
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/clustertest"
)

func ExampleNew() {
	_ = func(t *testing.T) { // TestOperator, for example
		c := clustertest.New(t, clustertest.Spec(clusters.Spec{Workers: 1}))
		if err := c.Manager.LoadImage(t.Context(), c.Name, "example.com/my-operator:test"); err != nil {
			t.Fatal(err)
		}
		client := kubernetes.NewForConfigOrDie(c.Config)
		_ = client
	}
}

func ExampleShared() {
	_ = func(t *testing.T) { // in each of several packages
		c := clustertest.New(t, clustertest.Embedded(), clustertest.Shared("my-module"))
		_ = c
	}
}
