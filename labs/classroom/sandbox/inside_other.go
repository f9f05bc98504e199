//go:build !linux

package sandbox

// There are containers on Linux only.

func conceal() error { return nil }

func reserveThreads() error { return nil }

func countEvents() events { return events{} }

func refusedTasks() int { return 0 }

func memoryIsLimited() bool { return false }

func kernelMemory() int { return 0 }

func tooManySockets() bool { return false }

func filterCalls() error { return nil }

func filterProgram() error { return nil }

func ignoreSignals() error { return nil }

func endOthers() {}

func refuseCoreDumps() error { return nil }

func limitFiles() error { return nil }
