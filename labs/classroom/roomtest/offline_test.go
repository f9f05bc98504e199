//go:build linux

package roomtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	// fewLabs are those that are done without a setting. HANDOUT_LABS=all does all of them (make proof), HANDOUT_LABS=2,7 these.
	fewLabs      = "1"
	labsVariable = "HANDOUT_LABS"
)

// TestLabsFromAHandoutNeedOnlyTheRoom has an instructor set up a room and hand out a handout, and a learner do labs as the
// handout says, red and green, where only the room's server can be reached.
func TestLabsFromAHandoutNeedOnlyTheRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("a network namespace needs root: run this test as root")
	}
	r := newRoom(t, "embedded", 1)
	r.classroom(t, "modules")
	server := r.serve(t)
	r.classroom(t, "handouts", "--server", "https://"+server)
	caches, modules := goCaches(t)
	n := isolate(t, server, modules)
	n.requireIsolated(t, listen(t), r.apiServer(t))
	l := newLearner(t, r.handout("learner-1"), n.wrap, append(caches, "LAB_CACHE="+r.cache)...)

	labs := chosen(t)
	for _, lab := range labs {
		t.Run(fmt.Sprintf("lab %d", lab), func(t *testing.T) {
			if lab > 1 {
				l.solve(t, lab-1)
			}
			l.requireRed(t, lab, "CLUSTER=embedded")
			l.requireGreen(t, lab, "CLUSTER=embedded")
		})
	}
	if zips, err := filepath.Glob(filepath.Join(n.Empty, "cache", "download", "k8s.io", "*", "@v", "*.zip")); err != nil || len(zips) == 0 {
		t.Errorf("no module of Kubernetes came from the room: %v", err)
	}
	shown := r.board(t)
	for _, lab := range labs[:len(labs)-1] { // a check does not wait for the board: the next one would send the last
		if got := shown[fmt.Sprintf("learner-1 lab %d", lab)]; got != "pass" {
			t.Errorf("the board shows lab %d as %q: %v", lab, got, shown)
		}
	}
}

// chosen are the labs to do.
func chosen(t *testing.T) (labs []int) {
	t.Helper()
	text := os.Getenv(labsVariable)
	switch text {
	case "":
		text = fewLabs
	case "all":
		text = "1,2,3,4,5,6,7"
	}
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("%s=%s: use all, or numbers of labs such as 1,4", labsVariable, text)
		}
		labs = append(labs, n)
	}
	slices.Sort(labs)
	return labs
}
