// Package faulttest breaks the machine during a run, for real, and wants the verdict environment, with what is wrong and the
// command that fixes it. It breaks only clusters of its own and its own connection to the container engine.
//
// It has no code of its own. NODE_IMAGE chooses the node image, as it does for the labs.
package faulttest
