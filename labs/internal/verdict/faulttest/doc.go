// Package faulttest breaks the machine under a run, for real, and wants the verdict to say so: whatever is
// the machine's fault ends as "environment", with what is wrong and the command that fixes it, and soon.
// What is broken belongs to a container engine of the test's own.
//
// It has no code of its own. NODE_IMAGE chooses the node image, as it does for the labs.
package faulttest
