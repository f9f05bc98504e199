package plain

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// ReadFile reads a file that somebody else may have put there. It follows links, which can lead to a pipe that never ends, a
// device, or a file of the kernel's that has no size and fills the memory: what is no plain file, or has more than limit bytes,
// is an error, and not more is read than the size that the file has.
func ReadFile(path string) ([]byte, error) {
	if err := isPlain(os.Stat(path)); err != nil { // to open a device can be to do something
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // to open a pipe is to wait for who writes
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err := isPlain(info, err); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, info.Size()))
}

func isPlain(info os.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no plain file", info.Name())
	}
	return err
}
