// Package e2etest runs a feature of sigs.k8s.io/e2e-framework on a real cluster
// of package e2e. It has no code of its own.
//
// LAB_NODE_IMAGE chooses the node image, as NODE_IMAGE does for the labs.
package e2etest
