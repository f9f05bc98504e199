package components

import (
	"fmt"
	"os"
	"path/filepath"
)

// CacheDir is where programs and images are kept that are built once for all checkouts of this machine: LAB_CACHE, else
// operator-lab in the user's cache folder. It may not exist yet.
func CacheDir() (string, error) {
	if dir := os.Getenv("LAB_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory: set LAB_CACHE or HOME (%w)", err)
	}
	return filepath.Join(dir, "operator-lab"), nil
}
