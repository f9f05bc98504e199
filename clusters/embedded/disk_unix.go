//go:build !windows

package embedded

import "golang.org/x/sys/unix"

// freeDisk is the space in bytes that is left where dir is: 0 when that is not known,
// 1 when nothing is left.
func freeDisk(dir string) uint64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0
	}
	return max(1, s.Bavail*uint64(s.Bsize))
}
