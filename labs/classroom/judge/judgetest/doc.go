// Package judgetest has judges judge in Pods of a kind cluster.
package judgetest
