// Package gradetest grades a small class from beginning to end.
package gradetest
