// Package lendingtest tries a learner's machine that borrows with a room that lends.
package lendingtest
