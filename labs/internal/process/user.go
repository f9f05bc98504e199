package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// Ours says whether a file belongs to the user of this process.
func Ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// UserOf is the user id, and group id, that a learner's programs with this home run as: -1, that of this process, unless it
// is root. Each home then gets a user of its own, so that the end of a program ends whatever runs as that user, and no program
// may send signals to that of another run. The home, a folder of ours that nobody else may replace, is the user's from then on.
// A container of a user's own may know no such users; there it is [Unprivileged].
func UserOf(home string) (int, error) {
	if os.Geteuid() != 0 {
		return -1, nil
	}
	info, err := os.Lstat(home)
	if err != nil {
		return 0, fmt.Errorf("find the user of a home: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
		return int(stat.Uid), nil
	}
	uid := supervisor.NewUser()
	err = os.Chown(home, uid, uid)
	if errors.Is(err, syscall.EINVAL) {
		uid = Unprivileged
		err = os.Chown(home, uid, uid)
	}
	if err != nil {
		return 0, fmt.Errorf("give a home to a user: %w", err)
	}
	return uid, nil
}
