// Package meter reads what a step takes of the machine: processor time and memory. It reads counters and
// returns totals; what happened between two readings is their difference.
package meter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// errUnreadable says that a counter does not look as the kernel writes it.
var errUnreadable = errors.New("not in a known form")

// ticks are the units of processor time in /proc: 100 a second on every Linux that Go runs on.
const ticks = 100

// busy is the first line of /proc/stat without the columns that are waiting: idle and iowait. The time of guests is in
// that of user and nice already.
func busy(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	const idle, iowait, guest = 4, 5, 9 // columns, the first being the name
	if len(fields) <= iowait || fields[0] != "cpu" {
		return 0, fmt.Errorf("read /proc/stat: %w: %q", errUnreadable, line)
	}
	var total uint64
	for i, field := range fields[:min(len(fields), guest)] {
		if i == 0 || i == idle || i == iowait {
			continue
		}
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read /proc/stat: %w: %q", errUnreadable, line)
		}
		total += n
	}
	return time.Duration(total) * time.Second / ticks, nil
}

// process is what /proc tells about one process.
type process struct {
	pid, parent int
	// own is its processor time, waited that of its descendants which have ended and were waited for.
	own, waited time.Duration
}

// parseProcess reads /proc/PID/stat. The name of the program stands in parentheses and may contain any character.
func parseProcess(stat string) (process, error) {
	pid, rest, _ := strings.Cut(stat, " ")
	after := strings.LastIndexByte(rest, ')')
	fields := strings.Fields(rest[after+1:])
	// Counted from the state, which follows the name.
	const parent, user, childrensSystem = 1, 11, 14
	if after < 0 || len(fields) <= childrensSystem {
		return process{}, fmt.Errorf("read /proc/PID/stat: %w: %q", errUnreadable, stat)
	}
	var numbers [6]int64
	for i, field := range append([]string{pid, fields[parent]}, fields[user:childrensSystem+1]...) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return process{}, fmt.Errorf("read /proc/PID/stat: %w: %q", errUnreadable, stat)
		}
		numbers[i] = n
	}
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second / ticks }
	return process{
		pid: int(numbers[0]), parent: int(numbers[1]),
		own: seconds(numbers[2] + numbers[3]), waited: seconds(numbers[4] + numbers[5]),
	}, nil
}

// tree is the processor time of the process root and of all its descendants, living and dead.
func tree(root int, all []process) time.Duration {
	children := map[int][]process{}
	total := time.Duration(0)
	for _, p := range all {
		if p.pid == root {
			total = p.own + p.waited
			continue
		}
		children[p.parent] = append(children[p.parent], p)
	}
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		total += queue[0].own + queue[0].waited
		queue = append(queue, children[queue[0].pid]...)
	}
	return total
}
