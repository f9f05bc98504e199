// Package islandtest does the labs from a handout on an island: a network namespace that reaches nothing but the room's
// server. It has tests only, for Linux and root.
package islandtest
