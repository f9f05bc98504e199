// Package kindtest tests the kind provider on a real container engine. It has no
// code of its own; it is a package apart so that the tests of package clusters
// need no engine.
//
// NODE_IMAGE chooses the node image, as it does for the labs.
package kindtest
