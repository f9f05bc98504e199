// Package e2etest runs a feature of sigs.k8s.io/e2e-framework on a real cluster
// of package e2e. It has no code of its own.
//
// NODE_IMAGE chooses the node image, as it does for the labs.
package e2etest
