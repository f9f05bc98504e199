// Package roomtest has an instructor and learners do what docs/classroom.md says, on one machine.
package roomtest
