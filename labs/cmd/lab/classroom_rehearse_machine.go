package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/room"
	"github.com/example/operator-lab/labs/internal/checkout"
	"github.com/example/operator-lab/labs/internal/guide"
	"github.com/example/operator-lab/labs/internal/modules"
	"github.com/example/operator-lab/labs/internal/rehearsal"
)

// mendModules is the command that downloads what a room needs.
const mendModules = "make classroom-modules"

// askMachine asks the doctor, and repeats what is not as it should be.
func (r *rehearse) askMachine(ctx context.Context) []rehearsal.Finding {
	all := r.examine(ctx)
	var found []rehearsal.Finding
	for _, f := range all {
		detail := f.Name + ": " + f.Detail
		switch {
		case f.OK:
		case f.Severity == doctor.Stops:
			found = append(found, rehearsal.Bad(f.Mend, "%s", detail))
		default:
			found = append(found, rehearsal.Doubt(f.Mend, "%s", detail))
		}
	}
	if len(found) == 0 {
		found = append(found, rehearsal.Good("the doctor looked at %s, and has nothing to say", count(len(all), "thing")))
	}
	return found
}

// askPrograms looks for what clusters are made of. Nothing is built here: that takes minutes.
func (r *rehearse) askPrograms(ctx context.Context) []rehearsal.Finding {
	if r.cluster == onEmbedded {
		missing, err := r.missing(ctx)
		if err != nil {
			return []rehearsal.Finding{rehearsal.Failed(err, "make doctor")}
		}
		if len(missing) > 0 {
			return []rehearsal.Finding{rehearsal.Bad("make setup CLUSTER=embedded",
				"the embedded control plane is not built yet: %s", strings.Join(missing, ", "))}
		}
	}
	var err error
	if r.owned, r.image, err = r.prepare(ctx, 3); err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make setup")}
	}
	if r.cluster == onEmbedded {
		return []rehearsal.Finding{rehearsal.Good("the embedded control plane is built")}
	}
	return r.lookAtImage(ctx)
}

// lookAtImage says which node image there is, and whether learners' engines can have it.
func (r *rehearse) lookAtImage(ctx context.Context) []rehearsal.Finding {
	found := []rehearsal.Finding{rehearsal.Good("node image %s", r.image.Ref)}
	if r.image.Stale {
		found[0] = rehearsal.Doubt("make node-image", "%s was built by an older recipe", r.image.Ref)
	}
	if r.room.Lend > 0 {
		return found // nobody takes it: verdicts use clusters of the room
	}
	packed, err := r.packed(ctx)
	if err == nil && !packed {
		found = append(found, rehearsal.Doubt("make classroom-image",
			"the node image is not packed, so learners with a container engine of their own have to pull or build one"))
	}
	return found // an engine that does not answer is the machine's business
}

// askRoom does the arithmetic of `classroom up`.
func (r *rehearse) askRoom(ctx context.Context) []rehearsal.Finding {
	found, err := room.New(r.owned, room.Options{Healthy: r.healthy}).Look(ctx, r.room.Clusters())
	if err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make doctor")}
	}
	short, lendable, err := r.shortage(ctx, r.room, r.owned, r.image, found)
	if err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make doctor")}
	}
	who := count(len(r.room.Learners), "learner")
	if r.room.Lend > 0 {
		who += " and " + lends(r.room)
	}
	if len(short) > 0 {
		mend := short[0].Supply.Mend
		if mend == "" {
			mend = r.ways(r.room, short[0], max(0, short[0].Fits-lendable), r.before)
		}
		return []rehearsal.Finding{rehearsal.Bad(mend, "room for %s, and not for %s: not enough %s", count(short[0].Fits, "cluster"), who, short[0])}
	}
	return []rehearsal.Finding{rehearsal.Good("%s fit: %s", who, r.taken(ctx, found, lendable))}
}

// taken says how much of what this machine has the clusters will take that do not run yet.
func (r *rehearse) taken(ctx context.Context, found []room.Cluster, lendable int) string {
	supplies, cost := r.supplies(ctx, r.image), r.cost(r.image)
	more := uint64(len(found) - population(nil, found).Running + lendable)
	of := func(resource doctor.Resource, name string) string {
		supply, known := supplies[resource]
		if !known {
			return fmt.Sprintf("%s of %s", gigabytes(more*cost[resource]), name)
		}
		return fmt.Sprintf("%s of the %s of %s", gigabytes(more*cost[resource]), gigabytes(supply.Amount), name)
	}
	return of(doctor.Memory, "memory") + ", " + of(doctor.Disk, "disk")
}

func gigabytes(n uint64) string { return fmt.Sprintf("%.1f GB", float64(n)/(1<<30)) }

// askGuide looks whether the guide says what the labs say.
func (r *rehearse) askGuide(context.Context) []rehearsal.Finding {
	problems, err := guide.Lint(r.course)
	switch {
	case err != nil:
		return []rehearsal.Finding{rehearsal.Failed(err, "git checkout "+guide.File)}
	case len(problems) > 0:
		return []rehearsal.Finding{rehearsal.Doubt("bin/lab lint --fix", "%s", problems[0])}
	}
	return []rehearsal.Finding{rehearsal.Good("%s says what the labs of this checkout say", guide.File)}
}

// askCourse looks at what learners will get.
func (r *rehearse) askCourse(ctx context.Context) []rehearsal.Finding {
	course, err := checkout.Pack(ctx, r.root)
	if err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "serve the room from a git checkout")}
	}
	if course.Changed {
		return []rehearsal.Finding{rehearsal.Doubt("git commit",
			"this checkout has changes that are not committed; learners get the course without them, at %.12s", course.Commit)}
	}
	return []rehearsal.Finding{rehearsal.Good("learners get %.12s, %s", course.Commit, modules.Megabytes(course.Size()))}
}

// askModules looks for all modules that a go.mod of the labs names.
func (r *rehearse) askModules(context.Context) []rehearsal.Finding {
	scratch := filepath.Join(r.dir, "needs")
	var err error
	if r.needs, err = modules.Needs(r.course, scratch, r.asked != onKind); err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make doctor")}
	}
	missing, err := r.roomModules().Missing(r.needs)
	if err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make doctor")}
	}
	if len(missing) > 0 {
		return []rehearsal.Finding{rehearsal.Bad(mendModules, "%s that the labs need, not in %s, such as %s",
			count(len(missing), "module"), r.roomModules(), missing[0])}
	}
	return []rehearsal.Finding{rehearsal.Good("all that the go.mod files of the labs name are here")}
}

// askPort looks whether the server's port is free, and chooses another one for the rehearsal when it is not.
func (r *rehearse) askPort(ctx context.Context) []rehearsal.Finding {
	r.bind = r.listen
	var found []rehearsal.Finding
	if r.room.Address == "" {
		found = append(found, rehearsal.Doubt(r.onAddress(r.anAddress()),
			"only this machine reaches the room; learners at other machines need ADDRESS="))
	}
	where, err := bindAddress(r.listen, r.room.Address)
	if err != nil {
		return append(found, rehearsal.Failed(err, r.onPort("7777")))
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", where)
	if err == nil {
		listener.Close()
		return append(found, rehearsal.Good("%s is free", where))
	}
	host, _, _ := net.SplitHostPort(r.listen) // bindAddress has taken it apart, too
	r.bind = net.JoinHostPort(host, "0")
	if servesCourse(ctx, "http://"+where) {
		return append(found, rehearsal.Good("the room's server is at %s already, and stays; another port will do for now", where))
	}
	return append(found, rehearsal.Bad(r.onPort("7778"), "%s cannot be had: %s", where, firstLine(err)))
}

// anAddress is one that learners might reach.
func (r *rehearse) anAddress() string {
	all, _ := r.addresses() // without any, the text says what kind of thing is wanted
	i := slices.IndexFunc(all, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Is4() && prefix.Addr().IsGlobalUnicast()
	})
	if i < 0 {
		return "192.168.1.5"
	}
	return netip.MustParsePrefix(all[i].String()).Addr().String()
}

// askCluster makes a cluster like those of the learners, and says how long all of them will take.
func (r *rehearse) askCluster(ctx context.Context) []rehearsal.Finding {
	started := time.Now()
	made, err := r.owned.Create(ctx, rehearsalPurpose, r.spec(r.room.Address, r.owned, r.image), false)
	if err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make doctor")}
	}
	r.made = made
	took := time.Since(started)
	if err := r.healthy(ctx, r.owned.Provider(), made); err != nil {
		return []rehearsal.Finding{rehearsal.Failed(err, "make doctor")}
	}
	n := len(r.room.Learners)
	all := rehearsal.Estimate(n, runtime.GOMAXPROCS(0), took)
	return []rehearsal.Finding{rehearsal.Good("ready after %.0f s, Kubernetes %s; %s will take about %s here",
		took.Seconds(), made.Version, count(n, "cluster"), rehearsal.About(all))}
}
