// Package demotest runs the demo on a real cluster. Its test needs a container engine and a node image.
package demotest
