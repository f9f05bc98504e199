package clusters

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// What kubeadm prints begins with the Deployment, whose Pods cannot start without the rest.
func TestCoreDNSIsCreatedAfterWhatItNeeds(t *testing.T) {
	objects, err := decodeDNS([]byte(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 3 {
		t.Fatalf("%d objects, want 3", len(objects))
	}
	if _, ok := objects[2].(*appsv1.Deployment); !ok {
		t.Errorf("the last is a %T, want the Deployment", objects[2])
	}
}

func TestManifestsThatAreNone(t *testing.T) {
	_, err := decodeDNS([]byte("---\nunknown flag: --print-manifest\n"))
	if err == nil || !strings.Contains(err.Error(), "CoreDNS") {
		t.Errorf("error = %v, want one that says whose manifest it is", err)
	}
}
