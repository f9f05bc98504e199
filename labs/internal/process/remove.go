package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// removeLimit bounds the removal of one folder.
const removeLimit = 30 * time.Second

// RemoveAll removes a folder in which a learner's program could write. [os.RemoveAll] keeps a file open for each folder in a
// folder, and, when it may open no more, works for hours and removes nothing; rm does not.
// Nobody else may change the folder any more: the rm of some systems follows a link that takes the place of a folder.
func RemoveAll(dir string) error {
	rm, err := exec.LookPath("rm")
	if err != nil {
		return os.RemoveAll(dir)
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	cmd, said := exec.CommandContext(ctx, rm, "-rf", "--", dir), &Head{Limit: 4 << 10}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		first, _, _ := strings.Cut(said.String(), "\n")
		return fmt.Errorf("remove %s: %w: %s", dir, err, first)
	}
	return nil
}
