package room_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/board/room"
)

// Whoever is further need not join anything, and whoever joined and failed again an earlier lab has joined.
func TestWhoFollowsTheInstructor(t *testing.T) {
	learners := []*room.Learner{
		someone("behind", "1 fail -says-hello"), someone("joined", "1 fail -says-hello"), someone("stays", "1 fail -says-hello"),
		someone("there", "1 pass +says-hello"), someone("further", "2 pass +takes-name"), someone("new"), someone("stays, and went", "2 fail -takes-name"),
	}
	for i, l := range learners {
		l.ID = int64(i + 1)
	}
	labs := small(t).Labs
	f := room.Follow(learners, labs, 2, map[int64]bool{2: true}, map[int64]bool{3: true, 7: true})
	names := func(of []*room.Learner) []string {
		var all []string
		for _, l := range of {
			all = append(all, l.Name)
		}
		return all
	}
	got := [][]string{names(f.There), names(f.Stay), names(f.Waiting)}
	want := [][]string{{"joined", "there", "further", "stays, and went"}, {"stays"}, {"behind", "new"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
