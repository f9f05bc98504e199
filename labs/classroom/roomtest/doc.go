// Package roomtest plays a small room with the commands that an instructor and learners type: once with real kind
// clusters and an accident, and once where a learner's machine reaches nothing but the room's server. It has tests only,
// for Linux and root.
package roomtest
