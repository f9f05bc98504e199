// Package imagetest proves that clusters made of the node image are whole. It has no code of its own; it is a package
// apart so that the tests of package nodeimage need no cluster.
//
// NODE_IMAGE chooses the node image, as it does for the labs.
package imagetest
