package room

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters/doctor"
)

// plenty is a machine on which nothing is short.
func plenty() map[doctor.Resource]doctor.Supply {
	supplies := map[doctor.Resource]doctor.Supply{}
	for _, resource := range []doctor.Resource{
		doctor.Memory, doctor.Disk, doctor.Inotify, doctor.PIDs, doctor.Ports, doctor.BridgePorts,
	} {
		supplies[resource] = doctor.Supply{Amount: 1 << 50}
	}
	return supplies
}

func fits(short []Shortage) map[doctor.Resource]int {
	found := map[doctor.Resource]int{}
	for _, s := range short {
		found[s.Resource] = s.Fits
	}
	return found
}

func TestARoomFitsAsLongAsThereIsEnoughOfEverything(t *testing.T) {
	for name, test := range map[string]struct {
		resource doctor.Resource
		amount   uint64
		there    Population
		want     int // how many fit, of a hundred
	}{
		"memory, and some for the machine":        {doctor.Memory, 10 * giga, Population{}, 20},
		"memory of running ones is gone already":  {doctor.Memory, 10 * giga, Population{Running: 7}, 27},
		"stopped ones will want their memory":     {doctor.Memory, 10 * giga, Population{Running: 7, Stopped: 5}, 27},
		"others have theirs":                      {doctor.Memory, 10 * giga, Population{Others: 9}, 20},
		"none at all":                             {doctor.Memory, 10 * mega, Population{}, 0},
		"none at all, and some run":               {doctor.Memory, 10 * mega, Population{Running: 3}, 3},
		"disk, and some for the machine":          {doctor.Disk, 5 * giga, Population{}, 20},
		"disk of stopped ones is taken already":   {doctor.Disk, 5 * giga, Population{Running: 2, Stopped: 3}, 25},
		"the kernel's own number of instances":    {doctor.Inotify, 128, Population{}, 4},
		"instances that others have":              {doctor.Inotify, 512, Population{Others: 6}, 10},
		"instances are counted for all":           {doctor.Inotify, 512, Population{Running: 10}, 16},
		"more others than there are instances":    {doctor.Inotify, 128, Population{Running: 1, Others: 9}, 1},
		"processes":                               {doctor.PIDs, 4000, Population{}, 10},
		"ports":                                   {doctor.Ports, 1030, Population{}, 30},
		"a bridge that many others are on, too":   {doctor.BridgePorts, 1024, Population{Others: 950}, 50},
		"a bridge and what of the room is there":  {doctor.BridgePorts, 104, Population{Running: 40, Others: 20}, 60},
		"one for each of a hundred, and no fewer": {doctor.Memory, giga + 100*450*mega, Population{}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			supplies := plenty()
			supplies[test.resource] = doctor.Supply{Amount: test.amount}
			want := map[doctor.Resource]int{test.resource: test.want}
			if test.want == 100 {
				want = map[doctor.Resource]int{}
			}
			if diff := cmp.Diff(want, fits(Fit(supplies, KindCost(), test.there, 100))); diff != "" {
				t.Errorf("too little (-want +got):\n%s", diff)
			}
			if short := Fit(supplies, KindCost(), test.there, test.want); len(short) > 0 {
				t.Errorf("%d do not fit after all: %v", test.want, short)
			}
		})
	}
}

func TestWhatIsNotKnownDoesNotEndARoom(t *testing.T) {
	if short := Fit(nil, KindCost(), Population{}, 1000); len(short) > 0 {
		t.Errorf("too little of %v", short)
	}
}

func TestTheWorstShortageIsToldFirst(t *testing.T) {
	supplies := plenty()
	supplies[doctor.Inotify] = doctor.Supply{Amount: 128, Fix: "make setup"}
	supplies[doctor.Memory] = doctor.Supply{Amount: 4 * giga}
	short := Fit(supplies, KindCost(), Population{}, 12)
	if len(short) != 2 || short[0].Resource != doctor.Inotify || short[0].Fits != 4 || short[1].Fits != 6 {
		t.Fatalf("%+v", short)
	}
	for i, want := range []string{"inotify instances (128, 31 for each)", "memory (4.0 GB, 450 MB for each)"} {
		if got := short[i].String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Twenty clusters of kind, or thirty embedded ones, are promised for 24 GiB, of which a system leaves 22.
func TestThePromisedRoomsFit(t *testing.T) {
	supplies := map[doctor.Resource]doctor.Supply{
		doctor.Memory: {Amount: 22 * giga}, doctor.Disk: {Amount: 100 * giga}, doctor.Inotify: {Amount: 8192},
		doctor.PIDs: {Amount: 30000}, doctor.Ports: {Amount: 28000}, doctor.BridgePorts: {Amount: 1024},
	}
	if short := Fit(supplies, KindCost(), Population{}, 20); len(short) > 0 {
		t.Errorf("kind: %v", short)
	}
	delete(supplies, doctor.BridgePorts)
	if short := Fit(supplies, EmbeddedCost(), Population{}, 30); len(short) > 0 {
		t.Errorf("embedded: %v", short)
	}
}
