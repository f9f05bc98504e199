// Package disk asks how much space is left.
package disk

import "golang.org/x/sys/unix"

// Free is the space in bytes that is left on the file system of path.
func Free(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}
