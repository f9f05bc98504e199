package disk

import "golang.org/x/sys/windows"

// Free is the space in bytes that is left on the file system of path.
func Free(path string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return free, err
}
