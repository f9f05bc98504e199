package harness

import "time"

// How long a check waits for the world before it says no: the waits that checks share.
const (
	// CheckLimit bounds one check from its first request to its last, whatever it waits for.
	CheckLimit = 115 * time.Second
	// ReactBudget is how long an operator may take to answer a change it is told about by a watch.
	// A right one needs 50 ms; the rest is for a busy machine.
	ReactBudget = 8 * time.Second
	// StartBudget is [ReactBudget] for the first thing a manager does after it was started: it has to
	// build its caches.
	StartBudget = 15 * time.Second
	// SilenceBudget is how long a manager may run before its first request. One that starts a controller sends it
	// within a second. It is less than StartBudget: what is silent is not called late.
	SilenceBudget = 10 * time.Second
	// CacheBudget is how long the first checks wait for a manager's caches to be filled once it has asked for
	// Memcacheds, where its log does not tell.
	CacheBudget = time.Second
	// PodsBudget is how long real Pods may take to be available: scheduling, sandbox, start. Two seconds on a
	// quiet machine, and 28 s were seen on one with twenty runnable programs for each core; Pods that cannot
	// become available for a reason that shows are not waited for.
	PodsBudget = 60 * time.Second
	// PodsPatience is how long Pods are still waited for once another check has failed. Two seconds is what a
	// quiet machine needs; an operator that fights the Deployment controller would use up [PodsBudget].
	PodsPatience = 5 * time.Second
	// UpPeriod is how long containers are watched after they became available. One that ends over its
	// command line does so within a tenth of it; the kubelet tells a second later.
	UpPeriod = 2 * time.Second
	// ListenBudget is how long memcached may take to listen once its container counts as started. Without
	// a readiness probe, which nobody has to write, that is a moment before it does.
	ListenBudget = 5 * time.Second
	// RestoreBudget is the contract's limit for a deleted Deployment to be back, in time in which the API server
	// takes writes: see [Served]. Polling operators miss it.
	RestoreBudget = 2 * time.Second
	// LateBudget is how long a deleted Deployment is waited for in all, in the same time. Operators that poll look
	// every five seconds or so, and should hear that they do.
	LateBudget = 6 * time.Second
	// StallBudget is how long that may take by the clock on the wall, where the API server takes no writes.
	StallBudget = 30 * time.Second
	// CollectBudget is how long garbage collection may take. The collector looks for new kinds every
	// 30 s only, so a Memcached that is deleted soon after its CRD was installed is noticed late.
	CollectBudget = 45 * time.Second
	// IdleLimit is how long a wait for the manager goes on while neither the manager nor anybody else
	// does anything in its namespace. A right operator acts within milliseconds of a change, and what it
	// retries it retries sooner than this; it is counted in time in which the machine was not too busy, and the
	// manager not at work for others.
	IdleLimit = 4 * time.Second
	// SecondThought is [IdleLimit] where the manager has done something, and it is not as it should be: what it
	// means to do about that follows within milliseconds. It is also what is left of it once another check has
	// failed, so that the verdict is clear.
	SecondThought = 2 * time.Second
	// CourtesyBudget is how long a check that is about to fail waits for one that it requires and that is still
	// at work: should that one fail, too, it explains more.
	CourtesyBudget = 2 * time.Second
	// SettleBudget is how long a world may take to be in order again after a storm. An informer that lost
	// its watch looks again after 0.8 to 1.6 s, and a queue that met errors in the meantime waits as long.
	SettleBudget = 8 * time.Second
	// QuietPeriod is how long a manager at rest is listened to.
	QuietPeriod = 3 * time.Second
	// StopBudget is how long a manager may take to end after SIGTERM before it is killed.
	StopBudget = 5 * time.Second
	// EvidenceBudget is how long a failed check may look for what explains it. The objects of one namespace
	// and the manager's log are read in a tenth of it; nobody waits longer for an answer that is known.
	EvidenceBudget = 2 * time.Second
	// InstallBudget is how long a CRD may take to be Established, or to be refused.
	InstallBudget = 10 * time.Second
	// ProgramLimit bounds a small program of ours that was compiled together with the learner's code. It
	// needs 50 ms; the rest is for a busy machine, and what a learner's endless loop costs them.
	ProgramLimit = 5 * time.Second
	// BuildLimit bounds one compilation of the learner's code.
	BuildLimit = 5 * time.Minute
)

// pollInterval is how often a wait looks again at things that no watch announces, such as the
// proxy's record.
const pollInterval = 100 * time.Millisecond
